// A head whose bytes nobody kept: what the log says of it may be enough.
#pragma once
#include <optional>
#include <string>

#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

// A request of this method for this URL with no header of its author's and no body: the head that we would write. Whether it is the one that was
// sent, its digest says. Nothing when no such head is written.
std::optional<std::string> plain_head(const std::string& method, const Url& url);

}  // namespace h5i::websec
