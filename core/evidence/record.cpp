#include "core/evidence/record.hpp"

#include "core/base/text.hpp"

namespace h5i::evidence {
namespace {

// One less than the reader's bound: the body stands one level below the record.
constexpr int kMaxBodyDepth = json::Parser::kMaxDepth - 1;

bool fits(const Json& v, int depth) {
  if (depth > kMaxBodyDepth) return false;
  for (const Json& x : v.array())
    if (!fits(x, depth + 1)) return false;
  for (const auto& m : v.object())
    if (!fits(m.second, depth + 1)) return false;
  return true;
}

std::string spell_invalid_bytes(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    int n = json::detail::utf8_len(line, i);
    if (n > 0) {
      out.append(line.substr(i, static_cast<size_t>(n)));
      i += static_cast<size_t>(n);
    } else {
      out += "\\\\x" + hex(&line[i], 1);
      i++;
    }
  }
  return out;
}

void member(std::string& out, std::string_view key, std::string_view value) {
  out += ",\"";
  out += key;
  out += "\":";
  json::detail::write_string(out, value);
}

}  // namespace

std::string_view lane_name(Lane l) {
  switch (l) {
    case Lane::HOST_OBSERVED:
      return "host-observed";
    case Lane::ENGINE_CLAIMED:
      return "engine-claimed";
    case Lane::BOX_CLAIMED:
      return "box-claimed";
  }
  return "box-claimed";
}

std::string_view boundary_name(Boundary b) {
  switch (b) {
    case Boundary::NONE:
      return "";
    case Boundary::FS:
      return "FS";
    case Boundary::NET:
      return "NET";
    case Boundary::PROC:
      return "PROC";
    case Boundary::RESOURCE:
      return "RESOURCE";
    case Boundary::PROVENANCE:
      return "PROVENANCE";
  }
  return "";
}

Boundary boundary_from(std::string_view name) {
  for (Boundary b : {Boundary::FS, Boundary::NET, Boundary::PROC, Boundary::RESOURCE, Boundary::PROVENANCE})
    if (boundary_name(b) == name) return b;
  return Boundary::NONE;
}

std::string first_prev(const std::string& log_id) { return sha256_hex(log_id); }

Result<std::string> record_line(const Record& r, const Head& head, int64_t realtime_ns) {
  if (!fits(r.body, 0))
    return make_error(Errc::INVALID, "record of kind " + printable(r.kind) + " refused", "nested too deeply");
  // The members in canonical order, written directly: this is the run path.
  std::string out;
  out.reserve(512);
  out += "{\"body\":";
  json::write(out, r.body);
  if (r.boundary != Boundary::NONE) member(out, "boundary", boundary_name(r.boundary));
  member(out, "kind", r.kind);
  member(out, "lane", lane_name(r.observer.lane));
  member(out, "log", head.log_id);
  member(out, "observer", r.observer.who);
  member(out, "prev", head.digest);
  out += ",\"seq\":" + std::to_string(head.count);
  member(out, "session", r.session.value);
  member(out, "time", rfc3339(realtime_ns));
  out += ",\"v\":1}";
  if (!valid_utf8(out)) {
    out = spell_invalid_bytes(out);
    // Two keys that differed only in such bytes are still two keys; the reader decides whether that came out right.
    if (!json::parse(out))
      return make_error(Errc::INVALID, "record refused", "not readable after its bytes were spelled");
  }
  if (out.size() > kMaxLine)
    return make_error(Errc::TOO_LARGE, "record of kind " + printable(r.kind) + " refused",
                      std::to_string(out.size()) + " bytes, limit " + std::to_string(kMaxLine));
  return out;
}

Result<RecordLink> record_link(const Json& record) {
  RecordLink l;
  if (!record.is_object()) return make_error(Errc::CORRUPT, "not a record", "not an object");
  if (record["v"].integer() != 1) return make_error(Errc::CORRUPT, "not a record", "v is not 1");
  for (const char* key : {"log", "prev", "time", "session", "lane", "observer", "kind"})
    if (!record[key].is_string()) return make_error(Errc::CORRUPT, "not a record", std::string(key) + " is missing");
  if (!record["body"].is_object()) return make_error(Errc::CORRUPT, "not a record", "body is missing");
  if (!record["seq"].is_int() || record["seq"].integer() < 0)
    return make_error(Errc::CORRUPT, "not a record", "seq is missing");
  l.log_id = record["log"].string();
  l.prev = record["prev"].string();
  l.seq = static_cast<uint64_t>(record["seq"].integer());
  return l;
}

}  // namespace h5i::evidence
