// A session's sends as a document for other programs. An answer is one document of limited size, so the document goes in pieces: each answer has
// a cursor, and the next act begins there. The log only grows and payloads never change, so the pieces fit (ADR 49).
#include "plugins/websec-http/acts/list.hpp"
#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/engine/redirect.hpp"
#include "plugins/websec-http/export/formats.hpp"
#include "plugins/websec-http/export/message_text.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kPiece = size_t{10} << 20;  // of the document; in base64 an answer holds 16 MiB
constexpr size_t kPayload = size_t{64} << 20;
constexpr std::string_view kNote = "exported";

uint64_t unsigned_of(const json::Value& v) { return static_cast<uint64_t>(std::max<int64_t>(v.integer(), 0)); }

// Where a document goes on. `skip`: bytes of the next send's piece that were given already, and their digest.
struct Cursor {
  uint64_t until = 0;  // the log's last line when the document began: later ones are not looked at
  uint64_t from = 0, skip = 0, sends = 0, left_out = 0;
  std::string digest;

  static Cursor read(const json::Value& v) {
    Cursor c;
    c.until = unsigned_of(v["until"]);
    c.from = unsigned_of(v["from"]);
    c.skip = unsigned_of(v["skip"]);
    c.sends = unsigned_of(v["sends"]);
    c.left_out = unsigned_of(v["left_out"]);
    c.digest = v["digest"].string();
    return c;
  }
  json::Value write() const {
    return json::Object{{"until", until}, {"from", from}, {"skip", skip}, {"sends", sends}, {"left_out", left_out}, {"digest", digest}};
  }
};

sdk::Result<Filters> filters_of(const json::Value& words) {
  Filters out;
  for (const json::Value& f : words["filters"].array()) out.push_back(H5I_SDK_TRY(parse_filter(f.string())));
  return out;
}

sdk::Result<ExportFormat> format_of(const json::Value& words) {
  auto format = export_format(words["format"].string());
  if (!format) return sdk::failure(H5I_E_INVALID, "not a format: har, jsonl, warc, curl");
  return *format;
}

// Values of credentials leave only behind a line of the log that says so.
sdk::Result<bool> with_credentials(const sdk::Host& host, const json::Value& words) {
  if (!words["noted"].is_int()) return false;
  const uint64_t wanted = unsigned_of(words["noted"]);
  bool found = false;
  H5I_SDK_TRY(each_line(host, {std::string(kNote)}, UINT64_MAX, [&](const json::Value& r) {
    if (unsigned_of(r["seq"]) != wanted) return true;
    found = r["body"]["with_credentials"].boolean() && r["body"]["format"].string() == words["format"].string() && r["body"]["filters"] == words["filters"];
    return false;
  }));
  if (!found) return sdk::failure(H5I_E_DENIED, "no line of the log says that credentials are exported");
  return true;
}

sdk::Result<ExportedSend> exchange_of(const sdk::Host& host, Told& told, bool messages) {
  ExportedSend e;
  e.number = told.send.seq;
  e.time = told.send.time;
  e.ended = told.send.ended();
  e.refused = told.send.refused;
  e.record = std::move(told.send.body);
  e.outcome = std::move(told.send.outcome);
  auto payload = [&](const json::Value& digest, std::optional<std::string>* into) -> sdk::Status {
    if (messages && digest.is_string()) *into = H5I_SDK_TRY(host.get(digest.string(), kPayload));
    return {};
  };
  const json::Value& kept = e.outcome["kept"];
  // The head of another protocol is no lines, so nothing in it could be masked.
  if (e.record["protocol"].string().empty()) H5I_SDK_TRY(payload(kept["request_head"], &e.request_head));
  H5I_SDK_TRY(payload(kept["request_body"], &e.request_body));
  H5I_SDK_TRY(payload(kept["response_head"], &e.response_head));
  H5I_SDK_TRY(payload(kept["response_body"], &e.response_body));
  for (json::Value& body : told.frames) {
    ExportedFrame f{std::move(body), {}};
    H5I_SDK_TRY(payload(f.body["payload"], &f.payload));
    e.frames.push_back(std::move(f));
  }
  return e;
}

}  // namespace

// A look: nothing is written.
sdk::Result<Answer> export_act(const sdk::Host& host, const json::Value& session, const json::Value& words) {
  const ExportFormat format = H5I_SDK_TRY(format_of(words));
  const Filters filters = H5I_SDK_TRY(filters_of(words));
  ExportRules rules{H5I_SDK_TRY(with_credentials(host, words)), is_credential};
  ExportSource source{session["name"].string(), session["id"].string(), session["engine"]["version"].string(), session["created"].string()};
  const bool begins = !words["cursor"].is_object();
  Cursor at = begins ? Cursor{H5I_SDK_TRY(last_line(host)), 0, 0, 0, 0, ""} : Cursor::read(words["cursor"]);
  std::string piece = begins ? export_begin(format, source) : "";
  bool more = false;
  auto take = [&](Told& told) -> sdk::Result<bool> {
    const uint64_t number = told.send.seq;
    if (told.send.refused && !tells_refusals(format)) {
      at.left_out++;
      return true;
    }
    std::string text = export_piece(format, source, H5I_SDK_TRY(exchange_of(host, told, format != ExportFormat::JSONL)), rules, at.sends == 0);
    if (at.skip > 0 && (at.skip > text.size() || sha256_hex(std::string_view(text).substr(0, at.skip)) != at.digest))
      return sdk::failure(H5I_E_CORRUPT, "#" + std::to_string(number) + " is not what it was when the document began: was another engine installed meanwhile?");
    const size_t room = kPiece - std::min(kPiece, piece.size()), rest = text.size() - at.skip;
    if (rest <= room) {
      piece.append(text, at.skip);
      at.skip = 0;
      at.sends++;
      return true;
    }
    // What does not fit into a piece of its own is cut.
    more = true;
    at.from = number;
    if (piece.empty() || rest > kPiece) {
      piece.append(text, at.skip, room);
      at.skip += room;
      at.digest = sha256_hex(std::string_view(text).substr(0, at.skip));
    }
    return false;
  };
  H5I_SDK_TRY(each_send(host, {.filters = filters, .from = at.from, .until = at.until, .frames = true}, take));
  if (!more) piece += export_end(format);
  json::Value out = json::Object{{"format", name_of(format)}, {"piece", base64(piece)}, {"sends", at.sends}, {"left_out", at.left_out}, {"until", at.until}, {"lines", json::Array{}}};
  if (more) out["cursor"] = at.write();
  return Answer{std::move(out), 0};
}

// Before an export with values of credentials: its line.
sdk::Result<Answer> export_note(const sdk::Host& host, const json::Value&, const json::Value& words) {
  H5I_SDK_TRY(format_of(words));
  H5I_SDK_TRY(filters_of(words));
  Recorder recorder(host);
  uint64_t number = H5I_SDK_TRY(recorder.note(kNote, json::Object{{"format", words["format"]}, {"filters", words["filters"]}, {"with_credentials", true}}));
  H5I_SDK_TRY(host.flush());
  return Answer{json::Object{{"noted", number}, {"lines", json::Array{}}}, 0};
}

}  // namespace h5i::websec
