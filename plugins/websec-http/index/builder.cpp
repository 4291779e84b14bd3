#include "plugins/websec-http/index/builder.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMostWaiting = 4096;
constexpr size_t kMostKnown = 50'000;
constexpr size_t kLargestKnown = 512;  // longer names are looked up each time

uint64_t unsigned_of(const json::Value& v) { return static_cast<uint64_t>(v.integer()); }

}  // namespace

IndexBuilder::Names::Names(Database& db, const char* table)
    : db_(db), find_(db, std::string("SELECT id FROM ") + table + " WHERE name = ?"), add_(db, std::string("INSERT INTO ") + table + "(name) VALUES(?) RETURNING id") {}

int64_t IndexBuilder::Names::id(const std::string& name) {
  if (auto found = known_.find(name); found != known_.end()) return found->second;
  int64_t id = 0;
  if (find_.with(name).next()) id = find_.integer(0);
  else if (add_.with(name).next()) id = add_.integer(0);
  find_.begin();
  add_.begin();
  if (id <= 0) (void)db_.fail(SQLITE_CORRUPT);
  if (name.size() > kLargestKnown) return id;
  if (known_.size() >= kMostKnown) known_.clear();
  known_.emplace(name, id);
  return id;
}

IndexBuilder::IndexBuilder(Database& db, Extent reach)
    : db_(db),
      reach_(std::move(reach)),
      sent_(db, "INSERT INTO sent(seq, at, outcome, outcome_seq, refused, host, method, status, ended, type, size, time, wire, decoded, experiment, path) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
      ended_(db, "UPDATE sent SET outcome=?, outcome_seq=?, status=?, ended=?, type=?, size=?, time=?, wire=?, decoded=? WHERE seq=? AND outcome IS NULL AND NOT refused"),
      line_(db, "INSERT INTO line(seq, at, kind, of) VALUES(?,?,?,?)"),
      hosts_(db, "host"),
      words_(db, "word") {
  (void)db_.run("BEGIN IMMEDIATE");
  if (db_.ok() && words_.id("") != 1) (void)db_.fail(SQLITE_CORRUPT);
}

bool IndexBuilder::put(const Waiting& w) {
  const IndexRow& r = w.row;
  std::optional<int64_t> host;
  if (r.host) host = hosts_.id(*r.host);
  return sent_.with(r.seq, w.at, w.outcome, w.outcome_seq, int64_t{r.refused}, host, words_.id(r.method), r.status, words_.id(r.ended), words_.id(r.type), r.size, r.total_us, r.wire, r.decoded, words_.id(r.experiment), r.path).run();
}

bool IndexBuilder::put_oldest(size_t most) {
  while (waiting_.size() > most) {
    if (!put(waiting_.begin()->second)) return false;
    waiting_.erase(waiting_.begin());
  }
  return db_.ok();
}

bool IndexBuilder::take(uint64_t at, std::string_view line) {
  auto parsed = json::parse(line);
  if (!parsed) {
    failure_ = sdk::failure(H5I_E_CORRUPT, "the session's log has an unreadable line, record " + std::to_string(reach_.next));
    return false;
  }
  const json::Value& r = *parsed;
  const std::string& log = r["log"].string();
  if (reach_.next == 0 && reach_.end == 0) reach_.log = log;
  // Numbers and offsets are all that leads from here to the log: where they are not what a log has, there is no index of it.
  if (at != reach_.end || log != reach_.log || log.empty() || !r["seq"].is_int() || unsigned_of(r["seq"]) != reach_.next) return false;
  const uint64_t seq = reach_.next++;
  reach_.last = at;
  reach_.end = at + line.size() + 1;
  if (r["lane"].string() != "engine-claimed") return true;  // what a box says is no send of ours
  const std::string& kind = r["kind"].string();
  const json::Value& body = r["body"];
  if (kind == "send" || kind == "refused") {
    waiting_.emplace(seq, Waiting{row_of(seq, kind == "refused", body, nullptr), at, {}, {}});
    if (kind == "refused" && waiting_.size() == 1) return put_oldest(0);
    return put_oldest(kMostWaiting);
  }
  if (kind == "outcome") {
    const auto of = static_cast<uint64_t>(body["of"].integer(-1));
    if (auto found = waiting_.find(of); found != waiting_.end()) {
      Waiting& w = found->second;
      if (w.row.refused) return true;
      set_outcome(w.row, body);
      w.outcome = static_cast<int64_t>(at);
      w.outcome_seq = static_cast<int64_t>(seq);
      const bool good = put(w);
      waiting_.erase(found);
      return good;
    }
    IndexRow changed;
    set_outcome(changed, body);
    return ended_.with(at, seq, changed.status, words_.id(changed.ended), words_.id(changed.type), changed.size, changed.total_us, changed.wire, changed.decoded, of).run();
  }
  std::optional<int64_t> of;
  if (body["of"].is_int()) of = body["of"].integer();
  return line_.with(seq, at, words_.id(kind), of).run();
}

bool IndexBuilder::finish(const std::string& digest) {
  if (!put_oldest(0) || !db_.run("DELETE FROM meta")) return false;
  return Statement(db_, "INSERT INTO meta(version, log, next, last, digest, end) VALUES(?,?,?,?,?,?)").with(kIndexVersion, reach_.log, reach_.next, reach_.last, digest, reach_.end).run() && db_.run("COMMIT");
}

}  // namespace h5i::websec
