#include "core/base/json.hpp"

namespace h5i {
Result<Json> parse_json(std::string_view text, std::string_view what, size_t limit) {
  if (text.size() > limit)
    return make_error(Errc::TOO_LARGE, std::string(what) + " is too large",
                      std::to_string(text.size()) + " bytes, limit " + std::to_string(limit));
  json::ParseError e;
  auto v = json::parse(text, &e);
  if (!v)
    return make_error(Errc::JSON, std::string(what) + " is not strict JSON",
                      e.message + " at byte " + std::to_string(e.offset));
  return std::move(*v);
}
}  // namespace h5i
