// What a redirect makes of a request. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

bool is_redirect(int status);

// Header names that say who asks: of these only the name is recorded, and no other origin ever gets one.
bool is_credential(std::string_view name);

// `request` for the next hop, after an answer of `status` (Fetch, HTTP-redirect fetch): the method becomes GET after 303, and after 301 and 302
// of a POST; then the body goes and what describes it. To another origin only headers go that are known to say nothing of who asks; the others
// are named in `dropped`. A Host of the author's own is meant for the first origin alone.
void redirected(Request& request, int status, const Url& from, const Url& to, std::vector<std::string>* dropped);

// From https to anything that is not.
bool is_downgrade(const Url& from, const Url& to);

}  // namespace h5i::websec
