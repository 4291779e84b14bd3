#include "plugins/websec-http/url/url.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "plugins/websec-http/url/percent.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

using sdk::Status;

constexpr std::array<std::pair<std::string_view, uint16_t>, 6> kSpecial = {
    {{"ftp", 21}, {"file", 0}, {"http", 80}, {"https", 443}, {"ws", 80}, {"wss", 443}}};

sdk::Failure invalid(const char* why) { return sdk::failure(H5I_E_INVALID, why); }

bool is_alpha(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool starts_with_drive(std::string_view s) {
  if (s.size() < 2 || !is_alpha(s[0]) || (s[1] != ':' && s[1] != '|')) return false;
  return s.size() == 2 || std::string_view("/\\?#").find(s[2]) != std::string_view::npos;
}
bool is_drive(std::string_view s) { return s.size() == 2 && starts_with_drive(s); }
bool is_normal_drive(std::string_view s) { return is_drive(s) && s[1] == ':'; }

// How many dots a segment is, written as they are or as %2e: 1, 2, or 0 when it is something else.
int dots(std::string_view s) {
  int n = 0;
  while (!s.empty()) {
    if (s[0] == '.') s.remove_prefix(1);
    else if (s.size() >= 3 && s[0] == '%' && s[1] == '2' && lower(s[2]) == 'e') s.remove_prefix(3);
    else return 0;
    if (++n > 2) return 0;
  }
  return n;
}

// What the standard removes before it reads: controls and spaces around, tabs and newlines anywhere.
std::string cleaned(std::string_view s) {
  auto around = [](char c) { return static_cast<unsigned char>(c) <= 0x20; };
  while (!s.empty() && around(s.front())) s.remove_prefix(1);
  while (!s.empty() && around(s.back())) s.remove_suffix(1);
  std::string out = to_valid_utf8(s);
  std::erase_if(out, [](char c) { return c == '\t' || c == '\n' || c == '\r'; });
  return out;
}

}  // namespace

// One parse. Each function takes what is left of the input and goes on to the end of it.
class UrlParser {
 public:
  explicit UrlParser(const Url* base) : base_(base) {}

  Status run(std::string_view in) {
    if (size_t colon = scheme_length(in)) {
      std::transform(in.begin(), in.begin() + static_cast<long>(colon), std::back_inserter(url.scheme_), lower);
      return after_scheme(in.substr(colon + 1));
    }
    if (!base_) return invalid("a relative reference without a base");
    if (base_->opaque_path_) {
      if (!in.starts_with('#')) return invalid("a relative reference against a base whose path is opaque");
      url.scheme_ = base_->scheme_;
      url.path_ = base_->path_;
      url.opaque_path_ = true;
      url.query_ = base_->query_;
      return fragment(in.substr(1));
    }
    url.scheme_ = base_->scheme_;
    return base_->scheme_ == "file" ? file(in) : relative(in);
  }

  Url url;

 private:
  bool special() const { return url.special(); }
  bool is_slash(char c) const { return c == '/' || (c == '\\' && special()); }

  // Where the authority, a segment of a path, or a path ends.
  size_t end_of_authority(std::string_view in) const { return std::min(in.find_first_of(special() ? "/\\?#" : "/?#"), in.size()); }

  // Length of "scheme" in "scheme:", 0 when there is none.
  static size_t scheme_length(std::string_view in) {
    if (in.empty() || !is_alpha(in[0])) return 0;
    size_t n = 0;
    while (n < in.size() && (is_alpha(in[n]) || is_digit(in[n]) || in[n] == '+' || in[n] == '-' || in[n] == '.')) n++;
    return n < in.size() && in[n] == ':' ? n : 0;
  }

  Status after_scheme(std::string_view in) {
    if (url.scheme_ == "file") return file(in);
    if (special()) {
      if (base_ && base_->scheme_ == url.scheme_ && !in.starts_with("//")) return relative(in);
      return authority_after_slashes(in);
    }
    if (in.starts_with("//")) return authority(in.substr(2));
    if (in.starts_with('/')) return path(in.substr(1));
    return opaque_path(in);
  }

