// A send of the log, to be said again: its line, and its bytes.
#pragma once
#include "h5i/plugin.hpp"
#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

// The send or the refusal of that number.
sdk::Result<PastSend> past_send(const sdk::Host& host, const std::string& number);

struct PastRequest {
  std::string head, body;
  Url url;
  bool raw = false;      // they were somebody's own bytes
  bool rebuilt = false;  // not kept, and yet the same: the digest of the line says so
};
// The exact bytes, whose digests are the line's. H5I_E_NOT_FOUND when they were not kept and cannot be rebuilt, H5I_E_INVALID of a refusal.
sdk::Result<PastRequest> past_request(const sdk::Host& host, const PastSend& sent);

// What came back, as it was kept: the head's bytes, and the body out of its codings as far as they come off within a bound.
struct PastAnswer {
  std::string head, body;
  bool whole = true;  // false: a coding stayed on, or there is more than the bound
};
// Nothing when it was not kept.
sdk::Result<std::optional<PastAnswer>> past_answer(const sdk::Host& host, const PastSend& sent);

// As a structure, to be edited. H5I_E_INVALID when only the exact bytes are its true form.
sdk::Result<Request> structured(const PastRequest& past);

// The URL of an edited request: this origin, that target. H5I_E_INVALID when a URL cannot hold the target as it is written.
sdk::Result<Url> url_with(const Url& origin, const Request& request);

}  // namespace h5i::websec
