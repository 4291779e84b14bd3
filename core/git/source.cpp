#include "core/git/source.hpp"

#include <algorithm>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"

namespace h5i::git {
namespace {

Error refused(const std::string& url, const std::string& why) {
  return make_error(Errc::GIT_SOURCE, "source refused: " + printable(url, {.limit = 200}), why);
}

bool scp_form(const std::string& t) {
  size_t colon = t.find(':'), slash = t.find('/');
  return colon != std::string::npos && colon > 0 && (slash == std::string::npos || colon < slash);
}

}  // namespace

bool looks_like_url(const std::string& t) {
  return t.find("://") != std::string::npos || t.find("::") != std::string::npos || scp_form(t);
}

Result<void> check_url(const std::string& url) {
  if (url.empty() || url.size() > 4096) return refused(url, "a URL of 1 to 4096 bytes is expected");
  if (url[0] == '-') return refused(url, "it begins with '-', as an option does");
  for (char c : url)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return refused(url, "it holds a space or a control character");
  std::string rest, host;
  size_t scheme_end = url.find("://");
  if (scheme_end == std::string::npos) {
    if (url.find("::") != std::string::npos) return refused(url, "remote helpers such as ext:: run programs");
    if (!scp_form(url)) return refused(url, "it is neither a URL nor host:path");
    size_t colon = url.find(':');
    host = url.substr(0, colon);
    rest = url.substr(colon + 1);
  } else {
    std::string scheme = url.substr(0, scheme_end);
    if (scheme.find("::") != std::string::npos) return refused(url, "remote helpers such as ext:: run programs");
    if (scheme != "https" && scheme != "ssh" && scheme != "git" && scheme != "file") return refused(url, "the scheme " + printable(scheme) + " is not allowed");
    std::string after = url.substr(scheme_end + 3);
    size_t slash = after.find('/');
    host = after.substr(0, slash);
    rest = slash == std::string::npos ? "" : after.substr(slash);
    if (scheme == "file") {
      if (!host.empty() && host != "localhost") return refused(url, "a file URL names no other host");
      if (rest.size() < 2) return refused(url, "the path is missing");
      return {};
    }
  }
  if (host.empty()) return refused(url, "the host is missing");
  size_t at = host.rfind('@');
  std::string user = at == std::string::npos ? "" : host.substr(0, at), name = at == std::string::npos ? host : host.substr(at + 1);
  if (name.empty()) return refused(url, "the host is missing");
  if (name[0] == '-' || (!user.empty() && user[0] == '-')) return refused(url, "host or user begins with '-', as an option does");
  if (user.find(':') != std::string::npos) return refused(url, "a password in a URL would be written to logs");
  std::string path = rest;
  while (!path.empty() && path[0] == '/') path.erase(0, 1);
  if (path.empty()) return refused(url, "the path is missing");
  if (path[0] == '-') return refused(url, "the path begins with '-', as an option does");
  return {};
}

std::string name_from(const std::string& text) {
  std::string t = text;
  while (!t.empty() && t.back() == '/') t.pop_back();
  t = t.substr(t.find_last_of("/:") + 1);
  if (t.size() > 4 && t.substr(t.size() - 4) == ".git") t.resize(t.size() - 4);
  std::string out;
  for (char c : t) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    bool ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!ok) c = '-';
    if (out.empty() && !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) continue;
    if (c == '.' && !out.empty() && out.back() == '.') continue;
    out += c;
  }
  out = out.substr(0, 48);
  while (!out.empty() && (out.back() == '.' || out.back() == '-' || out.back() == '_')) out.pop_back();
  return valid_slug(out, false) ? out : "";
}

}  // namespace h5i::git
