#include "plugins/websec-http/engine/exchanges.hpp"

#include <algorithm>
#include <deque>
#include <optional>

namespace h5i::websec {
namespace {

bool ours(const json::Value& record) { return record["lane"].string() == "engine-claimed"; }  // what a box says is no send of ours
uint64_t number_of(const json::Value& v) { return static_cast<uint64_t>(v.integer()); }

}  // namespace

sdk::Result<Outline> outline(const sdk::Host& host) {
  Outline out;
  H5I_SDK_TRY(host.records(0, [&](const json::Value& r) {
    out.until = number_of(r["seq"]);
    if (!ours(r)) return true;
    const std::string& kind = r["kind"].string();
    if (kind == "send") out.open.insert(out.until);
    else if (kind == "outcome") out.open.erase(number_of(r["body"]["of"]));
    else if (kind == "frame") out.frames[number_of(r["body"]["of"])]++;
    return true;
  }));
  return out;
}

sdk::Status each_send(const sdk::Host& host, const Outline& outline, uint64_t from, const std::function<sdk::Result<bool>(Told&)>& each) {
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
  H5I_SDK_TRY(host.records(from, [&](const json::Value& r) {
    const uint64_t seq = number_of(r["seq"]);
    if (seq > outline.until) return false;
    const std::string& kind = r["kind"].string();
    if (!ours(r)) return true;
    if (kind == "send" || kind == "refused") {
      Waiting w;
      w.told.send.seq = seq;
      w.told.send.refused = kind == "refused";
      w.told.send.time = r["time"].string();
      w.told.send.body = r["body"];
      w.ended = w.told.send.refused || outline.open.count(seq) > 0;
      if (auto f = outline.frames.find(seq); f != outline.frames.end()) w.frames = f->second;
      waiting.push_back(std::move(w));
    } else if (kind == "outcome") {
      if (Waiting* w = find(r["body"]["of"])) {
        w->told.send.outcome = r["body"];
        w->ended = true;
      }
    } else if (kind == "frame") {
      if (Waiting* w = find(r["body"]["of"]); w && w->frames > 0) {
        w->told.frames.push_back(r["body"]);
        w->frames--;
      }
    }
    while (!waiting.empty() && waiting.front().ended && waiting.front().frames == 0) {
      auto more = each(waiting.front().told);
      if (!more.ok()) failed = more.error();
      if (!more.ok() || !*more) return false;
      waiting.pop_front();
    }
    return true;
  }));
  if (failed) return *failed;
  return {};
}

}  // namespace h5i::websec