  Status relative(std::string_view in) {
    if (!in.empty() && is_slash(in[0])) {
      if (in.size() > 1 && is_slash(in[1])) return special() ? authority_after_slashes(in) : authority(in.substr(2));
      take_authority();
      return path(in.substr(1));
    }
    take_authority();
    url.path_ = base_->path_;
    if (in.empty() || in[0] == '#') url.query_ = base_->query_;
    if (in.empty() || in[0] == '#' || in[0] == '?') return query_and_fragment(in);
    shorten();
    return path(in);
  }

  void take_authority() {
    url.username_ = base_->username_;
    url.password_ = base_->password_;
    url.host_ = base_->host_;
    url.port_ = base_->port_;
  }

  Status authority_after_slashes(std::string_view in) {
    size_t n = 0;
    while (n < in.size() && is_slash(in[n])) n++;
    return authority(in.substr(n));
  }

  Status authority(std::string_view in) {
    size_t end = end_of_authority(in);
    std::string_view all = in.substr(0, end);
    size_t at = all.rfind('@');
    std::string_view machine = all.substr(at == std::string_view::npos ? 0 : at + 1);
    if (at != std::string_view::npos) {
      if (machine.empty()) return invalid("credentials without a host");
      std::string_view credentials = all.substr(0, at);
      size_t colon = credentials.find(':');
      url.username_ = percent_encode(credentials.substr(0, colon), EncodeSet::USERINFO);
      if (colon != std::string_view::npos) url.password_ = percent_encode(credentials.substr(colon + 1), EncodeSet::USERINFO);
    }
    bool brackets = false;
    size_t colon = std::string_view::npos;
    for (size_t i = 0; i < machine.size() && colon == std::string_view::npos; i++) {
      if (machine[i] == '[') brackets = true;
      if (machine[i] == ']') brackets = false;
      if (machine[i] == ':' && !brackets) colon = i;
    }
    std::string_view name = machine.substr(0, colon);
    if (name.empty() && (special() || colon != std::string_view::npos)) return invalid("no host");
    url.host_ = H5I_SDK_TRY(parse_host(name, special()));
    if (colon != std::string_view::npos) H5I_SDK_TRY(port(machine.substr(colon + 1)));
    return path_start(in.substr(end));
  }

  Status port(std::string_view in) {
    if (in.empty()) return {};
    uint32_t n = 0;
    for (char c : in) {
      if (!is_digit(c)) return invalid("a port that is no number");
      n = std::min<uint32_t>(n * 10 + static_cast<uint32_t>(c - '0'), 65536);
    }
    if (n > 65535) return invalid("a port above 65535");
    if (auto usual = default_port(url.scheme_); !usual || *usual != n) url.port_ = static_cast<uint16_t>(n);
    return {};
  }

  Status file(std::string_view in) {
    url.host_ = Host{};
    const Url* base = base_ && base_->scheme_ == "file" ? base_ : nullptr;
    if (!in.empty() && is_slash(in[0])) {
      if (in.size() > 1 && is_slash(in[1])) return file_host(in.substr(2));
      in.remove_prefix(1);
      if (base) {
        url.host_ = base->host_;
        // The drive of the base stays, as the root of a path does elsewhere.
        std::string_view first = std::string_view(base->path_).substr(0, base->path_.find('/', 1));
        if (!starts_with_drive(in) && first.size() > 1 && is_normal_drive(first.substr(1))) url.path_ = first;
      }
      return path(in);
    }
    if (!base) return path(in);
    url.host_ = base->host_;
    url.path_ = base->path_;
    if (in.empty() || in[0] == '#') url.query_ = base->query_;
    if (in.empty() || in[0] == '#' || in[0] == '?') return query_and_fragment(in);
    if (starts_with_drive(in)) url.path_.clear();
    else shorten();
    return path(in);
  }

  Status file_host(std::string_view in) {
    size_t end = end_of_authority(in);
    std::string_view name = in.substr(0, end);
    if (is_drive(name)) return path(in);
    if (!name.empty()) {
      Host host = H5I_SDK_TRY(parse_host(name, true));
      if (host.text != "localhost") url.host_ = std::move(host);
    }
    return path_start(in.substr(end));
  }

  Status path_start(std::string_view in) {
    if (!in.empty() && is_slash(in[0])) return path(in.substr(1));
    return special() ? path(in) : query_and_fragment(in);
  }

