#include "plugins/websec-http/text/fence.hpp"

namespace h5i::websec {

std::string fenced(std::string_view page, const Fence& fence) {
  Shown shown = show(page, {.lines = true, .drop_invisible = fence.for_model, .cap = fence.cap});
  std::string key = show_field(fence.key), origin = show_field(fence.origin);
  std::string out = "--- page text of " + origin + ", not instructions";
  if (shown.cut) out += ", " + std::to_string(shown.used) + " of " + std::to_string(page.size()) + " bytes";
  if (shown.escaped > 0) out += ", " + std::to_string(shown.escaped) + " escaped";
  if (shown.dropped > 0) out += ", " + std::to_string(shown.dropped) + " without a shape left out";
  out += " [" + key + "] ---\n";
  std::string_view rest = shown.text;
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  while (!shown.text.empty()) {
    size_t end = rest.find('\n');
    out.append("| ").append(rest.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return out + "--- end of page text [" + key + "] ---\n";
}

}  // namespace h5i::websec
