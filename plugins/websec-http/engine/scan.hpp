// What history.hpp promises, from the log alone: slower, and in the same memory.
#pragma once
#include "plugins/websec-http/engine/history.hpp"

namespace h5i::websec {

sdk::Status scan_sends(const sdk::Host& host, const Wanted& wanted, const std::function<sdk::Result<bool>(Told&)>& each);
sdk::Result<uint64_t> scan_last_line(const sdk::Host& host);
sdk::Result<Last> scan_last_sends(const sdk::Host& host, const Filters& filters, uint64_t most);
sdk::Status scan_lines(const sdk::Host& host, const std::vector<std::string>& kinds, uint64_t until, const std::function<bool(const json::Value& record)>& each);

}  // namespace h5i::websec
