#include "plugins/websec-http/export/formats.hpp"

#include <array>
#include <utility>

#include "plugins/websec-http/export/message_text.hpp"
#include "plugins/websec-http/text/safe_json.hpp"

namespace h5i::websec {
namespace {

constexpr std::array<std::pair<ExportFormat, std::string_view>, 4> kNames = {
    {{ExportFormat::HAR, "har"}, {ExportFormat::JSONL, "jsonl"}, {ExportFormat::WARC, "warc"}, {ExportFormat::CURL, "curl"}}};

std::string warc_info(const ExportSource& source);

}  // namespace

std::optional<ExportFormat> export_format(std::string_view name) {
  for (const auto& [format, word] : kNames)
    if (word == name) return format;
  return std::nullopt;
}

std::string_view name_of(ExportFormat format) {
  for (const auto& [known, word] : kNames)
    if (known == format) return word;
  return {};
}

bool tells_refusals(ExportFormat format) { return format == ExportFormat::JSONL; }

std::string json_line(const ExportedSend& e) {
  json::Value out = json::Object{{"schema", "h5i.websec-line/1"}, {"number", e.number}, {"time", e.time}, {"sent", !e.refused}, {"ended", e.ended}, {"record", e.record}, {"outcome", e.outcome}};
  if (!e.frames.empty()) {
    json::Value frames = json::Array{};
    for (const ExportedFrame& f : e.frames) frames.push(f.body);
    out["frames"] = std::move(frames);
  }
  return safe_json(json::canonical(out));
}

std::string export_begin(ExportFormat format, const ExportSource& source) {
  switch (format) {
    case ExportFormat::HAR:
      return "{\"log\":{\"version\":\"1.2\",\"creator\":{\"name\":\"h5i\",\"version\":" + json_quoted(source.engine) +
             "},\"comment\":" + json_quoted("web session " + source.session + "; refusals were not sent and are not in it") + ",\"pages\":[],\"entries\":[\n";
    case ExportFormat::WARC: return warc_info(source);
    case ExportFormat::CURL: return "# bash, zsh or ksh; what says who asks is taken from the variables that are named\n";
    case ExportFormat::JSONL: break;
  }
  return {};
}

std::string export_piece(ExportFormat format, const ExportSource& source, const ExportedSend& e, const ExportRules& rules, bool first) {
  switch (format) {
    case ExportFormat::HAR: return (first ? "" : ",\n") + har_entry(e, rules);
    case ExportFormat::WARC: return warc_records(source, e, rules);
    case ExportFormat::CURL: return curl_command(e, rules);
    case ExportFormat::JSONL: break;
  }
  return json_line(e) + "\n";
}

std::string export_end(ExportFormat format) { return format == ExportFormat::HAR ? "\n]}}\n" : std::string(); }

namespace {

// A record's name, the same whenever it is written: a UUID of version 8 (RFC 9562), from a digest.
std::string record_id(const ExportSource& source, uint64_t number, std::string_view what) {
  std::string d = sha256_hex(source.id + "\n" + std::to_string(number) + "\n" + std::string(what));
  d[12] = '8';
  d[16] = "89ab"[d[16] & 3];
  return "<urn:uuid:" + d.substr(0, 8) + "-" + d.substr(8, 4) + "-" + d.substr(12, 4) + "-" + d.substr(16, 4) + "-" + d.substr(20, 12) + ">";
}

// A value of a named field is one line whatever it was made of.
std::string one_line(std::string_view value) {
  std::string out(value);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

struct WarcRecord {
  std::string type, id, date, content_type;
  std::vector<std::pair<std::string, std::string>> more;
  std::string block;
  std::string text() const {
    std::string out = "WARC/1.1\r\nWARC-Type: " + type + "\r\nWARC-Record-ID: " + id + "\r\nWARC-Date: " + one_line(date) + "\r\n";
    for (const auto& [name, value] : more) out += name + ": " + one_line(value) + "\r\n";
    out += "WARC-Block-Digest: sha256:" + sha256_hex(block) + "\r\nContent-Type: " + content_type + "\r\nContent-Length: " + std::to_string(block.size()) + "\r\n\r\n";
    return out + block + "\r\n\r\n";
  }
};

std::string warc_info(const ExportSource& source) {
  WarcRecord r{"warcinfo", record_id(source, 0, "warcinfo"), source.created, "application/warc-fields", {},
               "software: h5i " + one_line(source.engine) + "\r\nformat: WARC File Format 1.1\r\nisPartOf: web session " + one_line(source.session) + "\r\n"};
  return r.text();
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

bool is_chunked(std::string_view head) {
  for (const HeaderText& h : header_texts(head))
    if (same_name(h.name, "transfer-encoding")) return true;
  return false;
}

// The body as it would stand on the wire behind its head: a reader takes chunks off where the head says that there are some.
std::string framed(std::string_view head, const std::string& body) {
  if (!is_chunked(head)) return body;
  char size[24];
  snprintf(size, sizeof size, "%zx\r\n", body.size());
  return body.empty() ? "0\r\n\r\n" : size + body + "\r\n0\r\n\r\n";
}

}  // namespace

std::string warc_records(const ExportSource& source, const ExportedSend& e, const ExportRules& rules) {
  std::vector<std::pair<std::string, std::string>> common = {{"WARC-Target-URI", e.record["url"].string()}, {"WARC-Warcinfo-ID", record_id(source, 0, "warcinfo")}};
  const std::string& peer = e.record["peer"].string();
  if (size_t colon = peer.rfind(':'); colon != std::string::npos) {
    std::string address = peer.substr(0, colon);
    if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
    common.emplace_back("WARC-IP-Address", address);
  }
  const std::string request_id = record_id(source, e.number, "request"), response_id = record_id(source, e.number, "response");
  std::string out;
  auto message = [&](const char* type, const std::string& id, const std::string& other, const std::string& head, const std::string& body, bool reframe) {
    std::vector<std::string> masked;
    WarcRecord r{type, id, e.time, std::string("application/http;msgtype=") + type, common, masked_head(head, rules, &masked)};
    r.block += reframe ? framed(head, body) : body;
    if (!other.empty()) r.more.emplace_back("WARC-Concurrent-To", other);
    r.more.emplace_back("WARC-Payload-Digest", "sha256:" + sha256_hex(body));
    if (!masked.empty()) r.more.emplace_back("H5I-Masked", names_text(masked));
    if (reframe && is_chunked(head)) r.more.emplace_back("H5I-Reframed", "one chunk");
    out += r.text();
  };
  if (e.request_head) message("request", request_id, e.response_head ? response_id : "", *e.request_head, e.request_body.value_or(""), false);
  if (e.response_head) message("response", response_id, e.request_head ? request_id : "", *e.response_head, e.response_body.value_or(""), true);
  if (!e.request_head && !e.response_head) {
    WarcRecord r{"metadata", record_id(source, e.number, "metadata"), e.time, "application/json", common, json_line(e)};
    out += r.text();
  }
  return out;
}

}  // namespace h5i::websec
