#include "image.hpp"

#include <algorithm>
#include <vector>

namespace h5i::container {
namespace {

constexpr size_t kMaxImage = 512;  // as the policy's
constexpr size_t kMaxTag = 128, kDigest = 64;

bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower_alnum(c) || (c >= 'A' && c <= 'Z'); }
bool digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}
sdk::Failure refused(std::string_view text, std::string_view why) {
  return sdk::failure(H5I_E_POLICY_VALUE, "`" + std::string(text.substr(0, 100)) + "` is not taken as an image: " + std::string(why));
}

// "": in order. Letters and digits, and between them one dot, one or two underscores, or hyphens.
std::string component_fault(std::string_view s) {
  if (s.empty()) return "a part of the name is empty";
  if (!lower_alnum(s.front()) || !lower_alnum(s.back())) return "a part of the name begins and ends with a small letter or a digit";
  for (size_t i = 0; i < s.size();) {
    size_t end = i;
    while (end < s.size() && !lower_alnum(s[end])) end++;
    std::string_view between = s.substr(i, end - i);
    if (!between.empty() && between != "." && between != "_" && between != "__" && between.find_first_not_of('-') != std::string_view::npos)
      return "a name has small letters and digits, and between them `.`, `_`, `__` or hyphens";
    i = end + 1;
  }
  return {};
}

// What podman reads as the place that an image comes from, when a colon follows.
constexpr std::string_view kTransports[] = {"atomic", "containers-storage", "dir", "docker", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree", "sif", "tarball"};

// The part before the first slash, when it is a registry and not a part of a name.
bool is_registry(std::string_view s) { return s.find_first_of(".:") != std::string_view::npos || s == "localhost"; }

std::string registry_fault(std::string_view s) {
  size_t colon = s.find(':');
  std::string_view host = s.substr(0, colon);
  if (colon != std::string_view::npos && (!digits(s.substr(colon + 1)) || s.size() - colon > 6)) return "the registry's port is no number";
  if (host.empty() || !alnum(host.front()) || !alnum(host.back())) return "the registry is no host name";
  for (char c : host)
    if (!alnum(c) && c != '.' && c != '-') return "the registry is no host name";
  return {};
}

std::string name_fault(std::string_view s) {
  for (std::string_view t : kTransports)
    if (s.substr(0, t.size()) == t && s.substr(t.size(), 1) == ":") return "`" + std::string(t) + ":` is a place for podman, and no name; in local storage, write localhost/" + std::string(t);
  if (size_t at = s.find('@'); at != std::string_view::npos) {
    std::string_view digest = s.substr(at + 1);
    if (digest.substr(0, 7) != "sha256:" || digest.size() != 7 + kDigest ||
        !std::all_of(digest.begin() + 7, digest.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }))
      return "a digest is @sha256: and 64 hexadecimal digits";
    s = s.substr(0, at);
  }
  size_t slash = s.rfind('/'), colon = s.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    std::string_view tag = s.substr(colon + 1);
    if (tag.empty() || tag.size() > kMaxTag || !(alnum(tag[0]) || tag[0] == '_') ||
        !std::all_of(tag.begin(), tag.end(), [](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; }))
      return "the tag is letters, digits, `.`, `_` and `-`";
    s = s.substr(0, colon);
  }
  bool first = true;
  for (std::string_view rest = s;;) {
    size_t end = std::min(rest.find('/'), rest.size());
    std::string_view part = rest.substr(0, end);
    bool last = end == rest.size();
    std::string fault = first && !last && is_registry(part) ? registry_fault(part) : component_fault(part);
    if (!fault.empty()) return fault;
    if (last) return {};
    rest.remove_prefix(end + 1);
    first = false;
  }
}

// Absolute and normal. Not what podman or mount would take apart: `:` parts options there, `,` and quotes fields.
std::string path_fault(std::string_view s) {
  if (s.empty() || s[0] != '/' || s == "/") return "a path is absolute, and not the host's own root";
  for (char c : s)
    if (!alnum(c) && std::string_view("._/+-@").find(c) == std::string_view::npos) return "a path has letters, digits, `.`, `_`, `+`, `-`, `@` and `/`";
  for (size_t at = 1; at <= s.size();) {
    size_t end = std::min(s.find('/', at), s.size());
    std::string_view part = s.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return "a path has no empty part, `.` or `..`";
    at = end + 1;
  }
  return {};
}

}  // namespace

std::string Image::text() const {
  switch (kind) {
    case Kind::STORAGE: return name;
    case Kind::LAYOUT: return "oci:" + path;
    case Kind::ARCHIVE: return "oci-archive:" + path;
    case Kind::ROOT: return path;
  }
  return {};
}

sdk::Result<Image> parse_image(std::string_view text) {
  Image out;
  if (text.empty()) return refused(text, "it is empty");
  if (text.size() > kMaxImage) return refused(text, "it is longer than 512 bytes");
  std::string fault;
  auto form = [&](std::string_view prefix, Image::Kind kind) {
    if (text.substr(0, prefix.size()) != prefix) return false;
    out.kind = kind;
    out.path = text.substr(prefix.size());
    fault = path_fault(out.path);
    return true;
  };
  if (!form("oci:", Image::Kind::LAYOUT) && !form("oci-archive:", Image::Kind::ARCHIVE) && !(text[0] == '/' && form("", Image::Kind::ROOT))) {
    if (text.find("://") != std::string_view::npos) return refused(text, "images are never fetched: name one that is in local storage");
    out.name = text;
    fault = name_fault(text);
  }
  if (!fault.empty()) return refused(text, fault);
  return out;
}

}  // namespace h5i::container
