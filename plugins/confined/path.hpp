// Absolute, normal paths: "/" or "/a/b", no empty, "." or ".." component, no trailing slash.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace h5i::confined {

inline bool is_normal(std::string_view path) {
  if (path.empty() || path[0] != '/' || path.find('\0') != std::string_view::npos) return false;
  if (path == "/") return true;
  size_t at = 1;
  while (at <= path.size()) {
    size_t end = std::min(path.find('/', at), path.size());
    std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

inline std::string parent_of(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

inline std::string join(std::string_view directory, std::string_view name) {
  std::string out(directory);
  if (out != "/") out += '/';
  return out.append(name);
}

// True for the directory itself, too.
inline bool is_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.substr(0, directory.size()) == directory &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

inline std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> out;
  size_t at = 0;
  while (at < path.size()) {
    size_t end = std::min(path.find('/', at), path.size());
    if (end > at) out.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// A parent before what is in it.
inline bool parent_first(std::string_view a, std::string_view b) {
  // '/' sorts before every other byte, so that "/a/b" follows "/a" before "/a-b" does.
  size_t n = std::min(a.size(), b.size());
  for (size_t i = 0; i < n; i++) {
    if (a[i] == b[i]) continue;
    unsigned x = a[i] == '/' ? 0 : static_cast<unsigned char>(a[i]),
             y = b[i] == '/' ? 0 : static_cast<unsigned char>(b[i]);
    return x < y;
  }
  return a.size() < b.size();
}

}  // namespace h5i::confined
