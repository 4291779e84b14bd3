#include "core/evidence/chain.hpp"

#include "core/base/text.hpp"
#include "core/evidence/lines.hpp"
#include "core/evidence/record.hpp"

namespace h5i::evidence {
namespace {

// What one line says, and what its bytes hash to.
struct Step {
  bool readable = false;
  std::string why;  // when not
  RecordLink link;
  std::string digest;
};

Step take_step(const Line& line) {
  Step s;
  if (line.too_long) {
    s.why = "longer than a record can be";
    return s;
  }
  s.digest = sha256_hex(line.text);
  if (!line.complete) {
    s.why = "cut in the middle";
    return s;
  }
  auto v = parse_json(line.text, "the line", kMaxLine);
  if (!v) {
    s.why = "not strict JSON: " + v.error().evidence;
    return s;
  }
  auto link = record_link(*v);
  if (!link) {
    s.why = "not a record: " + link.error().evidence;
    return s;
  }
  s.link = std::move(*link);
  s.readable = true;
  return s;
}

void blame(ChainReport& r, Errc code, uint64_t index, std::string why) {
  r.broken = true;
  r.code = code;
  r.bad = index;
  r.why = std::move(why);
}

// Record `i` does not carry the digest of the one before it: one of the two was changed. If the one after `i` does not
// accept `i` either, or a signature does not, then it was `i`.
void blame_link(ChainReport& r, LineReader& in, uint64_t i, const Step& s, const std::optional<Anchor>& anchor) {
  bool i_is_good = true;
  Line line;
  auto more = in.next(&line);
  if (more && *more) {
    Step after = take_step(line);
    i_is_good = !after.readable || after.link.prev == s.digest;
  } else if (anchor && anchor->count == i + 1) {
    i_is_good = anchor->digest == s.digest;
  }
  if (i_is_good && i > 0)
    blame(r, Errc::LOG_CHAIN, i - 1, "changed: the next record carries another digest of it");
  else
    blame(r, Errc::LOG_CHAIN, i, "changed: it does not carry the digest of the record before it");
}

// Two of the first three records decide whose log it is, so that one that was exchanged is the one that is named.
Result<std::string> owner(LineReader& in) {
  std::vector<std::string> ids;
  Line line;
  while (ids.size() < 3 && H5I_TRY(in.next(&line))) {
    Step s = take_step(line);
    if (s.readable)
      ids.push_back(s.link.log_id);
    else if (ids.empty())
      break;
  }
  in.seek(0);
  if (ids.size() == 3 && ids[1] == ids[2]) return ids[1];
  return ids.empty() ? std::string() : ids[0];
}

Result<void> walk(LineReader& in, ChainReport& r, const std::optional<Anchor>& anchor) {
  Line line;
  while (H5I_TRY(in.next(&line))) {
    uint64_t i = r.head.count;
    Step s = take_step(line);
    if (!s.readable) {
      blame(r, Errc::LOG_CHAIN, i, s.why);
      return {};
    }
    if (s.link.log_id != r.head.log_id) {
      blame(r, Errc::LOG_FOREIGN, i,
            "belongs to log " + printable(s.link.log_id, {.limit = 64}) + ", not to " + r.head.log_id);
      return {};
    }
    if (s.link.seq != i) {
      blame(r, Errc::LOG_CHAIN, i, "numbered " + std::to_string(s.link.seq) + ": removed, added or moved");
      return {};
    }
    if (s.link.prev != r.head.digest) {
      blame_link(r, in, i, s, anchor);
      return {};
    }
    r.head = {r.head.log_id, i + 1, s.digest};
    r.bytes = line.offset + line.text.size() + 1;
    if (anchor && anchor->count == i + 1) r.digest_at_anchor = s.digest;
  }
  return {};
}

}  // namespace

Result<ChainReport> examine_chain(const std::string& path, const std::optional<std::string>& expected_log_id,
                                  const std::optional<Anchor>& anchor) {
  LineReader in = H5I_TRY(LineReader::open(path));
  ChainReport r;
  std::string id = expected_log_id ? *expected_log_id : H5I_TRY(owner(in));
  r.head = {id, 0, first_prev(id)};
  H5I_TRY(walk(in, r, anchor));
  if (!anchor || r.broken) return r;
  if (r.head.count < anchor->count) {
    blame(r, Errc::LOG_TRUNCATED, r.head.count,
          "missing: the signed head counts " + std::to_string(anchor->count) + " records, " +
              std::to_string(r.head.count) + " are here");
  } else if (anchor->count > 0 && r.digest_at_anchor != anchor->digest) {
    blame(r, Errc::LOG_CHAIN, anchor->count - 1, "changed: it or one before it is not what was signed");
  }
  return r;
}

Result<ChainReport> continue_chain(const std::string& path, const std::string& log_id, const Anchor& from,
                                   uint64_t bytes) {
  LineReader in = H5I_TRY(LineReader::open(path));
  ChainReport r;
  r.head = {log_id, from.count, from.digest};
  r.bytes = bytes;
  if (in.size() < bytes) {
    blame(r, Errc::LOG_TRUNCATED, from.count - 1, "missing: the log is shorter than when it was signed");
    return r;
  }
  // The record that ends there is within the last kMaxLine bytes before.
  uint64_t start = bytes > kMaxLine + 1 ? bytes - kMaxLine - 1 : 0;
  in.seek(start);
  Line line;
  std::string digest;
  while (H5I_TRY(in.next(&line)) && line.offset < bytes)
    digest = line.complete && line.offset + line.text.size() + 1 == bytes ? sha256_hex(line.text) : std::string();
  if (digest != from.digest) {
    blame(r, Errc::LOG_CHAIN, from.count - 1, "changed: it or one before it is not what was signed");
    return r;
  }
  in.seek(bytes);
  H5I_TRY(walk(in, r, {}));
  return r;
}

Error chain_error(const std::string& path, const ChainReport& report) {
  std::string what = report.code == Errc::LOG_TRUNCATED ? " is cut"
                     : report.code == Errc::LOG_FOREIGN ? " holds a record of another log"
                                                        : " was changed";
  return make_error(report.code, "the log " + printable(path) + what,
                    "record " + std::to_string(report.bad) + ": " + report.why);
}

Result<Verified> verify_chain(const std::string& path, const std::optional<std::string>& expected_log_id) {
  ChainReport r = H5I_TRY(examine_chain(path, expected_log_id));
  if (r.broken) return chain_error(path, r);
  Verified v;
  v.records = r.head.count;
  v.log_id = r.head.log_id;
  return v;
}

Result<void> read_log(const std::string& path, const std::function<bool(uint64_t, const Json&)>& each) {
  LineReader in = H5I_TRY(LineReader::open(path));
  Line line;
  for (uint64_t i = 0; H5I_TRY(in.next(&line)); i++) {
    auto v = line.too_long || !line.complete
                 ? Result<Json>(make_error(Errc::JSON, "", line.too_long ? "too long" : "cut in the middle"))
                 : parse_json(line.text, "the line", kMaxLine);
    if (!v)
      return make_error(Errc::CORRUPT, "the log " + printable(path) + " has an unreadable line",
                        "record " + std::to_string(i) + ": " + v.error().evidence);
    if (!each(i, *v)) return {};
  }
  return {};
}

}  // namespace h5i::evidence
