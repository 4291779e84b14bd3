#include "plugins/websec-http/engine/history.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "plugins/websec-http/engine/scan.hpp"
#include "plugins/websec-http/index/index.hpp"

namespace h5i::websec {
namespace {

constexpr const char* kFolder = "state/index";  // of the session
constexpr size_t kBatch = 500;                  // sends or lines that are held at once
constexpr uint64_t kNear = 64 << 10;            // bytes that are rather read through than jumped over

struct Record {
  json::Value value;
  size_t bytes = 0;
};
using Records = std::map<uint64_t, Record>;  // by offset

// What stands at these offsets of the log. Nothing: there is one at which no record begins.
sdk::Result<std::optional<Records>> records_at(const sdk::Host& host, std::vector<uint64_t> offsets) {
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  Records out;
  bool wrong = false;
  for (size_t i = 0; i < offsets.size() && !wrong;) {
    const size_t before = i;
    auto read = host.lines(offsets[i], [&](uint64_t at, std::string_view line) {
      if (at < offsets[i]) return true;
      auto record = at == offsets[i] ? json::parse(line) : std::nullopt;
      if (!record) {
        wrong = true;
        return false;
      }
      out.emplace(at, Record{*std::move(record), line.size()});
      return ++i < offsets.size() && offsets[i] - at < kNear;
    });
    if (!read.ok() && read.error().code != H5I_E_INVALID) return read.error();
    wrong = wrong || i == before;
  }
  if (wrong) return std::optional<Records>();
  return std::optional<Records>(std::move(out));
}

bool is_line(const json::Value& r, uint64_t seq, std::string_view kind) {
  return r["lane"].string() == "engine-claimed" && r["kind"].string() == kind && r["seq"].is_int() && static_cast<uint64_t>(r["seq"].integer()) == seq;
}
bool is_of(const json::Value& r, uint64_t send) { return r["body"]["of"].is_int() && static_cast<uint64_t>(r["body"]["of"].integer()) == send; }

// Asks the index, and once more a new one when the answer is nothing: the index, or what it said of the log, was wrong. Nothing: the log has to be read.
template <class T>
sdk::Result<std::optional<T>> ask(const sdk::Host& host, const std::function<sdk::Result<std::optional<T>>(std::unique_ptr<Index>&)>& question) {
  for (int tries = 0; tries < 2; tries++) {
    auto index = H5I_SDK_TRY(Index::open(kFolder, [&](uint64_t from, const auto& each) { return host.lines(from, each); }));
    if (!index) break;
    std::optional<T> answer = H5I_SDK_TRY(question(index));
    if (answer) return answer;
    index.reset();
    Index::discard(kFolder);
  }
  return std::optional<T>();
}

// The lines of one send, held against what the index says of it. Nothing: they differ.
std::optional<Told> told_of(const SendPlace& p, const std::vector<LinePlace>& frames, const Records& records) {
  Told t;
  const Record& line = records.at(p.at);
  if (!is_line(line.value, p.row.seq, p.row.refused ? "refused" : "send")) return std::nullopt;
  t.send.seq = p.row.seq;
  t.send.refused = p.row.refused;
  t.send.time = line.value["time"].string();
  t.send.body = line.value["body"];
  t.bytes = line.bytes;
  if (p.outcome_at) {
    const Record& outcome = records.at(*p.outcome_at);
    if (!p.outcome_seq || !is_line(outcome.value, *p.outcome_seq, "outcome") || !is_of(outcome.value, p.row.seq)) return std::nullopt;
    t.send.outcome = outcome.value["body"];
    t.bytes += outcome.bytes;
  }
  if (t.send.row() != p.row) return std::nullopt;
  for (const LinePlace& f : frames) {
    const Record& frame = records.at(f.at);
    if (!is_line(frame.value, f.seq, "frame") || !is_of(frame.value, p.row.seq)) return std::nullopt;
    t.frames.push_back(frame.value["body"]);
    t.bytes += frame.bytes;
  }
  return t;
}

struct Batch {
  std::vector<Told> told;
  uint64_t next = 0;
  bool end = false;
};

sdk::Result<std::optional<Batch>> batch_of(const sdk::Host& host, const Wanted& wanted, uint64_t from) {
  return ask<Batch>(host, [&](std::unique_ptr<Index>& index) -> sdk::Result<std::optional<Batch>> {
    const bool later = wanted.until < index->next() - 1;
    auto places = index->sends(wanted.filters, from, wanted.until, kBatch);
    if (!places) return std::optional<Batch>();
    std::vector<std::vector<LinePlace>> frames(places->size());
    std::vector<uint64_t> offsets;
    for (size_t i = 0; i < places->size(); i++) {
      const SendPlace& p = (*places)[i];
      offsets.push_back(p.at);
      if (p.outcome_at) offsets.push_back(*p.outcome_at);
      if (!wanted.frames) continue;
      auto of = index->lines_of(p.row.seq, "frame", wanted.until);
      if (!of) return std::optional<Batch>();
      frames[i] = *std::move(of);
      for (const LinePlace& f : frames[i]) offsets.push_back(f.at);
    }
    index.reset();  // while the log is read others may write in it
    auto records = H5I_SDK_TRY(records_at(host, std::move(offsets)));
    if (!records) return std::optional<Batch>();
    Batch out;
    out.end = places->size() < kBatch;
    for (size_t i = 0; i < places->size(); i++) {
      const SendPlace& p = (*places)[i];
      out.next = p.row.seq + 1;
      auto told = told_of(p, frames[i], *records);
      if (!told) return std::optional<Batch>();
      if (p.outcome_seq && *p.outcome_seq > wanted.until) {
        told->send.outcome = nullptr;
        told->bytes -= records->at(*p.outcome_at).bytes;
      }
      if (hold(wanted.filters, told->send.row())) out.told.push_back(*std::move(told));
      else if (!later) return std::optional<Batch>();
    }
    return std::optional<Batch>(std::move(out));
  });
}

}  // namespace

sdk::Status each_send(const sdk::Host& host, const Wanted& wanted, const std::function<sdk::Result<bool>(Told&)>& each) {
  Wanted rest = wanted;
  for (;;) {
    auto batch = H5I_SDK_TRY(batch_of(host, wanted, rest.from));
    if (!batch) return scan_sends(host, rest, each);
    for (Told& t : batch->told)
      if (!H5I_SDK_TRY(each(t))) return {};
    if (batch->end) return {};
    rest.from = batch->next;
  }
}

sdk::Result<uint64_t> last_line(const sdk::Host& host) {
  auto last = H5I_SDK_TRY(ask<uint64_t>(host, [](std::unique_ptr<Index>& index) -> sdk::Result<std::optional<uint64_t>> { return std::optional<uint64_t>(index->next() - 1); }));
  return last ? sdk::Result<uint64_t>(*last) : scan_last_line(host);
}

sdk::Result<Last> last_sends(const sdk::Host& host, const Filters& filters, uint64_t most) {
  auto last = H5I_SDK_TRY(ask<Last>(host, [&](std::unique_ptr<Index>& index) -> sdk::Result<std::optional<Last>> {
    Last out{0, index->next() - 1, false};
    auto from = index->begin_of_last(filters, most, &out.cut);
    if (!from) return std::optional<Last>();
    out.from = *from;
    return std::optional<Last>(out);
  }));
  return last ? sdk::Result<Last>(*last) : scan_last_sends(host, filters, most);
}

sdk::Result<Amounts> spent_so_far(const sdk::Host& host) {
  if (auto spent = H5I_SDK_TRY(ask<Amounts>(host, [](std::unique_ptr<Index>& index) -> sdk::Result<std::optional<Amounts>> { return index->spent(); }))) return *spent;
  Amounts out;
  H5I_SDK_TRY(scan_sends(host, {}, [&](Told& told) -> sdk::Result<bool> {
    if (told.send.refused) return true;
    const Amounts a = amounts_of(told.send.outcome);
    out.sends += a.sends;
    out.wire += a.wire;
    out.decoded += a.decoded;
    out.time_us += a.time_us;
    return true;
  }));
  return out;
}

sdk::Status each_line(const sdk::Host& host, const std::vector<std::string>& kinds, uint64_t until, const std::function<bool(const json::Value& record)>& each) {
  struct Lines {
    std::vector<json::Value> records;
    bool end = false;
  };
  for (uint64_t from = 0;;) {
    const std::function<sdk::Result<std::optional<Lines>>(std::unique_ptr<Index>&)> question = [&](std::unique_ptr<Index>& index) -> sdk::Result<std::optional<Lines>> {
      auto places = index->lines(kinds, from, until, kBatch);
      if (!places) return std::optional<Lines>();
      index.reset();
      std::vector<uint64_t> offsets;
      for (const LinePlace& p : *places) offsets.push_back(p.at);
      auto records = H5I_SDK_TRY(records_at(host, std::move(offsets)));
      if (!records) return std::optional<Lines>();
      Lines out;
      out.end = places->size() < kBatch;
      for (const LinePlace& p : *places) {
        json::Value& r = records->at(p.at).value;
        if (std::find(kinds.begin(), kinds.end(), r["kind"].string()) == kinds.end() || !is_line(r, p.seq, r["kind"].string())) return std::optional<Lines>();
        out.records.push_back(std::move(r));
      }
      return std::optional<Lines>(std::move(out));
    };
    auto lines = H5I_SDK_TRY(ask<Lines>(host, question));
    if (!lines)
      return scan_lines(host, kinds, until, [&](const json::Value& r) { return static_cast<uint64_t>(r["seq"].integer()) < from || each(r); });
    for (const json::Value& r : lines->records) {
      from = static_cast<uint64_t>(r["seq"].integer()) + 1;
      if (!each(r)) return {};
    }
    if (lines->end) return {};
  }
}

}  // namespace h5i::websec
