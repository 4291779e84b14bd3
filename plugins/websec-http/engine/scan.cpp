#include "plugins/websec-http/engine/scan.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace h5i::websec {
namespace {

bool ours(const json::Value& record) { return record["lane"].string() == "engine-claimed"; }  // what a box says is no send of ours
uint64_t number_of(const json::Value& v) { return static_cast<uint64_t>(v.integer(-1)); }

// Each record up to line `until`, until `each` says false.
sdk::Status records(const sdk::Host& host, uint64_t until, const std::function<bool(uint64_t seq, const json::Value& record, size_t bytes)>& each) {
  std::optional<sdk::Failure> failed;
  uint64_t count = 0;
  H5I_SDK_TRY(host.lines(0, [&](uint64_t, std::string_view line) {
    auto record = json::parse(line);
    if (!record) {
      failed = sdk::failure(H5I_E_CORRUPT, "the session's log has an unreadable line, record " + std::to_string(count));
      return false;
    }
    count++;
    const uint64_t seq = number_of((*record)["seq"]);
    return seq <= until && each(seq, *record, line.size());
  }));
  return failed ? sdk::Status(*failed) : sdk::Status();
}

// What must be known of a log before its sends can be told in order: how far it goes, and for which sends to wait for how much.
struct Outline {
  uint64_t until = 0;                   // number of its last line: later ones are not looked at
  std::set<uint64_t> open;              // sends without an outcome
  std::map<uint64_t, uint64_t> frames;  // lines of kind "frame", of sends that have some
};

sdk::Result<Outline> outline(const sdk::Host& host, const Wanted& wanted) {
  Outline out;
  H5I_SDK_TRY(records(host, wanted.until, [&](uint64_t seq, const json::Value& r, size_t) {
    out.until = seq;
    if (!ours(r)) return true;
    const std::string& kind = r["kind"].string();
    if (kind == "send") out.open.insert(seq);
    else if (kind == "outcome") out.open.erase(number_of(r["body"]["of"]));
    else if (kind == "frame" && wanted.frames && number_of(r["body"]["of"]) < seq) out.frames[number_of(r["body"]["of"])]++;
    return true;
  }));
  return out;
}

}  // namespace

// The first outcome of a send is its own; one of a refusal is none. Held are those whose end comes later than that of one behind them.
sdk::Status scan_sends(const sdk::Host& host, const Wanted& wanted, const std::function<sdk::Result<bool>(Told&)>& each) {
  const Outline outline = H5I_SDK_TRY(websec::outline(host, wanted));
  struct Waiting {
    Told told;
    bool ended = false;
    uint64_t frames = 0;  // still to come
  };
  std::deque<Waiting> waiting;
  std::optional<sdk::Failure> failed;
  auto find = [&](const json::Value& of) -> Waiting* {
    auto at = std::lower_bound(waiting.begin(), waiting.end(), number_of(of), [](const Waiting& w, uint64_t n) { return w.told.send.seq < n; });
    return at == waiting.end() || at->told.send.seq != number_of(of) ? nullptr : &*at;
  };
  H5I_SDK_TRY(records(host, outline.until, [&](uint64_t seq, const json::Value& r, size_t bytes) {
    const std::string& kind = r["kind"].string();
    if (!ours(r)) return true;
    if (kind == "send" || kind == "refused") {
      Waiting w;
      w.told.send.seq = seq;
      w.told.send.refused = kind == "refused";
      w.told.send.time = r["time"].string();
      w.told.send.body = r["body"];
      w.told.bytes = bytes;
      w.ended = w.told.send.refused || outline.open.count(seq) > 0;
      if (auto f = outline.frames.find(seq); f != outline.frames.end()) w.frames = f->second;
      waiting.push_back(std::move(w));
    } else if (kind == "outcome") {
      if (Waiting* w = find(r["body"]["of"]); w && !w->ended) {
        w->told.send.outcome = r["body"];
        w->told.bytes += bytes;
        w->ended = true;
      }
    } else if (kind == "frame") {
      if (Waiting* w = find(r["body"]["of"]); w && w->frames > 0) {
        w->told.frames.push_back(r["body"]);
        w->told.bytes += bytes;
        w->frames--;
      }
    }
    while (!waiting.empty() && waiting.front().ended && waiting.front().frames == 0) {
      Told& told = waiting.front().told;
      if (told.send.seq >= wanted.from && hold(wanted.filters, told.send.row())) {
        auto more = each(told);
        if (!more.ok()) failed = more.error();
        if (!more.ok() || !*more) return false;
      }
      waiting.pop_front();
    }
    return true;
  }));
  return failed ? sdk::Status(*failed) : sdk::Status();
}

sdk::Result<uint64_t> scan_last_line(const sdk::Host& host) {
  uint64_t last = 0;
  H5I_SDK_TRY(records(host, UINT64_MAX, [&](uint64_t seq, const json::Value&, size_t) {
    last = seq;
    return true;
  }));
  return last;
}

sdk::Result<Last> scan_last_sends(const sdk::Host& host, const Filters& filters, uint64_t most) {
  Last out;
  out.until = H5I_SDK_TRY(scan_last_line(host));
  std::deque<uint64_t> kept;
  Wanted wanted{filters, 0, out.until, false};
  H5I_SDK_TRY(scan_sends(host, wanted, [&](Told& told) -> sdk::Result<bool> {
    kept.push_back(told.send.seq);
    if (kept.size() > most) {
      kept.pop_front();
      out.cut = true;
    }
    return true;
  }));
  out.from = kept.empty() ? UINT64_MAX : kept.front();
  return out;
}

sdk::Status scan_lines(const sdk::Host& host, const std::vector<std::string>& kinds, uint64_t until, const std::function<bool(const json::Value&)>& each) {
  return records(host, until, [&](uint64_t, const json::Value& r, size_t) { return !ours(r) || std::find(kinds.begin(), kinds.end(), r["kind"].string()) == kinds.end() || each(r); });
}

}  // namespace h5i::websec
