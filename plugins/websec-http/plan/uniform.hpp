// Whether a target answers the same to everything: it may have shut somebody out, and what is found then is nothing.
#pragma once
#include <cstdint>
#include <string>

namespace h5i::websec {

// kUniform answers in a row with one status, and either one body or a status that says no (from 400 on).
class Uniform {
 public:
  static constexpr size_t kUniform = 30;
  // In the order in which they came; an exchange without an answer has status 0 and ends a row. True once: when it has become so.
  bool add(int status, const std::string& body_sha256);
  size_t count() const { return count_; }
  int status() const { return status_; }

 private:
  int status_ = 0;
  std::string body_;
  size_t count_ = 0;
};

}  // namespace h5i::websec
