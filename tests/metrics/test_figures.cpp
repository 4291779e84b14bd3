// What counts, and that nothing in a log becomes a line of its own.
#include <sstream>

#include "core/evidence/figures.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;

namespace {

Json record_of(const char* kind, Json body, const char* observer = "core", const char* lane = "host-observed") {
  return json::Object{{"kind", kind}, {"lane", lane}, {"observer", observer}, {"body", std::move(body)}};
}
Json receipt(const char* tier, const char* status, int64_t us, int64_t denied = 0, int64_t packets = -1) {
  Json r = json::Object{{"tier", tier}, {"outcome", json::Object{{"status", status}}}, {"usage", json::Object{{"wall_us", us}}}, {"denials", json::Array{}}};
  if (denied > 0) r["denials"].push(json::Object{{"syscall", "socket"}, {"count", denied}});
  if (packets >= 0) r["network"] = json::Object{{"refused_packets", packets}};
  return r;
}
bool has(const std::string& text, const std::string& line) { return text.find("\n" + line + "\n") != std::string::npos; }

// Every line is a comment, or a name, labels and a number, as a collector reads them.
void check_format(const std::string& text) {
  std::istringstream in(text);
  REQUIRE(text.ends_with("\n"));
  for (std::string line; std::getline(in, line);) {
    INFO(line);
    if (line.starts_with("# HELP h5i_") || line.starts_with("# TYPE h5i_")) continue;
    CHECK(line.starts_with("h5i_"));
    const size_t space = line.rfind(' ');
    REQUIRE(space != std::string::npos);
    CHECK(line.find_first_not_of("0123456789.e+-", space + 1) == std::string::npos);
    for (char c : line) CHECK((c >= 0x20 && c < 0x7f));
    CHECK(std::count(line.begin(), line.end(), '"') % 2 == 0);
    CHECK(line.find('\\') == std::string::npos);
  }
}

}  // namespace

TEST_CASE("runs, how they ended, how long they took, what was refused and denied") {
  Figures f;
  f.box("idle");
  f.box("idle");
  f.record(record_of("receipt", receipt("process", "exited", 6000, 3)));
  f.record(record_of("receipt", receipt("process", "exited", 60'000'000)));
  f.record(record_of("receipt", receipt("process", "timeout", 20'000'000'000)));
  f.record(record_of("receipt", receipt("supervised", "exited", 10'000, 0, 17)));
  f.record(record_of("run-refused", json::Object{{"id", "policy.egress-unenforceable"}}));
  f.record(record_of("run-requested", json::Object{{"tier", "process"}}));
  const std::string text = f.text("1.2.3");
  check_format(text);
  CHECK(has("\n" + text, "h5i_build_info{version=\"1.2.3\"} 1"));
  for (const char* line : {"h5i_boxes{state=\"idle\"} 2", "h5i_runs_total{tier=\"process\",outcome=\"exited\"} 2", "h5i_runs_total{tier=\"process\",outcome=\"timeout\"} 1", "h5i_runs_total{tier=\"supervised\",outcome=\"exited\"} 1",
                           "h5i_run_duration_seconds_bucket{tier=\"process\",le=\"0.01\"} 1", "h5i_run_duration_seconds_bucket{tier=\"process\",le=\"10\"} 1", "h5i_run_duration_seconds_bucket{tier=\"process\",le=\"60\"} 2",
                           "h5i_run_duration_seconds_bucket{tier=\"process\",le=\"14400\"} 2", "h5i_run_duration_seconds_bucket{tier=\"process\",le=\"+Inf\"} 3", "h5i_run_duration_seconds_sum{tier=\"process\"} 20060.006",
                           "h5i_run_duration_seconds_count{tier=\"process\"} 3", "h5i_run_duration_seconds_bucket{tier=\"supervised\",le=\"0.01\"} 1", "h5i_run_refusals_total{id=\"policy.egress-unenforceable\"} 1", "h5i_denied_calls_total{tier=\"process\"} 3",
                           "h5i_egress_refused_packets_total{tier=\"supervised\"} 17", "h5i_unreadable_logs 0"}) {
    INFO(line);
    CHECK(has(text, line));
  }
  CHECK(text.find("h5i_egress_refused_packets_total{tier=\"process\"}") == std::string::npos);  // a tier that has no such rules says nothing of them
}

TEST_CASE("what others say is no figure") {
  Figures f;
  const std::string before = f.text("1");
  f.record(record_of("receipt", receipt("process", "exited", 1), "box", "box-claimed"));
  f.record(record_of("receipt", receipt("process", "exited", 1), "process@abc"));
  f.record(record_of("receipt", receipt("process", "exited", 1), "core", "engine-claimed"));
  f.record(record_of("run-refused", json::Object{{"id", "x"}}, "spawner"));
  f.record(Json());
  f.record(json::Array{});
  CHECK(f.text("1") == before);
  // The control.
  f.record(record_of("receipt", receipt("process", "exited", 1)));
  CHECK(f.text("1") != before);
}

TEST_CASE("hostile words become others, and not many") {
  Figures f;
  for (const char* word : {"a\"b", "a\nh5i_runs_total 9", "\\", "", "UPPER", "\xff", "spaces here", "\xe2\x80\xae"}) {
    f.record(record_of("receipt", receipt(word, word, -5, INT64_MAX, INT64_MAX)));
    f.record(record_of("run-refused", json::Object{{"id", word}}));
    f.box(word);
  }
  for (int i = 0; i < 5000; i++) {
    const std::string word = "w" + std::to_string(i);
    f.record(record_of("receipt", receipt(word.c_str(), word.c_str(), INT64_MAX)));
    f.record(record_of("run-refused", json::Object{{"id", word}}));
    f.box(word);
  }
  const std::string text = f.text("1");
  check_format(text);
  CHECK(text.find("other") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 5000);
}