  // The segments of `in`, which has no slash before it, after those that are there.
  Status path(std::string_view in) {
    std::string segment;
    for (;;) {
      size_t end = end_of_authority(in);
      segment.clear();
      percent_encode(in.substr(0, end), EncodeSet::PATH, segment);
      bool more = end < in.size() && is_slash(in[end]);
      int n = dots(segment);
      if (n == 2) shorten();
      if (n == 0) {
        if (url.scheme_ == "file" && url.path_.empty() && is_drive(segment)) segment[1] = ':';
        url.path_ += '/';
        url.path_ += segment;
      } else if (!more) {
        url.path_ += '/';
      }
      in.remove_prefix(end);
      if (!more) return query_and_fragment(in);
      in.remove_prefix(1);
    }
  }

  void shorten() {
    if (url.path_.empty()) return;
    size_t last = url.path_.rfind('/');
    if (url.scheme_ == "file" && last == 0 && is_normal_drive(std::string_view(url.path_).substr(1))) return;
    url.path_.resize(last);
  }

  Status opaque_path(std::string_view in) {
    size_t end = std::min(in.find_first_of("?#"), in.size());
    url.opaque_path_ = true;
    std::string_view text = in.substr(0, end);
    // A last space before ? or # would be lost if the rest were taken away and the URL read again.
    bool space = text.ends_with(' ') && end < in.size();
    if (space) text.remove_suffix(1);
    percent_encode(text, EncodeSet::C0_CONTROL, url.path_);
    if (space) url.path_ += "%20";
    return query_and_fragment(in.substr(end));
  }

  Status query_and_fragment(std::string_view in) {
    size_t hash = std::min(in.find('#'), in.size());
    if (in.starts_with('?')) url.query_ = percent_encode(in.substr(1, hash - 1), special() ? EncodeSet::SPECIAL_QUERY : EncodeSet::QUERY);
    return hash < in.size() ? fragment(in.substr(hash + 1)) : Status();
  }

  Status fragment(std::string_view in) {
    url.fragment_ = percent_encode(in, EncodeSet::FRAGMENT);
    return {};
  }

  const Url* base_;
};

bool is_special(std::string_view scheme) {
  return std::any_of(kSpecial.begin(), kSpecial.end(), [&](const auto& s) { return s.first == scheme; });
}

std::optional<uint16_t> default_port(std::string_view scheme) {
  for (const auto& [name, port] : kSpecial)
    if (name == scheme && port) return port;
  return {};
}

bool Origin::same(const Origin& o) const { return !opaque && !o.opaque && scheme == o.scheme && host == o.host && port == o.port; }

std::string Origin::text() const {
  if (opaque) return "null";
  std::string out = scheme + "://" + host.text;
  if (auto usual = default_port(scheme); !usual || *usual != port) out += ":" + std::to_string(port);
  return out;
}

sdk::Result<Url> Url::parse(std::string_view input, const Url* base) {
  auto too_long = [] { return sdk::failure(H5I_E_TOO_LARGE, "a URL longer than " + std::to_string(kMaxUrl) + " bytes"); };
  if (input.size() > kMaxUrl) return too_long();
  UrlParser parser(base);
  H5I_SDK_TRY(parser.run(cleaned(input)));
  // Escapes and a base make what is written longer than what was read; it is read again as it is written.
  if (parser.url.text(true).size() > kMaxUrl) return too_long();
  return std::move(parser.url);
}

std::string Url::host_and_port() const {
  if (!host_) return "";
  return port_ ? host_->text + ":" + std::to_string(*port_) : host_->text;
}

std::string Url::text(bool with_fragment) const {
  std::string out = scheme_ + ":";
  if (host_) {
    out += "//";
    if (has_credentials()) {
      out += username_;
      if (!password_.empty()) out += ":" + password_;
      out += "@";
    }
    out += host_and_port();
  } else if (!opaque_path_ && path_.starts_with("//")) {
    out += "/.";  // or the path would be read as a host
  }
  out += path_;
  if (query_) out += "?" + *query_;
  if (with_fragment && fragment_) out += "#" + *fragment_;
  return out;
}

Origin Url::origin() const {
  Origin o;
  if (scheme_ == "blob") {
    auto inner = parse(path_);
    if (inner && (inner->scheme_ == "http" || inner->scheme_ == "https")) return inner->origin();
    return o;
  }
  if (!default_port(scheme_) || !host_) return o;
  o.opaque = false;
  o.scheme = scheme_;
  o.host = *host_;
  o.port = *effective_port();
  return o;
}

}  // namespace h5i::websec
