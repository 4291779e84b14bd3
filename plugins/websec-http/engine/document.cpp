// A request as a document's script would make it (Fetch): whether it may be sent, asked first where it must, and whether the answer may be read.
#include "plugins/websec-http/engine/sender.hpp"

namespace h5i::websec {
namespace {

Fields fields_of(const ResponseHead& head) {
  Fields out;
  for (size_t i = 0; i < head.fields.size(); i++) {
    FieldView f = head.fields.field(i);
    out.push_back({f.name, f.value});
  }
  return out;
}

}  // namespace

DocumentRequest Sender::as_document(const Url& url, const Request& request) const {
  DocumentRequest out;
  if (!tainted_) out.document = options_.document->origin();
  out.url = &url;
  out.method = request.method;
  out.credentials = options_.credentials;
  for (const HeaderLine& h : request.headers.lines()) out.fields.push_back({h.name(), h.value()});
  return out;
}

sdk::Result<bool> Sender::document_may(const Url& url, const Request& request) {
  CorsPlan plan = plan_cors(as_document(url, request));
  if (plan.kind != CorsPlan::Kind::PREFLIGHT) return true;
  auto decision = H5I_SDK_TRY(in_scope(url));
  if (!decision) return false;
  auto way = H5I_SDK_TRY(way_to(url, std::move(*decision)));
  if (!way) return false;
  Request preflight;
  preflight.method = "OPTIONS";
  preflight.scheme = request.scheme;
  preflight.authority = request.authority;
  preflight.target = request.target;
  const std::pair<const char*, std::string> lines[] = {{"Accept", "*/*"}, {"Origin", plan.origin}, {"Access-Control-Request-Method", plan.request_method}, {"Access-Control-Request-Headers", plan.request_headers}};
  for (const auto& [name, value] : lines)
    if (!value.empty()) (void)preflight.headers.add(name, value);
  Intent intent;
  intent.method = "OPTIONS";
  intent.url = url.href_without_fragment();
  intent.peer = way->peer.to.text();
  intent.tls_name = way->peer.tls_name;
  intent.rule = scope_.rule_text(way->decision);
  intent.preflight = true;
  auto wire = H5I_SDK_TRY(wire_for(url, *way, intent, options_.http2));
  if (!wire) return false;
  Asked how;
  how.method = "OPTIONS";
  if (auto refused = options_.http2 ? write_h2(preflight, *wire, how, intent) : write_h1(preflight, false, how, intent)) {
    H5I_SDK_TRY(refuse(intent.url, "request", std::string(refused->id) + ": " + refused->what, 1));
    return false;
  }
  auto made = H5I_SDK_TRY(make(url, std::move(intent), way->peer, std::move(how), std::move(wire)));
  if (!made) return false;
  CorsVerdict verdict{false, "the preflight was not answered"};
  if (const ResponseHead* head = made->exchange->head(); head && made->exchange->one_reading()) verdict = check_preflight(as_document(url, request), head->status, fields_of(*head));
  json::Value because = json::Array{};
  for (const std::string& b : plan.because) because.push(log_text(b));
  made->facts["cors"] = json::Object{{"allowed", verdict.allowed}, {"why", log_text(verdict.why)}, {"because", std::move(because)}};
  H5I_SDK_TRY(told(made->exchange->sent(), *made));
  if (verdict.allowed) return true;
  H5I_SDK_TRY(refuse(url.href_without_fragment(), "cors-preflight", verdict.why, 1));
  return false;
}

void Sender::judge_for_document(const Url& url, const Request& request, const ResponseHead& head, json::Value& facts) const {
  CorsVerdict verdict = check_response(as_document(url, request), fields_of(head));
  facts["cors"] = json::Object{{"allowed", verdict.allowed}, {"why", log_text(verdict.why)}};
}

}  // namespace h5i::websec
