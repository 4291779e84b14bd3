// A line with a URL, a line with an address, then a scope. What is accepted has one text and reads back as itself; a deny of the host
// takes away whatever was allowed; no address of this machine, of the site or of a cloud is pinned unless a rule names it or its kind.
#include <cstdlib>

#include "plugins/websec-http/scope/dial.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto url = Url::parse(line(text));
  auto address = parse_address(line(text));
  if (address) {
    auto again = parse_address(address->text());
    if (!again || !(*again == *address)) abort();
    if (!classify(*address).carries_restricted && classify(*address).reach == Reach::PUBLIC && !carried_by(*address).empty()) abort();
  }
  auto scope = Scope::parse(text);
  if (!scope) return 0;
  std::string canonical = scope->text();
  auto again = Scope::parse(canonical);
  if (!again || !(*again == *scope) || again->text() != canonical) abort();
  if (!url) return 0;

  Decision d = scope->decide(*url);
  if (d.allowed != (again->decide(*url).reason == Reason::ALLOWED) || d.verdicts.size() != scope->rules().size()) abort();
  scope->explain(*url, d).text();
  if (!d.allowed) return 0;
  if (!url->special() || url->scheme() == "file" || url->scheme() == "ftp") abort();
  for (size_t i : d.by)
    if (!scope->rules()[i].allow) abort();
  // A name with a % or a last dot is written otherwise in a rule.
  auto less = Scope::parse(canonical + "deny " + url->hostname());
  if (less && less->decide(*url).allowed) abort();

  bool names_places = false;
  for (size_t i : d.by)
    for (const Place& place : scope->rules()[i].places) names_places |= place.kind != Place::Kind::PUBLIC;
  for (const char* never : {"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1"}) {
    Dial dial = choose_address(*scope, d, *url, {*parse_address("8.8.8.8"), *parse_address(never)});
    if (dial.pinned && (!names_places || url->host()->is_address())) abort();
  }
  if (address) {
    Dial dial = choose_address(*scope, d, *url, {*address});
    if (dial.pinned && !(*dial.pinned == *address)) abort();
    if (dial.pinned.has_value() != dial.refusal.empty()) abort();
  }
  return 0;
}
