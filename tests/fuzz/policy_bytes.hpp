// Any bytes as a repository's policy: no crash, bounded stack; what is accepted resolves the same twice and survives a second reading.
#pragma once
#include <cstdlib>

#include "core/policy/resolve.hpp"

inline void read_as_policy(const uint8_t* data, size_t size, bool toml) {
  using namespace h5i;
  policy::ResolveInput in;
  in.config = policy::ConfigBytes{"f", std::string(reinterpret_cast<const char*>(data), size), toml};
  in.home = "/home/u";
  in.repo = "/src";
  policy::Problems problems;
  auto first = policy::resolve(in, &problems);
  if (!first) {
    if (problems.errors.empty() || first.error().what.empty()) abort();
    return;
  }
  auto again = policy::resolve(in);
  if (!again || canonical_digest(again->document) != canonical_digest(first->document)) abort();
  auto parsed = parse_json(json::canonical(first->document), "document");
  if (!parsed || !(*parsed == first->document)) abort();
}
