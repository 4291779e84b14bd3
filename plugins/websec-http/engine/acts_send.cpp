#include "plugins/websec-http/engine/act_list.hpp"

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

sdk::Result<Answer> send_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  Scope scope = H5I_SDK_TRY(scope_of(session));
  Request request;
  SendOptions options;
  if (words["raw_hex"].is_string()) options.raw = H5I_SDK_TRY(unhex(words["raw_hex"].string()));
  if (words["body_hex"].is_string()) request.body = H5I_SDK_TRY(unhex(words["body_hex"].string()));
  request.method = words["method"].is_string() ? words["method"].string() : request.body ? "POST" : "GET";
  for (const json::Value& line : words["headers"].array())
    if (auto refused = request.headers.add_line(line.string())) return sdk::failure(H5I_E_INVALID, std::string(refused->id) + ": " + refused->what);
  options.follow = static_cast<int>(words["follow"].integer());
  options.timeout_ns = words["timeout_s"].integer(30) * 1'000'000'000;
  options.lenient = words["lenient"].boolean();
  options.expires_ns = session["expires_ns"].integer(INT64_MAX);
  options.capture = session["options"]["capture"].boolean();
  Recorder recorder(host);
  Sends sends = H5I_SDK_TRY(send(host, recorder, scope, words["url"].string(), std::move(request), options));
  json::Value rows = json::Array{}, lines = json::Array{};
  add_rows(std::move(sends), rows, lines);
  lines.push("not contained; h5i websec show " + session["name"].string() + " NUMBER");
  return Answer{json::Object{{"rows", std::move(rows)}, {"placement", "not contained"}, {"lines", std::move(lines)}}, sends.code};
}

}  // namespace h5i::websec
