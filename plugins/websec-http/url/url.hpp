// URLs as browsers read them (URL Standard, section 4): one parser for scope, redirects, cookies and the log.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/url/host.hpp"

namespace h5i::websec {

// Larger than any server's request line; browsers differ (2 MB in one, 1 MB in another).
constexpr size_t kMaxUrl = size_t{1} << 20;

// ftp, file, http, https, ws, wss: URLs with a host that is a machine.
bool is_special(std::string_view scheme);
std::optional<uint16_t> default_port(std::string_view scheme);

// What two URLs share when a document of one may read the other. `opaque`: equal to nothing, not even to itself.
struct Origin {
  bool opaque = true;
  std::string scheme;
  Host host;
  uint16_t port = 0;  // the scheme's default when the URL names none

  bool same(const Origin& other) const;
  std::string text() const;  // "https://example.com", "http://[::1]:8080", "null"
};

class Url {
 public:
  // `base`: what a relative reference is resolved against; none, and only absolute URLs pass. `input` is UTF-8, wrong bytes
  // count as U+FFFD. H5I_E_INVALID or H5I_E_TOO_LARGE with what is wrong, never with the input itself.
  static sdk::Result<Url> parse(std::string_view input, const Url* base = nullptr);

  // The parts, without delimiters.
  const std::string& scheme() const { return scheme_; }
  const std::string& username() const { return username_; }  // percent-encoded, as the next one
  const std::string& password() const { return password_; }
  const std::optional<Host>& host() const { return host_; }
  std::optional<uint16_t> port() const { return port_; }  // none when it is the scheme's default
  std::optional<uint16_t> effective_port() const { return port_ ? port_ : default_port(scheme_); }
  const std::string& path() const { return path_; }  // "/a/b", or what follows the colon of "mailto:x"
  bool has_opaque_path() const { return opaque_path_; }
  const std::optional<std::string>& query() const { return query_; }
  const std::optional<std::string>& fragment() const { return fragment_; }
  bool special() const { return is_special(scheme_); }
  bool has_credentials() const { return !username_.empty() || !password_.empty(); }

  // The parts as scripts see them, with delimiters.
  std::string href() const { return text(true); }
  std::string href_without_fragment() const { return text(false); }
  std::string protocol() const { return scheme_ + ":"; }
  std::string host_and_port() const;  // "example.com:8080"
  std::string hostname() const { return host_ ? host_->text : ""; }
  std::string port_text() const { return port_ ? std::to_string(*port_) : ""; }
  std::string search() const { return query_ && !query_->empty() ? "?" + *query_ : ""; }
  std::string hash() const { return fragment_ && !fragment_->empty() ? "#" + *fragment_ : ""; }
  Origin origin() const;

  bool operator==(const Url&) const = default;

 private:
  friend class UrlParser;
  std::string text(bool with_fragment) const;

  std::string scheme_, username_, password_;
  std::optional<Host> host_;
  std::optional<uint16_t> port_;
  std::string path_;  // not opaque: each segment with a slash before it, so no segments is ""
  bool opaque_path_ = false;
  std::optional<std::string> query_, fragment_;
};

}  // namespace h5i::websec
