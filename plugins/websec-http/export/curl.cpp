// A send as a curl command: words that a shell gives to curl byte for byte.
#include <algorithm>

#include "plugins/websec-http/export/formats.hpp"
#include "plugins/websec-http/export/message_text.hpp"
#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kLongestWord = 32 << 10;  // a kernel takes 128 KiB in one; a body above goes in by standard input
constexpr size_t kShown = 300;

bool plain(char c) { return c >= 0x20 && c < 0x7f; }

void octal(std::string& out, char c) {
  auto b = static_cast<unsigned char>(c);
  out += '\\';
  for (int shift : {6, 3, 0}) out += static_cast<char>('0' + (b >> shift & 7));
}

// The format of a printf that writes exactly `bytes`: every shell has one, and only so a NUL reaches a program.
std::string printf_format(std::string_view bytes) {
  std::string out = "'";
  for (char c : bytes) {
    if (c == '%') out += "%%";
    else if (plain(c) && c != '\'' && c != '\\') out += c;
    else octal(out, c);
  }
  return out + "'";
}

// A variable of the shell, from a header's name.
std::string variable(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    out += letter && c >= 'a' ? static_cast<char>(c - 'a' + 'A') : letter || digit ? c : '_';
  }
  return out.empty() || (out[0] >= '0' && out[0] <= '9') ? "_" + out : out;
}

bool is_token(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return plain(c) && std::string_view(" \"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos; });
}

std::string comment(const ExportedSend& e, const std::string& text) { return "# #" + std::to_string(e.number) + ": " + show_field(text, kShown) + "\n"; }

}  // namespace

std::string shell_quoted(std::string_view bytes) {
  const bool simple = std::all_of(bytes.begin(), bytes.end(), plain);
  std::string out = simple ? "'" : "$'";
  for (char c : bytes) {
    if (simple) {
      if (c == '\'') out += "'\\''";
      else out += c;
    } else if (plain(c) && c != '\'' && c != '\\') {
      out += c;
    } else {
      octal(out, c);
    }
  }
  return out + "'";
}

std::string curl_command(const ExportedSend& e, const ExportRules& rules) {
  if (e.record["raw"].boolean()) return comment(e, "raw bytes, which curl cannot be told to send: " + e.record["url"].string());
  const std::string& method = e.record["method"].string();
  if (!is_token(method)) return comment(e, "no method that curl could be told: " + method);
  if (method == "CONNECT") return comment(e, "a CONNECT, which curl makes by itself for a proxy: " + e.record["url"].string());
  std::string out = comment(e, method + " " + e.record["url"].string() + (e.kept() ? "" : " (the session keeps no messages: headers and body are what the log knows)"));
  const std::string body = e.request_body.value_or("");
  std::string words = "curl --disable --noproxy '*' --http1.1 --path-as-is --globoff --url " + shell_quoted(e.record["url"].string());
  words += method == "HEAD" ? " --head" : " --request " + shell_quoted(method);
  auto placeholder = [&](std::string_view name) { words += " --header " + shell_quoted(std::string(name) + ": ") + "\"$" + variable(name) + "\""; };
  bool agent = false, accept = false, type = false;
  if (e.request_head) {
    for (const HeaderText& h : header_texts(*e.request_head)) {
      if (same_name(h.name, "transfer-encoding")) return comment(e, "framed by Transfer-Encoding, which curl would put on once more: " + e.record["url"].string());
      if (same_name(h.name, "content-length") && h.value == std::to_string(body.size())) continue;
      if (h.name.find('\0') != std::string::npos || h.value.find('\0') != std::string::npos) return comment(e, "a header with a NUL, which no word of a command can hold: " + e.record["url"].string());
      agent = agent || same_name(h.name, "user-agent");
      accept = accept || same_name(h.name, "accept");
      type = type || same_name(h.name, "content-type");
      if (is_masked(h.name, rules)) placeholder(h.name);
      else words += " --header " + shell_quoted(h.value.empty() ? h.name + ";" : h.name + ": " + h.value);
    }
  } else {
    for (const json::Value& line : e.record["computed"].array())
      if (!same_name(line.string().substr(0, line.string().find(':')), "content-length")) words += " --header " + shell_quoted(line.string());
    for (const json::Value& name : e.record["credentials"].array())
      if (is_token(name.string())) placeholder(name.string());
  }
  // What curl would add by itself was not sent.
  if (!agent) words += " --header 'User-Agent:'";
  if (!accept) words += " --header 'Accept:'";
  if (!e.request_body || body.empty()) {
    if (!e.request_body && e.record["body_bytes"].integer() > 0) out += comment(e, "its body of " + std::to_string(e.record["body_bytes"].integer()) + " bytes was not kept");
    return out + words + "\n";
  }
  if (!type) words += " --header 'Content-Type:'";
  if (body.size() > kLongestWord || body.find('\0') != std::string::npos) return out + "printf " + printf_format(body) + " | " + words + " --data-binary @-\n";
  return out + words + " --data-raw " + shell_quoted(body) + "\n";
}

}  // namespace h5i::websec
