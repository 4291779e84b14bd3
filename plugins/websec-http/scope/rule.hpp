// One rule of a scope.
//
//   rule    = ("allow" / "deny") " " pattern [" at " place *("," place)]       "at" in an allow only
//   pattern = [scheme "://"] host [":" port] [path]                            scheme: http, https
//   host    = name / "*." name / IPv4 / "[" IPv6 "]"
//   path    = "/" ...          with "*": the whole path, each * any run of characters; without: that path and what is below it
//   place   = "public" / "loopback" / "private" / address / prefix             what a name may resolve to
//
// An allow without a scheme is https, without a port the scheme's default. A deny without a scheme is both, without a port and a
// scheme every port: who forbids a host means all of it. "*.example.com" is not "example.com".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/scope/address.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

constexpr size_t kMaxRule = 2048;  // bytes of one rule, as it is written and in canonical text
constexpr size_t kMaxPlaces = 64;  // of one rule

// The paths that one path may be: as it is sent, and as a server may read it that decodes before it looks (percent-encoding
// decoded, "//" one slash, "." and ".." walked, what follows ";" in a segment dropped). Letters keep their case; docs/adr/0046.
struct PathReadings {
  explicit PathReadings(std::string_view path);
  std::vector<std::string> all;
};

// What a name may resolve to under a rule.
struct Place {
  enum class Kind { PUBLIC, LOOPBACK, PRIVATE, PREFIX };  // one address is a PREFIX of full length
  Kind kind = Kind::PUBLIC;
  Prefix prefix;  // PREFIX
  bool admits(const Address& address, const AddressClass& kind_of_address) const;
  std::string text() const;
  bool operator==(const Place&) const = default;
};

struct Rule {
  bool allow = true;
  std::string scheme;            // "http", "https"; "" in a deny: both
  bool wildcard = false;         // "*." before the host
  Host host;                     // DOMAIN, IPV4 or IPV6
  std::optional<uint16_t> port;  // none in a deny: every port
  std::string path;              // "": every path
  std::vector<Place> places;     // of an allow of a name; never empty there

  std::string text() const;  // canonical: "allow https://*.example.com:8443/api at loopback"
  bool operator==(const Rule&) const = default;

  enum class Match { YES, OTHER_HOST, OTHER_SCHEME, OTHER_PORT };
  bool matches_host(const Host& other) const;
  // Without the path. `url` is http, https, ws or wss; the last two are the first two here, for they open the same connection.
  // `at`: the host to judge, that of the URL or an address that it led to.
  Match matches_origin(const Url& url, const Host& at) const;
  bool matches_path(const PathReadings& readings) const;
};

// H5I_E_INVALID or H5I_E_TOO_LARGE with what is wrong; `text` is taken as it stands, without a newline.
sdk::Result<Rule> parse_rule(std::string_view text);

}  // namespace h5i::websec
