#include "plugins/websec-http/plan/uniform.hpp"

namespace h5i::websec {

bool Uniform::add(int status, const std::string& body) {
  const bool same = status != 0 && status == status_ && (status >= 400 || body == body_);
  count_ = same ? count_ + 1 : status != 0;
  status_ = status;
  body_ = body;
  return count_ == kUniform;
}

}  // namespace h5i::websec
