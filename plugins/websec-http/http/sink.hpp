// Where the bytes of a body go.
#pragma once
#include <string>
#include <string_view>

namespace h5i::websec {

// Takes a body piece by piece; the views are gone when the call returns.
class BodySink {
 public:
  virtual ~BodySink() = default;
  virtual bool take(std::string_view bytes) = 0;  // false: no more
};
class StringSink : public BodySink {
 public:
  std::string bytes;
  bool take(std::string_view more) override {
    bytes.append(more);
    return true;
  }
};

}  // namespace h5i::websec
