#include "plugins/websec-http/export/message_text.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace h5i::websec {
namespace {

bool blank(char c) { return c == ' ' || c == '\t'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

struct LineAt {
  std::string_view line, ending;
};
// The line that begins at `at`, which moves behind its ending; empty lines belong to the ending before them.
LineAt next_line(std::string_view head, size_t* at) {
  size_t end = std::min(head.find_first_of("\r\n", *at), head.size());
  size_t next = std::min(head.find_first_not_of("\r\n", end), head.size());
  LineAt out{head.substr(*at, end - *at), head.substr(end, next - end)};
  *at = next;
  return out;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

bool is_masked(std::string_view name, const ExportRules& rules) {
  if (rules.with_credentials) return false;
  return same_name(name, "set-cookie") || same_name(name, "set-cookie2") || (rules.is_credential && rules.is_credential(name));
}

std::string mask_of(size_t bytes) { return "[" + std::to_string(bytes) + " bytes]"; }

std::string masked_head(std::string_view head, const ExportRules& rules, std::vector<std::string>* names) {
  std::string out;
  bool hide = false;
  for (size_t at = 0; at < head.size();) {
    auto [line, ending] = next_line(head, &at);
    size_t value = std::string_view::npos;
    if (line.empty() || !blank(line[0])) {
      size_t colon = line.find(':');
      std::string_view name = trimmed(line.substr(0, colon));
      hide = colon != std::string_view::npos && is_masked(name, rules);
      if (hide) value = line.find_first_not_of(" \t", colon + 1);
      if (hide && names && std::find(names->begin(), names->end(), name) == names->end()) names->emplace_back(name);
    } else if (hide) {
      value = line.find_first_not_of(" \t");
    }
    if (value != std::string_view::npos) out.append(line.substr(0, value)).append(mask_of(line.size() - value));
    else out.append(line);
    out.append(ending);
  }
  return out;
}

std::string_view first_line(std::string_view head) { return head.substr(0, std::min(head.find_first_of("\r\n"), head.size())); }

std::vector<HeaderText> header_texts(std::string_view head) {
  std::vector<HeaderText> out;
  bool first = true;
  for (size_t at = 0; at < head.size(); first = false) {
    std::string_view line = next_line(head, &at).line;
    if (first || line.empty()) continue;
    if (blank(line[0]) && !out.empty()) {
      out.back().value.append(out.back().value.empty() ? "" : " ").append(trimmed(line));
      continue;
    }
    size_t colon = line.find(':');
    out.push_back({std::string(trimmed(line.substr(0, colon))), colon == std::string_view::npos ? "" : std::string(trimmed(line.substr(colon + 1)))});
  }
  return out;
}

bool is_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    int n = json::detail::utf8_len(bytes, i);
    if (n == 0) return false;
    i += static_cast<size_t>(n);
  }
  return true;
}

std::string to_text(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string out;
  for (char c : bytes) json::detail::append_utf8(out, static_cast<unsigned char>(c));
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr size_t kStep = size_t{3} << 20;  // the library counts in int
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 8);
  for (size_t at = 0; at < bytes.size(); at += kStep) {
    std::string_view part = bytes.substr(at, kStep);
    std::string piece(part.size() / 3 * 4 + 5, '\0');
    int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(piece.data()), reinterpret_cast<const unsigned char*>(part.data()), static_cast<int>(part.size()));
    out.append(piece, 0, static_cast<size_t>(n));
  }
  return out;
}

}  // namespace h5i::websec
