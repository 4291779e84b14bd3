// Public test data: where it is, and a tally that holds a suite to its list of known misses.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "h5i/json.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

namespace h5i::test {

// The file below $H5I_VECTORS, or below ../shared/vectors of the project; nothing, with a line that says so, when it is not there.
inline std::optional<std::string> vector_file(const std::string& name) {
  const char* own = std::getenv("H5I_VECTORS");
  std::string root = own ? own : std::string(std::getenv("H5I_SOURCE_DIR")) + "/../shared/vectors";
  std::string text = read_file(root + "/" + name);
  if (!text.empty()) return text;
  printf("SKIP: websec-vectors: vectors not present: %s\n", name.c_str());
  return {};
}

inline std::optional<json::Value> vector_json(const std::string& name) {
  auto text = vector_file(name);
  if (!text) return {};
  json::ParseError error;
  auto value = json::parse(*text, &error);
  INFO(name);
  REQUIRE(value);
  return value;
}

class Tally {
 public:
  explicit Tally(std::string suite) : suite_(std::move(suite)) {
    std::istringstream in(read_file(std::string(std::getenv("H5I_SOURCE_DIR")) + "/tests/websec/misses/" + suite_ + ".txt"));
    for (std::string line; std::getline(in, line);) {
      size_t tab = line.find('\t');
      INFO(suite_ << ".txt: " << line);
      REQUIRE((tab != std::string::npos && tab + 1 < line.size()));
      known_[line.substr(0, tab)] = line.substr(tab + 1);
    }
  }
  void count(const std::string& id, bool passed, const std::string& detail) {
    INFO(suite_ << ": two cases are called " << id);
    REQUIRE(seen_.insert(id).second);
    (passed ? passed_ : failed_)++;
    if (passed && known_.count(id)) wrong_ += "passes, so it leaves the list: " + id + "\n";
    if (!passed && !known_.count(id)) wrong_ += "a miss that is not listed: " + id + "\t" + detail + "\n";
  }
  // `at_least`: the bar.
  void finish(size_t at_least) {
    printf("%s: %zu passed, %zu failed\n", suite_.c_str(), passed_, failed_);
    for (const auto& [id, why] : known_)
      if (!seen_.count(id)) wrong_ += "listed, and no such case: " + id + "\n";
    CHECK(wrong_ == "");
    CHECK(passed_ >= at_least);
  }

 private:
  std::string suite_, wrong_;
  std::map<std::string, std::string> known_;
  std::set<std::string> seen_;
  size_t passed_ = 0, failed_ = 0;
};

}  // namespace h5i::test
