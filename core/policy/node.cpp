#include "core/policy/node.hpp"

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace h5i::policy {

const Node* Node::find(std::string_view key) const {
  for (const Entry& e : entries)
    if (e.key == key) return &e.value;
  return nullptr;
}

std::string_view kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::NONE: return "nothing";
    case Node::Kind::BOOL: return "true or false";
    case Node::Kind::INTEGER: return "a whole number";
    case Node::Kind::REAL: return "a number";
    case Node::Kind::TEXT: return "text";
    case Node::Kind::LIST: return "a list";
    case Node::Kind::MAP: return "a map";
    case Node::Kind::OTHER: return "a date or time";
  }
  return "nothing";
}

std::string place(const std::string& name, Mark at) {
  return at.line ? name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) : name;
}

Result<void> check_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.size() > kMaxConfigBytes)
    return make_error(Errc::POLICY_LIMIT, name + " is too large",
                      std::to_string(bytes.size()) + " bytes, limit " + std::to_string(kMaxConfigBytes));
  Mark at{1, 1};
  for (size_t i = 0; i < bytes.size();) {
    auto c = static_cast<unsigned char>(bytes[i]);
    int n = json::detail::utf8_len(bytes, i);
    if (!n)
      return make_error(Errc::POLICY_PARSE, place(name, at) + ": a byte is not UTF-8", "byte " + hex(&bytes[i], 1));
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
      return make_error(Errc::POLICY_PARSE, place(name, at) + ": a control character", "byte " + hex(&bytes[i], 1));
    if (c == '\n') at = {at.line + 1, 1};
    else at.column++;
    i += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace h5i::policy
