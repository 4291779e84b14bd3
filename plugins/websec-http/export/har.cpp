// One entry of HAR 1.2, as its schema and Chromium's importer read it: no negative size but -1, `time` the sum of the timings that are known.
#include <algorithm>
#include <string>

#include "plugins/websec-http/decode/decode.hpp"
#include "plugins/websec-http/export/formats.hpp"
#include "plugins/websec-http/export/message_text.hpp"
#include "plugins/websec-http/http/response.hpp"
#include "plugins/websec-http/text/safe_json.hpp"

namespace h5i::websec {
namespace {

constexpr const char* kNotRecorded = "[not recorded]";

json::Value pair_of(std::string_view name, std::string value) { return json::Object{{"name", to_text(name)}, {"value", std::move(value)}}; }

std::string value_of(const HeaderText& h, const ExportRules& rules) { return is_masked(h.name, rules) ? mask_of(h.value.size()) : to_text(h.value); }

json::Value headers_of(const std::vector<HeaderText>& lines, const ExportRules& rules) {
  json::Value out = json::Array{};
  for (const HeaderText& h : lines) out.push(pair_of(h.name, value_of(h, rules)));
  return out;
}

// "a=b; c=d", or with `one` the first pair alone, whose attributes follow.
void add_cookies(std::string_view value, bool one, const ExportRules& rules, json::Value& out) {
  while (!value.empty()) {
    size_t end = std::min(value.find(';'), value.size());
    std::string_view pair = value.substr(0, end);
    value.remove_prefix(std::min(end + 1, value.size()));
    while (!pair.empty() && (pair.front() == ' ' || pair.front() == '\t')) pair.remove_prefix(1);
    size_t equals = pair.find('=');
    const bool named = equals != std::string_view::npos && equals > 0;
    std::string_view text = named ? pair.substr(equals + 1) : pair;
    if (!pair.empty()) out.push(pair_of(named ? pair.substr(0, equals) : "(nameless)", rules.with_credentials ? to_text(text) : mask_of(text.size())));
    if (one) return;
  }
}

json::Value query_of(const std::string& url) {
  json::Value out = json::Array{};
  size_t question = url.find('?');
  if (question == std::string::npos) return out;
  for (size_t at = question + 1; at < url.size();) {
    size_t end = std::min(url.find('&', at), url.size());
    std::string_view pair = std::string_view(url).substr(at, end - at);
    size_t equals = std::min(pair.find('='), pair.size());
    if (!pair.empty()) out.push(pair_of(pair.substr(0, equals), std::string(pair.substr(std::min(equals + 1, pair.size())))));
    at = end + 1;
  }
  return out;
}

std::string version_in(std::string_view line) {
  size_t at = line.find("HTTP/");
  return at == std::string_view::npos ? std::string() : to_text(line.substr(at, std::min(line.find(' ', at), line.size()) - at));
}

// What the log says in its own words when it knows another protocol.
std::string version_of(const ExportedSend& e, const std::optional<std::string>& head, const char* otherwise) {
  if (const std::string& p = e.record["protocol"].string(); !p.empty()) return p == "h2" ? "HTTP/2" : p;
  std::string said = head ? version_in(first_line(*head)) : std::string();
  return said.empty() ? otherwise : said;
}

json::Value request_of(const ExportedSend& e, const ExportRules& rules) {
  const std::string& url = e.record["url"].string();
  json::Value headers = json::Array{}, cookies = json::Array{};
  std::string method = e.record["method"].string(), type;
  json::Value out = json::Object{};
  if (e.request_head) {
    auto lines = header_texts(*e.request_head);
    headers = headers_of(lines, rules);
    for (const HeaderText& h : lines) {
      if (same_name(h.name, "cookie")) add_cookies(h.value, false, rules, cookies);
      if (same_name(h.name, "content-type")) type = to_text(h.value);
    }
    if (e.record["raw"].boolean())
      if (std::string_view line = first_line(*e.request_head); !line.empty() && line.find(' ') != std::string_view::npos) method = to_text(line.substr(0, line.find(' ')));
  } else {
    for (const json::Value& line : e.record["computed"].array()) {
      size_t colon = std::min(line.string().find(':'), line.string().size());
      size_t value = std::min(line.string().find_first_not_of(" \t", std::min(colon + 1, line.string().size())), line.string().size());
      headers.push(pair_of(line.string().substr(0, colon), line.string().substr(value)));
    }
    for (const json::Value& name : e.record["credentials"].array()) headers.push(pair_of(name.string(), kNotRecorded));
    for (const json::Value& name : e.record["cookies"].array()) cookies.push(pair_of(name.string(), kNotRecorded));
    out["comment"] = "the session keeps no messages: headers are those that h5i added and the names of credentials";
  }
  out["method"] = method;
  out["url"] = url;
  out["httpVersion"] = version_of(e, e.request_head, "HTTP/1.1");
  out["cookies"] = std::move(cookies);
  out["headers"] = std::move(headers);
  out["queryString"] = query_of(url);
  out["headersSize"] = e.record["head_bytes"].integer(-1);
  out["bodySize"] = e.record["body_bytes"].integer(-1);
  if (e.request_body && !e.request_body->empty()) {
    json::Value post = json::Object{{"mimeType", type.empty() ? "application/octet-stream" : type}};
    if (is_utf8(*e.request_body)) {
      post["text"] = *e.request_body;
    } else {
      post["text"] = base64(*e.request_body);
      post["_encoding"] = "base64";
      post["comment"] = "the bytes are not UTF-8: text is base64";
    }
    out["postData"] = std::move(post);
  }
  return out;
}

bool holds(const json::Value& names, std::string_view name) {
  return std::any_of(names.array().begin(), names.array().end(), [&](const json::Value& n) { return same_name(n.string(), name); });
}

// A kept body without its content codings; nothing when one of them stays on.
std::optional<std::string> decoded(const ExportedSend& e) {
  Oddities oddities(false);
  ResponseHead head;
  std::string bytes = *e.response_head;
  if (!read_response_head(std::move(bytes), 0, ResponseLimits{}.fields, oddities, &head)) return std::nullopt;
  const std::vector<std::string> codings = content_codings(head.fields);
  if (codings.empty()) return e.response_body;
  StringSink out;
  BodyDecoder decoder(codings, {}, out);
  if (!decoder.take(*e.response_body) || !decoder.finish() || !decoder.left_on().empty()) return std::nullopt;
  return std::move(out.bytes);
}

json::Value content_of(const ExportedSend& e) {
  const json::Value& o = e.outcome;
  const int64_t wire = o["body_bytes"].integer(-1);
  int64_t size = wire > 0 && holds(o["headers"], "content-encoding") ? -1 : wire;
  if (o["decoded_bytes"].is_int() && o["codings_left_on"].is_null()) size = std::max<int64_t>(o["decoded_bytes"].integer(), 0);
  json::Value out = json::Object{};
  std::string type = o["content_type"].string();
  if (e.response_head && e.response_body && !e.response_body->empty()) {
    std::optional<std::string> plain = decoded(e);
    const std::string& text = plain ? *plain : *e.response_body;
    size = plain ? static_cast<int64_t>(plain->size()) : -1;
    if (!plain) out["comment"] = "as it came: its content coding could not be taken off";
    if (!plain || !is_utf8(text)) out["encoding"] = "base64";
    out["text"] = plain && is_utf8(text) ? text : base64(text);
    if (size >= 0 && wire >= 0 && size != wire) out["compression"] = size - wire;
  }
  out["size"] = size;
  out["mimeType"] = type.empty() ? "x-unknown" : type;
  return out;
}

json::Value response_of(const ExportedSend& e, const ExportRules& rules) {
  const json::Value& o = e.outcome;
  const int64_t status = o["status"].integer();
  json::Value headers = json::Array{}, cookies = json::Array{};
  if (status != 0 && e.response_head) {
    const auto lines = header_texts(*e.response_head);
    headers = headers_of(lines, rules);
    for (const HeaderText& h : lines)
      if (same_name(h.name, "set-cookie")) add_cookies(h.value, true, rules, cookies);
  } else {
    for (const json::Value& name : o["headers"].array()) {
      const bool type = same_name(name.string(), "content-type") && o["content_type"].is_string(), to = same_name(name.string(), "location") && o["location"].is_string();
      headers.push(pair_of(name.string(), type ? o["content_type"].string() : to ? o["location"].string() : kNotRecorded));
    }
    for (const json::Value& name : o["set_cookie"].array()) cookies.push(pair_of(name.string(), kNotRecorded));
  }
  json::Value out = json::Object{{"status", std::max<int64_t>(status, 0)},
                                 {"statusText", o["reason"].string()},
                                 {"httpVersion", status == 0 ? "unknown" : version_of(e, e.response_head, "HTTP/1.1")},
                                 {"cookies", std::move(cookies)},
                                 {"headers", std::move(headers)},
                                 {"redirectURL", o["location"].string()},
                                 {"headersSize", std::max<int64_t>(o["head_bytes"].integer(-1), -1)},
                                 {"bodySize", std::max<int64_t>(o["body_bytes"].integer(-1), -1)}};
  out["content"] = status == 0 ? json::Value(json::Object{{"size", 0}, {"mimeType", "x-unknown"}}) : content_of(e);
  if (e.ended != "complete" && e.ended != "tunnel") {
    out["_error"] = e.ended;
    if (!o["text"].string().empty()) out["comment"] = o["text"].string();
  }
  return out;
}

struct Times {
  int64_t dns = -1, connect = -1, ssl = -1, send = 0, wait = 0, receive = 0;  // microseconds
  int64_t sum() const { return std::max<int64_t>(dns, 0) + std::max<int64_t>(connect, 0) + send + wait + receive; }
};

// The log has moments since the record; what happened between two of them is a timing. TLS is a part of connecting, as in Chromium.
Times times_of(const json::Value& t) {
  Times out;
  int64_t at = 0;
  auto until = [&](const char* moment) {
    int64_t next = std::max(at, t[moment].integer(at)), took = next - at;
    at = next;
    return took;
  };
  if (t["connect_us"].is_int()) out.connect = until("connect_us");
  if (t["tls_us"].is_int()) {
    out.ssl = until("tls_us");
    out.connect = std::max<int64_t>(out.connect, 0) + out.ssl;
  }
  if (t["written_us"].is_int()) out.send = until("written_us");
  if (t["first_byte_us"].is_int()) {
    out.wait = until("first_byte_us");
    out.receive = until("total_us");
  } else {
    int64_t rest = until("total_us");
    if (t["written_us"].is_int()) out.wait = rest;
    else out.connect = std::max<int64_t>(out.connect, 0) + rest;
  }
  return out;
}

json::Value milliseconds(int64_t us) {
  if (us < 0) return -1;
  if (us % 1000 == 0) return us / 1000;
  return static_cast<double>(us) / 1000;
}

// Seconds since 1970 of "2026-01-02T03:04:05.678Z"; 0 for anything else.
double seconds_of(const std::string& time) {
  int y = 0, mo = 0, d = 0, h = 0, mi = 0;
  double s = 0;
  if (sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf", &y, &mo, &d, &h, &mi, &s) != 6 || mo < 1 || mo > 12) return 0;
  // Days since the epoch, of a year that begins in March.
  int64_t year = mo <= 2 ? y - 1 : y, era = year / 400, of_era = year - era * 400, of_year = (153 * (mo + (mo > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
  return static_cast<double>(days * 86400 + h * 3600 + mi * 60) + s;
}

json::Value web_socket_messages(const ExportedSend& e) {
  json::Value out = json::Array{};
  for (const ExportedFrame& f : e.frames) {
    const json::Value& b = f.body;
    json::Value m = json::Object{{"type", b["direction"].string() == "send" ? "send" : "receive"}, {"time", seconds_of(b["time"].string())}, {"opcode", b["opcode"].integer()}};
    // As Chromium writes it: the data of a binary frame is base64.
    const std::string bytes = f.payload.value_or("");
    m["data"] = b["opcode"].integer() == 1 && is_utf8(bytes) ? bytes : base64(bytes);
    if (b["payload"].is_string()) m["_sha256"] = b["payload"];
    out.push(std::move(m));
  }
  return out;
}

}  // namespace

std::string har_entry(const ExportedSend& e, const ExportRules& rules) {
  Times t = times_of(e.outcome["times"]);
  if (e.record["dns_us"].is_int()) t.dns = std::max<int64_t>(e.record["dns_us"].integer(), 0);  // before the record
  json::Value out = json::Object{{"startedDateTime", e.time}, {"time", milliseconds(t.sum())}, {"request", request_of(e, rules)}, {"response", response_of(e, rules)}, {"cache", json::Object{}}};
  out["timings"] = json::Object{{"blocked", -1}, {"dns", milliseconds(t.dns)}, {"connect", milliseconds(t.connect)}, {"ssl", milliseconds(t.ssl)}, {"send", milliseconds(t.send)}, {"wait", milliseconds(t.wait)}, {"receive", milliseconds(t.receive)}};
  const std::string& peer = e.record["peer"].string();
  if (size_t colon = peer.rfind(':'); colon != std::string::npos) {
    std::string address = peer.substr(0, colon);
    if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
    out["serverIPAddress"] = address;
  }
  json::Value own = json::Object{{"number", e.number}, {"ended", e.ended}, {"lane", "engine-claimed"}, {"request_head_sha256", e.record["head_sha256"]}, {"request_body_sha256", e.record["body_sha256"]}};
  for (const char* key : {"parent", "replay_of", "identity", "experiment", "input", "dropped", "raw"})
    if (!e.record[key].is_null()) own[key] = e.record[key];
  if (e.outcome["body_sha256"].is_string()) own["response_body_sha256"] = e.outcome["body_sha256"];
  if (!e.outcome["facts"].array().empty()) own["facts"] = e.outcome["facts"];
  out["_h5i"] = std::move(own);
  if (!e.frames.empty()) {
    out["_resourceType"] = "websocket";
    out["_webSocketMessages"] = web_socket_messages(e);
  }
  return safe_json(json::canonical(out));
}

}  // namespace h5i::websec
