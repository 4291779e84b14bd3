// Any bytes as an egress rule: what is accepted has one canonical form, admits no address that is never reachable, and
// covers itself; the allow-list reads back what it writes.
#include <cstdlib>

#include "core/policy/allow_list.hpp"
#include "core/policy/egress.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace h5i;
  using namespace h5i::policy;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (bool private_ok : {false, true}) {
    auto r = parse_egress(text, private_ok);
    if (!r) continue;
    auto again = parse_egress(r->text(), private_ok);
    if (!again || !(*again == *r) || again->text() != r->text()) abort();
    if (!covers(*r, *r) || r->text().size() > 300) abort();
    for (const char* never : {"127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"})
      if (admits_address(*r, *parse_ipv4(never), r->low)) abort();
    for (const char* never : {"::1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"})
      if (admits_address(*r, *parse_ipv6(never), r->low)) abort();
    if (r->kind == EgressRule::Kind::NETWORK && admits_address(*r, r->network.base, r->low) && classify(r->network.base).reach == Reach::NEVER) abort();
  }
  if (auto a = parse_ipv6(text); a && (!parse_ipv6(to_text(*a)) || !(*parse_ipv6(to_text(*a)) == *a))) abort();
  if (auto list = parse_allow_list(text, "f")) {
    auto again = parse_allow_list(allow_list_text(*list), "f");
    if (!again || !(*again == *list)) abort();
  }
  return 0;
}
