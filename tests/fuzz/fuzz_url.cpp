// Any bytes as a URL, and as a reference against one: what is accepted reads back as itself, has the host that its text shows, and
// holds no byte that a request line or a log line could be broken with.
#include <cstdlib>

#include "plugins/websec-http/url/charset.hpp"
#include "plugins/websec-http/url/percent.hpp"
#include "plugins/websec-http/url/url.hpp"
#include "plugins/websec-http/url/utf8.hpp"

using namespace h5i::websec;

namespace {

void check(const Url& url) {
  std::string href = url.href();
  for (char c : href)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) abort();
  auto again = Url::parse(href);
  if (!again || again->href() != href || !(*again == url)) abort();
  if (href.find('#') != std::string::npos && url.href_without_fragment().find('#') != std::string::npos) abort();
  if (!url.special()) return;
  if (!url.host() || url.has_opaque_path() || !url.path().starts_with('/')) abort();
  if (url.scheme() != "file" && url.host()->text.empty()) abort();
  if (url.path().find_first_of(" \\?#\"<>`{}") != std::string::npos || (url.query() && url.query()->find_first_of(" #'\"<>") != std::string::npos)) abort();
  if (!url.host()->text.empty()) {
    auto host = parse_host(url.host()->text, true);
    if (!host || !(*host == *url.host())) abort();
  }
  Origin origin = url.origin();
  if (origin.opaque != (url.scheme() == "file") || (!origin.opaque && !origin.same(Url::parse(origin.text())->origin()))) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string utf8 = to_valid_utf8(text);
  if (to_valid_utf8(utf8) != utf8) abort();
  if (percent_decode(percent_encode(text, EncodeSet::COMPONENT)) != text) abort();
  for (const char* charset : {"iso-2022-jp", "gb18030", "big5"})
    if (!percent_encode_in(charset, utf8, EncodeSet::QUERY)) abort();
  // A line that ends the base, then the reference.
  size_t newline = text.find('\n');
  auto base = Url::parse(text.substr(0, newline));
  if (base) check(*base);
  std::string_view reference = newline == std::string_view::npos ? text : text.substr(newline + 1);
  for (const char* fixed : {"http://a.test:8080/b/c?d#e", "file:///C:/x/y", "foo://a/b/c", "mailto:x"}) {
    auto against = Url::parse(fixed);
    if (auto url = Url::parse(reference, &*against)) check(*url);
  }
  if (base)
    if (auto url = Url::parse(reference, &*base)) check(*url);
  return 0;
}
