#include "plugins/websec-http/engine/answer.hpp"

#include <algorithm>

#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/facts/facts.hpp"
#include "plugins/websec-http/http/syntax.hpp"
#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kShown = 2048;            // of a header's value in the log
constexpr size_t kNames = 200;             // of headers or cookies in the log
constexpr size_t kName = 100;              // bytes of each
constexpr size_t kLookedAt = 1u << 20;     // of a decoded body, for passive facts
constexpr size_t kMostPassive = 200;

}  // namespace

bool AnswerBody::Decoded::take(std::string_view bytes) {
  hash.add(bytes);
  if (events) (void)events->take(bytes);
  if (start.size() < kLookedAt) start.append(bytes.substr(0, kLookedAt - start.size()));
  return true;
}

bool AnswerBody::take(std::string_view bytes) {
  if (!begun_) {
    begun_ = true;
    auto type = head_().fields.first("content-type");
    if (type && syntax::same(syntax::trimmed(type->value.substr(0, type->value.find(';'))), "text/event-stream")) decoded_.events = events_;
    DecodeLimits limits;
    limits.output = most_decoded_;
    if (auto codings = content_codings(head_().fields); !codings.empty()) decoder_ = std::make_unique<BodyDecoder>(codings, limits, decoded_);
  }
  hash_.add(bytes);
  if (keep_) kept_.append(bytes);
  // A coding that went wrong ends the decoding and not the reading: what was on the wire is the evidence.
  if (!decoder_) decoded_.take(bytes);
  else if (!decoder_->stopped()) (void)decoder_->take(bytes);
  return true;
}

void AnswerBody::finish() {
  if (decoder_ && !decoder_->stopped()) (void)decoder_->finish();
}

void AnswerBody::describe(json::Value& facts, json::Value& odd) {
  facts["body_sha256"] = hash_.hex();
  if (!decoder_) return;
  facts["decoded_bytes"] = decoder_->decoded();
  facts["decoded_sha256"] = decoded_.hash.hex();
  for (const DecodeFact& f : decoder_->facts()) odd.push(json::Object{{"id", f.id}, {"offset", f.offset}, {"count", f.count}, {"coding", log_text(f.coding.substr(0, kName))}});
  if (decoder_->left_on().empty()) return;
  json::Value left = json::Array{};
  for (const std::string& c : decoder_->left_on()) left.push(log_text(c.substr(0, kName)));
  facts["codings_left_on"] = std::move(left);
}

std::string log_text(std::string_view bytes) { return to_valid_utf8(bytes.substr(0, kShown)); }

std::string log_url(std::string_view text) { return text.find('@') == std::string_view::npos ? log_text(text) : "(no URL, " + std::to_string(text.size()) + " bytes)"; }

std::string cookie_name(std::string_view pair) {
  while (!pair.empty() && (pair.front() == ' ' || pair.front() == '\t')) pair.remove_prefix(1);
  size_t equals = pair.find('=');
  return equals == std::string_view::npos || equals == 0 ? "(nameless)" : to_valid_utf8(pair.substr(0, std::min(equals, kName)));
}

void describe_head(const ResponseHead& head, json::Value& facts) {
  facts["status"] = head.status;
  facts["reason"] = log_text(head.reason().substr(0, std::min(head.reason().find('\r'), kName)));
  facts["head_bytes"] = head.fields.bytes().size();
  facts["head_sha256"] = sha256_hex(head.fields.bytes());
  json::Value names = json::Array{}, cookies = json::Array{};
  for (size_t i = 0; i < head.fields.size(); i++) {
    FieldView f = head.fields.field(i);
    if (i < kNames) names.push(to_valid_utf8(f.name.substr(0, kName)));
    if (syntax::same(f.name, "set-cookie") && cookies.array().size() < kNames) cookies.push(cookie_name(f.value.substr(0, std::min(f.value.find(';'), f.value.size()))));
  }
  facts["headers"] = std::move(names);
  if (!cookies.array().empty()) facts["set_cookie"] = std::move(cookies);
  if (auto type = head.fields.first("content-type")) facts["content_type"] = log_text(type->value);
  if (head.status == 429 || head.status == 503) {
    facts["throttled"] = true;
    if (auto after = head.fields.first("retry-after")) facts["retry_after"] = log_text(after->value.substr(0, kName));
  }
}

json::Value passive_lines(const Url& url, std::string_view request_head, const ResponseHead& head, std::string_view body_start) {
  const std::string origin = url.origin().text();
  Exchange exchange{.secure = url.scheme() == "https" || url.scheme() == "wss", .origin = origin, .request_head = request_head, .response = &head, .body = body_start};
  constexpr const char* kPlaces[] = {"request-head", "response-head", "body"};
  json::Value out = json::Array{};
  const PassiveFacts found = passive_facts(exchange);
  for (const PassiveFact& f : found.list()) {
    if (out.array().size() == kMostPassive) break;
    json::Value line = json::Object{{"id", passive_id(f.id)}, {"place", kPlaces[static_cast<size_t>(f.place)]}, {"offset", f.offset}};
    if (!f.detail.empty()) line["detail"] = log_url(f.detail);
    out.push(std::move(line));
  }
  return out;
}

std::optional<Url> next_hop(const Url& from, const ResponseHead& head, json::Value& facts) {
  auto location = head.fields.first("location");
  if (!location || !is_redirect(head.status)) return std::nullopt;
  facts["location"] = log_url(location->value);
  auto to = Url::parse(location->value, &from);
  if (to.ok()) return *to;
  facts["location_error"] = to.error().text;
  return std::nullopt;
}

}  // namespace h5i::websec
