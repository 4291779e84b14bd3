#include "plugins/websec-http/http/server_events.hpp"

#include "tests/support/catch.hpp"

using namespace h5i::websec;

namespace {

struct Seen : EventSink {
  std::string text;
  size_t left = SIZE_MAX;
  bool event(const ServerEvent& e) override {
    text += std::string(e.type) + "|" + std::string(e.data) + "|" + std::string(e.id) + "|" + std::to_string(e.offset) + ";";
    return --left > 0;
  }
};
struct Out {
  std::string events, facts, id;
  std::optional<uint64_t> retry;
  bool operator==(const Out&) const = default;
};
Out run(std::string_view s, EventLimits limits, size_t step) {
  Seen seen;
  ServerEvents e(limits, seen);
  bool on = true;
  for (size_t at = 0; at < s.size() && on; at += std::min(step, s.size() - at)) on = e.take(s.substr(at, step));
  if (on) e.end();
  Out out{seen.text, "", e.last_id(), e.retry_ms()};
  for (const Oddity& o : e.oddities().list()) out.facts += std::string(oddity_id(o.id)) + "@" + std::to_string(o.offset) + " ";
  return out;
}
Out read(std::string_view s, EventLimits limits = {}) {
  Out whole = run(s, limits, s.size() + 1);
  for (size_t step : {size_t(1), size_t(2), size_t(3), size_t(5)}) {
    Out o = run(s, limits, step);
    CHECK(o.events == whole.events);
    CHECK(o == whole);
  }
  return whole;
}

}  // namespace

TEST_CASE("server-sent events with each kind of line end") {
  for (std::string end : {"\n", "\r\n", "\r"}) {
    std::string s;
    for (const char* line : {"\xef\xbb\xbf" "data: one", "data:two", "data:  three", "", ": comment", "event: x", "id: 7", "data", "", "event: lost", "", "data: last", ""}) s += line + end;
    Out o = read(s);
    INFO(o.events);
    CHECK(o.events.starts_with("message|one\ntwo\n three||0;x||7|"));
    CHECK(o.events.find(";message|last|7|") != std::string::npos);
    CHECK(std::count(o.events.begin(), o.events.end(), ';') == 3);
    CHECK(o.facts == "");
  }
}

TEST_CASE("ids, retries and fields that are none") {
  CHECK(read("id: 1\nid\n\ndata: x\n\n").events == "message|x||10;");
  CHECK(read(std::string_view("id: 1\nid: a\0b\ndata: x\n\n", 23)).events == "message|x|1|0;");
  CHECK(read("retry: 250\nretry: 1x\nretry:\nretry: -1\nother: x\nDATA: x\n\n").retry == 250u);
  CHECK_FALSE(read("retry: 99999999999999999999\n\n").retry);
  CHECK(read("data: a\n\nid: 9\ndata: cut\n").id == "");
}

TEST_CASE("an event that is cut, not UTF-8 or too large is a fact") {
  CHECK(read("data: a\n\ndata: b\n").facts == "event-cut@9 ");
  CHECK(read("data: a\n\ndata: b").events == "message|a||0;");
  Out o = read("data: \xff\n\n");
  CHECK(o.events == "message|\xff||0;");
  CHECK(o.facts == "event-not-utf8@0 ");
  EventLimits limits{8, 20};
  CHECK(read("data: xx\n\n", limits).events == "message|xx||0;");
  CHECK(read("a: b\ndata: xxx\n\n", limits).facts == "event-too-large@5 ");
  CHECK(read("data:aaa\ndata:bbb\ndata:ccc\ndata:ddd\ndata:eee\n\n", limits).facts == "");
  CHECK(read("data:aaa\ndata:bbb\ndata:ccc\ndata:ddd\ndata:eee\ndata:fff\n\n", limits).facts == "event-too-large@45 ");
  Seen seen;
  seen.left = 1;
  ServerEvents e({}, seen);
  CHECK_FALSE(e.take("data: a\n\ndata: b\n\n"));
  CHECK(seen.text == "message|a||0;");
}
