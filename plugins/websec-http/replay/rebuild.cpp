#include "plugins/websec-http/replay/rebuild.hpp"

namespace h5i::websec {

std::optional<std::string> plain_head(const std::string& method, const Url& url) {
  Request r;
  r.method = method;
  r.scheme = url.scheme();
  r.authority = url.host_and_port();
  r.target = url.path() + (url.query() ? "?" + *url.query() : "");
  Written written;
  if (write_request(r, &written)) return std::nullopt;
  return written.head;
}

}  // namespace h5i::websec
