#include "core/gate/deception.hpp"

#include <algorithm>
#include <cctype>

#include "h5i/json.hpp"

namespace h5i::gate {
namespace {

uint32_t code_point(std::string_view s, size_t i, int n) {
  auto b = [&](size_t k) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i + k])); };
  if (n == 1) return b(0);
  if (n == 2) return (b(0) & 31) << 6 | (b(1) & 63);
  if (n == 3) return (b(0) & 15) << 12 | (b(1) & 63) << 6 | (b(2) & 63);
  return (b(0) & 7) << 18 | (b(1) & 63) << 12 | (b(2) & 63) << 6 | (b(3) & 63);
}

enum class Script { NONE, LATIN, OTHER };
Script script_of(uint32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Script::LATIN;
  // The scripts whose letters are drawn like Latin ones: Greek, Cyrillic, Armenian, Cherokee, full-width and mathematical forms.
  if ((c >= 0x370 && c <= 0x3ff) || (c >= 0x400 && c <= 0x52f) || (c >= 0x531 && c <= 0x587) || (c >= 0x13a0 && c <= 0x13ff) ||
      (c >= 0xff21 && c <= 0xff5a) || (c >= 0x1d400 && c <= 0x1d7ff))
    return Script::OTHER;
  return Script::NONE;
}

const char* hides(uint32_t c) {
  if ((c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c) return "characters that reorder text";
  if (c == 0xad || (c >= 0x200b && c <= 0x200d) || (c >= 0x2060 && c <= 0x2064) || c == 0xfeff || c == 0x180e || (c >= 0xe0000 && c <= 0xe007f))
    return "invisible characters";
  if ((c < 0x20 && c != '\t') || (c >= 0x7f && c <= 0x9f)) return c == '\r' ? "a carriage return inside the line" : "control characters";
  return nullptr;
}

const char* deceives(std::string_view line) {
  Script word = Script::NONE;
  for (size_t i = 0; i < line.size();) {
    int n = json::detail::utf8_len(line, i);
    if (n == 0) {
      i++;
      word = Script::NONE;
      continue;
    }
    uint32_t c = code_point(line, i, n);
    if (const char* what = hides(c)) return what;
    Script s = script_of(c);
    if (s == Script::NONE) word = Script::NONE;
    else if (word != Script::NONE && word != s) return "letters of two scripts in one word";
    else word = s;
    i += static_cast<size_t>(n);
  }
  return nullptr;
}

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

std::vector<Deception> deceptions(std::string_view text, size_t limit) {
  std::vector<Deception> out;
  uint64_t number = 0;
  while (!text.empty() && out.size() < limit) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    number++;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
    if (const char* what = deceives(line)) out.push_back({number, what});
  }
  return out;
}

std::vector<std::string> submodule_warnings(std::string_view text) {
  std::vector<std::string> out;
  uint64_t number = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string line(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    number++;
    auto warn = [&](const char* why) { out.push_back("line " + std::to_string(number) + ": " + why); };
    if (line.find('\r') != std::string::npos) warn("a carriage return, which git and other readers see differently");
    size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    auto trimmed = [](std::string s) {
      while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.pop_back();
      size_t i = 0;
      while (i < s.size() && std::isspace(static_cast<unsigned char>(s[i]))) i++;
      return s.substr(i);
    };
    std::string key = lower(trimmed(line.substr(0, equals))), value = trimmed(line.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (key == "update" && value.rfind("!", 0) == 0) warn("update is a command");
    if ((key == "url" || key == "path" || key == "branch") && value.rfind("-", 0) == 0) warn("the value is read as an option");
    if (key == "url" && value.find("::") != std::string::npos) warn("the URL names a remote helper, which is a program");
    if (key == "path" && (value.rfind("/", 0) == 0 || value.find("..") != std::string::npos)) warn("the path leaves the work tree");
  }
  return out;
}

}  // namespace h5i::gate
