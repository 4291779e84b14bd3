// Members of a plan's document, each of its type or refused by name.
#pragma once
#include "plugins/websec-http/plan/plan.hpp"

namespace h5i::websec::members {

constexpr size_t kLargestDocument = 8u << 20;

sdk::Failure bad(std::string why);
sdk::Result<std::vector<std::string>> strings(const json::Value& v, const char* what, size_t most);
sdk::Result<int64_t> number(const json::Value& v, const char* what, int64_t least, int64_t most);
sdk::Result<std::string> text(const json::Value& v, const char* what);
sdk::Result<bool> yes(const json::Value& v, const char* what);
sdk::Result<WrittenRequest> read_written(const json::Value& v);

}  // namespace h5i::websec::members
