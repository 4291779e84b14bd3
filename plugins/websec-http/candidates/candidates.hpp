// Requests that a file of somebody else's speaks of: each is a candidate and none is sent. Pure; the file is hostile.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::websec {

struct Candidate {
  std::string method, url;           // the URL as browsers read it, without a fragment
  std::vector<std::string> headers;  // names, each once
  uint64_t place = 0;                // which entry, operation or line of the file, from 1
};

enum class CandidateFormat { HAR, OPENAPI, URLS };
std::optional<CandidateFormat> candidate_format(std::string_view name);  // "har", "openapi", "urls"

struct CandidateLimits {
  size_t bytes = size_t{64} << 20;         // of the file
  size_t openapi_bytes = size_t{8} << 20;  // it is read whole, as a tree
  size_t entries = 20'000;                 // looked at
  size_t url = 4096;
  size_t method = 32;
  size_t headers = 100;
  size_t header_name = 100;
};

struct Imported {
  std::vector<Candidate> candidates;         // each method and URL once, in the order of the file
  std::map<std::string, uint64_t> left_out;  // by reason: "url", "scheme", "url-credentials", "url-too-long", "method", "duplicate"
  std::string error;                         // not empty: the file is none of that format, and nothing of it is used
  bool cut = false;                          // there are more entries than are looked at
};
Imported read_candidates(CandidateFormat format, std::string_view file, const CandidateLimits& limits = {});

}  // namespace h5i::websec
