// The public suffix list: below which names strangers register theirs.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

class SuffixList {
 public:
  // The bytes of public_suffix_list.dat, or of the compiled form that libpsl makes of it. `date`: for a list that does not say
  // its own, for example the day on which its file changed. H5I_E_INVALID when they hold no rule.
  static sdk::Result<SuffixList> from_bytes(std::string_view bytes, std::string date = "unknown");
  // What libpsl was built with; H5I_E_UNSUPPORTED when it was built without a list.
  static sdk::Result<SuffixList> builtin();

  // `domain`: canonical (lower case, A-labels, no dot before or after it). A top-level domain that is not listed is a suffix.
  bool is_public_suffix(std::string_view domain) const;
  // "example.co.uk" of "a.example.co.uk"; none for a public suffix and what is no domain.
  std::optional<std::string> registrable_domain(std::string_view domain) const;

  const std::string& date() const { return date_; }      // "2024-05-01", or what from_bytes was given
  const std::string& digest() const { return digest_; }  // "sha256:..." of the bytes; "sha1:..." of a built-in list's source

 private:
  std::shared_ptr<const void> list_;  // psl_ctx_t
  std::string date_, digest_;
};

// Same scheme and same registrable domain, or the same host where there is none (RFC 6265bis, section 5.2). ws is http's, wss https's.
bool same_site(const Url& a, const Url& b, const SuffixList& list);

}  // namespace h5i::websec
