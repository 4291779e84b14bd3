#include "plugins/websec-http/engine/past.hpp"

#include "plugins/websec-http/decode/decode.hpp"
#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/replay/rebuild.hpp"

namespace h5i::websec {
namespace {
constexpr size_t kLargest = size_t{64} << 20;
constexpr uint64_t kDecoded = 16u << 20;
}

sdk::Result<PastSend> past_send(const sdk::Host& host, const std::string& number) {
  std::optional<PastSend> found;
  const Filter numbered = H5I_SDK_TRY(parse_filter("seq:" + number));
  H5I_SDK_TRY(each_send(host, {.filters = {numbered}}, [&](Told& told) -> sdk::Result<bool> {
    found = std::move(told.send);
    return false;
  }));
  if (found) return *std::move(found);
  return sdk::failure(H5I_E_NOT_FOUND, "the session has no send #" + number);
}

sdk::Result<PastRequest> past_request(const sdk::Host& host, const PastSend& sent) {
  const std::string number = "#" + std::to_string(sent.seq);
  if (sent.refused) return sdk::failure(H5I_E_INVALID, number + " was refused (" + sent.ended() + ") and never sent: there is nothing to say again");
  if (sent.body["protocol"].is_string()) return sdk::failure(H5I_E_INVALID, number + " was sent as " + sent.body["protocol"].string() + ": its frames belong to the connection they were sent on; say it again with h5i websec send");
  auto url = Url::parse(sent.body["url"].string());
  if (!url.ok()) return sdk::failure(H5I_E_CORRUPT, number + " has no URL");
  PastRequest out{{}, {}, *url, sent.body["raw"].boolean(), false};
  const std::string &head = sent.body["head_sha256"].string(), &body = sent.body["body_sha256"].string();
  auto kept = host.get(head, kLargest);
  if (kept.ok()) {
    out.head = *std::move(kept);
    if (sent.body["body_bytes"].integer() > 0) out.body = H5I_SDK_TRY(host.get(body, kLargest));
  } else if (auto plain = sent.body["body_bytes"].integer() == 0 ? plain_head(sent.body["method"].string(), *url) : std::nullopt) {
    out.head = *std::move(plain);
    out.rebuilt = true;
  }
  if (!out.head.empty() && sha256_hex(out.head) == head && sha256_hex(out.body) == body) return out;
  if (kept.ok()) return sdk::failure(H5I_E_CORRUPT, "the kept bytes of " + number + " are not those of its line");
  return sdk::failure(H5I_E_NOT_FOUND, "the bytes of " + number + " were not kept: a session keeps them when it is opened with --capture (without it, only a request that had no header and no body of its own can be said again)");
}

sdk::Result<std::optional<PastAnswer>> past_answer(const sdk::Host& host, const PastSend& sent) {
  const json::Value& kept = sent.outcome["kept"];
  if (!kept["response_head"].is_string()) return std::optional<PastAnswer>();
  PastAnswer out;
  out.head = H5I_SDK_TRY(host.get(kept["response_head"].string(), kLargest));
  if (kept["response_body"].is_string()) out.body = H5I_SDK_TRY(host.get(kept["response_body"].string(), kLargest));
  Oddities odd(false);
  ResponseHead head;
  if (!read_response_head(std::string(out.head), 0, 1000, odd, &head)) return std::optional<PastAnswer>(std::move(out));
  const std::vector<std::string> codings = content_codings(head.fields);
  if (codings.empty()) return std::optional<PastAnswer>(std::move(out));
  StringSink plain;
  BodyDecoder decoder(codings, {.output = kDecoded}, plain);
  decoder.take(out.body);
  out.whole = decoder.finish() && decoder.left_on().empty();
  out.body = std::move(plain.bytes);
  return std::optional<PastAnswer>(std::move(out));
}

sdk::Result<Request> structured(const PastRequest& past) {
  Request r;
  if (auto no = read_request(past.head, past.body, past.url.scheme(), &r)) return sdk::failure(H5I_E_INVALID, no->what);
  // Raw bytes may ask for one thing and be logged under the URL of another.
  if (past.raw && (r.form != TargetForm::ORIGIN || r.target != past.url.path() + (past.url.query() ? "?" + *past.url.query() : "")))
    return sdk::failure(H5I_E_INVALID, "these raw bytes ask for something else than their URL; they can only be replayed as exact bytes");
  return r;
}

sdk::Result<Url> url_with(const Url& origin, const Request& request) {
  if (request.form != TargetForm::ORIGIN) return origin;
  auto url = Url::parse(origin.origin().text() + request.target);
  if (!url.ok()) return sdk::failure(H5I_E_INVALID, "the edited target is no URL's: " + url.error().text);
  if (!url->origin().same(origin.origin()) || url->path() + (url->query() ? "?" + *url->query() : "") != request.target)
    return sdk::failure(H5I_E_INVALID, "a URL would write the edited target in another way; exact bytes are sent with --raw");
  return *url;
}

}  // namespace h5i::websec
