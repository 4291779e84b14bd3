#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/scope/route.hpp"

namespace h5i::websec {

sdk::Result<std::string> unhex(const std::string& digits) {
  std::string out;
  auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    int high = value(digits[i]), low = value(digits[i + 1]);
    if (high < 0 || low < 0) return sdk::failure(H5I_E_INVALID, "bytes that are no hexadecimal digits");
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

std::string line_of(const Row& row) {
  const json::Value& f = row.facts;
  std::string line = "#" + std::to_string(row.seq) + "  ";
  if (!row.sent) return line + "refused (" + f["why"].string() + ")  " + f["url"].string();
  line += f["method"].string() + " " + f["url"].string() + "  ";
  if (f["status"].is_int()) line += std::to_string(f["status"].integer()) + " " + f["reason"].string() + ", " + std::to_string(f["body_bytes"].integer()) + " bytes, ";
  if (f["ended"].string() != "complete") line += f["ended"].string() + ", ";
  return line + std::to_string(f["times"]["total_us"].integer() / 1000) + " ms";
}

void add_forged(const Tools& tools, json::Value& document) {
  json::Value forged = tools.box ? tools.box->forged() : json::Value(json::Array{});
  if (!forged.array().empty()) document["forged"] = std::move(forged);
}

void add_budget(const Tools& tools, json::Value& document) {
  auto budget = tools.recorder.budget();
  if (!budget) return;
  document["budget"] = budget->value();
  document["lines"].push("of its budget: " + budget->text());
}

void add_rows(Sends sends, json::Value& rows, json::Value& lines) {
  for (Row& row : sends.rows) {
    const json::Value& facts = row.facts;
    lines.push(line_of(row));
    if (!facts["text"].string().empty()) lines.push("    " + facts["text"].string());
    for (const json::Value& o : facts["facts"].array()) lines.push("    odd: " + o["id"].string());
    row.facts["number"] = row.seq;
    row.facts["sent"] = row.sent;
    rows.push(std::move(row.facts));
  }
}

sdk::Result<std::unique_ptr<Tools>> tools_of(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  TlsContext::Options trust;
  trust.verify = !words["insecure"].boolean();
  trust.ca_pem = session["options"]["ca_pem"].string();
  const bool reuse = words["reuse"].boolean();
  auto out = std::make_unique<Tools>(host, H5I_SDK_TRY(scope_of(session)), trust, reuse, placement_of(session));
  if (session["peer"].is_int()) out->box = std::make_unique<Box>(static_cast<int>(session["peer"].integer()), out->placement, out->scope, trust, reuse);
  else if (session["placement"]["box"].is_string()) return sdk::failure(H5I_E_INTERNAL, "the wire of this session is in a box, and there is no channel to it");
  const json::Value& session_options = session["options"];
  if (session_options["durable"].boolean()) out->recorder.make_durable();
  if (session_options["budget"].is_object()) out->recorder.hold_to(Budget(session_options["budget"], H5I_SDK_TRY(spent_so_far(host))));
  if (words["cookies"].boolean(true)) out->cookies = H5I_SDK_TRY(CookieStore::open(words["as"].string()));
  return out;
}

SendOptions options_of(const json::Value& session, const json::Value& words, Tools& tools) {
  SendOptions options;
  options.follow = static_cast<int>(words["follow"].integer());
  options.timeout_ns = words["timeout_s"].integer(30) * 1'000'000'000;
  options.lenient = words["lenient"].boolean();
  options.http2 = words["http2"].boolean();
  if (words["max_bytes"].is_int()) options.most_bytes = options.most_decoded = static_cast<uint64_t>(words["max_bytes"].integer());
  options.expires_ns = session["expires_ns"].integer(INT64_MAX);
  options.capture = session["options"]["capture"].boolean();
  options.identity = words["as"].string();
  options.transport = &tools.transport;
  options.cookies = tools.cookies.get();
  options.box = tools.box.get();
  return options;
}

sdk::Result<Answer> send_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  auto tools = H5I_SDK_TRY(tools_of(host, session, words));
  Request request;
  SendOptions options = options_of(session, words, *tools);
  if (words["raw_hex"].is_string()) options.raw = H5I_SDK_TRY(unhex(words["raw_hex"].string()));
  if (words["body_hex"].is_string()) request.body = H5I_SDK_TRY(unhex(words["body_hex"].string()));
  request.method = words["method"].is_string() ? words["method"].string() : request.body ? "POST" : "GET";
  for (const json::Value& line : words["headers"].array())
    if (auto refused = request.headers.add_line(line.string())) return sdk::failure(H5I_E_INVALID, std::string(refused->id) + ": " + refused->what);
  if (words["proxy"].is_string()) options.proxy = H5I_SDK_TRY(parse_proxy(words["proxy"].string()));
  for (const json::Value& line : words["proxy_headers"].array())
    if (auto refused = options.proxy_headers.add_line(line.string())) return sdk::failure(H5I_E_INVALID, std::string(refused->id) + ": " + refused->what);
  if (words["document"].is_string()) {
    options.document = H5I_SDK_TRY(Url::parse(words["document"].string()));
    options.credentials = words["credentials"].boolean();
  }
  for (const json::Value& m : words["messages"].array()) options.messages.push_back(m.string());
  options.listen_ns = words["listen_s"].integer() * 1'000'000'000;
  Sends sends = H5I_SDK_TRY(send(host, tools->recorder, tools->scope, words["url"].string(), std::move(request), options));
  if (tools->cookies) H5I_SDK_TRY(tools->cookies->save());
  json::Value rows = json::Array{}, lines = json::Array{};
  const int code = sends.code;
  add_rows(std::move(sends), rows, lines);
  lines.push(tools->placement.text + "; h5i websec show " + session["name"].string() + " NUMBER");
  json::Value document = json::Object{{"rows", std::move(rows)}, {"placement", tools->placement.text}, {"lines", std::move(lines)}};
  add_forged(*tools, document);
  add_budget(*tools, document);
  return Answer{std::move(document), code};
}

sdk::Result<Answer> jar_act(const sdk::Host&, const json::Value&, const json::Value& words) {
  auto store = H5I_SDK_TRY(CookieStore::open(words["as"].string()));
  json::Value lines = json::Array{};
  if (words["clear"].boolean()) {
    store->clear();
    H5I_SDK_TRY(store->save());
    lines.push("the jar is empty");
  }
  json::Value cookies = store->list();
  for (const json::Value& c : cookies.array())
    lines.push(c["domain"].string() + c["path"].string() + "  " + c["name"].string() + "  " + std::to_string(c["value_bytes"].integer()) + " bytes" + (c["secure"].boolean() ? ", secure" : "") +
               (c["http_only"].boolean() ? ", http-only" : "") + (c["host_only"].boolean() ? ", this host" : "") + ", same-site " + c["same_site"].string());
  if (lines.array().empty()) lines.push("no cookie");
  return Answer{json::Object{{"cookies", std::move(cookies)}, {"lines", std::move(lines)}}, 0};
}

}  // namespace h5i::websec
