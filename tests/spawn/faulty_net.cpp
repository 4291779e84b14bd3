// h5i-net where a hosts file cannot be told, so that the rules before are put back, and that fails in the way that the port of the new rule names.
#include <cerrno>

#include "core/nft/inside.hpp"
#include "core/nft/transaction.hpp"

namespace h5i::nft {

Result<void> apply_or_fail(const UniqueFd& socket, const Ruleset& ruleset, Change change) {
  enum { WORKS, REFUSED, HALF };
  static int replaced = 0, how = WORKS;
  if (change != Change::REPLACE) return apply(socket, ruleset, change);
  if (++replaced == 1) {
    const std::string text = ruleset.to_text();
    how = text.find("9101") != std::string::npos ? REFUSED : text.find("9102") != std::string::npos ? HALF : WORKS;
    return apply(socket, ruleset, change);
  }
  // The kernel goes on holding what it was given last.
  if (how == REFUSED) return sys_error("packet rules", ENOBUFS);
  auto taken = apply(socket, ruleset, change);
  if (how == HALF && taken) {  // what is read back is not what was put back
    Ruleset more = ruleset_of({.allow = {}, .log_group = 7});
    more.table = "spoilt";
    return apply(socket, more, Change::CREATE);
  }
  return taken;
}

Result<void> hosts_cannot_be_told(const Namespaces&, const std::string&) { return make_error(Errc::TIER_SETUP, "the names cannot be told", "from the test"); }

}  // namespace h5i::nft
