// A session of a web engine whose log has ten lines for each file of --scale (a million): how long its verbs take, and their memory, beside reading
// the same log for the same question.
#include <algorithm>
#include <filesystem>

#include "core/base/text.hpp"
#include "core/evidence/log.hpp"
#include "tests/bench/benches.hpp"

namespace h5i::bench {
namespace {

constexpr int kHosts = 20;
constexpr double kOpenMs = 1000, kQueryMs = 100;
constexpr long kPeakKib = 150 * 1024;

std::string host_of(int i) { return "app" + std::to_string(i % kHosts) + ".example.test"; }

// As an engine writes them: the line of a send, and that of its outcome behind it.
void fill(const std::string& path, const evidence::Observer& engine, int lines) {
  auto log = evidence::Log::open(path);
  if (!log) give_up("log: " + log.error().what + " " + log.error().evidence);
  constexpr int kStatus[] = {200, 200, 200, 200, 200, 200, 200, 301, 304, 404, 200, 200, 403, 200, 200, 500};
  auto append = [&](const char* kind, Json body) {
    evidence::Record r;
    r.observer = engine;
    r.boundary = evidence::Boundary::NET;
    r.kind = kind;
    r.body = std::move(body);
    auto head = log->append(r);
    if (!head) give_up("append: " + head.error().what);
    return static_cast<int64_t>(head->count) - 1;
  };
  const std::string digest(64, 'a');
  for (int i = 0; i < lines / 2; i++) {
    // A rare answer on a rare host too, far in the past.
    const std::string host = i == lines / 20 ? "rare.example.test" : host_of(i * 7 + i / 1000);
    const int status = i == lines / 20 ? 418 : kStatus[(i * 5 + i / 777) % 16];
    const int64_t seq = append("send", json::Object{{"method", i % 9 ? "GET" : "POST"}, {"url", "https://" + host + "/item/" + std::to_string(i) + "?page=" + std::to_string(i % 50)}, {"peer", "192.0.2.1:443"},
                                                    {"rule", "https://*.example.test"}, {"head_sha256", digest}, {"head_bytes", 212}, {"body_sha256", digest}, {"body_bytes", 0}, {"cookies", json::Array{"sid"}},
                                                    {"credentials", json::Array{}}, {"computed", json::Array{}}, {"placement", "not contained"}, {"requester", "tester"}, {"tls_name", host}});
    append("outcome", json::Object{{"of", seq}, {"ended", "complete"}, {"status", status}, {"reason", "OK"}, {"sent_bytes", 212}, {"wire_bytes", 1300 + i % 900}, {"head_bytes", 288}, {"head_sha256", digest},
                                   {"body_bytes", 1000 + i % 900}, {"body_sha256", digest}, {"content_type", i % 3 ? "text/html" : "application/json"}, {"facts", json::Array{}},
                                   {"headers", json::Array{"Date", "Server", "Content-Type", "Content-Length", "Set-Cookie"}},
                                   {"times", json::Object{{"connect_us", 400}, {"written_us", 450}, {"first_byte_us", 2000 + i % 5000}, {"total_us", 2100 + i % 5000}}}});
  }
}

struct Timed {
  Series time;
  long peak_kib = 0;
};

Timed measure(const Command& c, int rounds) {
  Timed out;
  for (int i = 0; i < rounds; i++) {
    long peak = 0;
    out.time.us.push_back(run_timed(c, nullptr, &peak));
    out.peak_kib = std::max(out.peak_kib, peak);
  }
  return out;
}

}  // namespace

std::vector<Table> websec_session_scale(const Settings& s) {
  const int lines = s.scale * 10, rounds = s.rounds < 10 ? 3 : 10;
  const std::string h5i = s.prefix + "/bin/h5i", folder = s.scratch + "/home/.local/state/h5i/websec/big";
  run_once({{h5i, "websec", "open", "big", "--scope", "https://*.example.test"}, ""});
  evidence::Observer engine = evidence::Observer::plugin("http", PluginDigest{"sha256:" + std::string(64, '0')});
  engine.lane = evidence::Lane::ENGINE_CLAIMED;
  const double began = now_us();
  fill(folder + "/log.jsonl", engine, lines);
  const double filled = now_us() - began;

  auto command = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {h5i, "websec"});
    return Command{words, ""};
  };
  const std::string middle = std::to_string(lines / 2 / 2 * 2 + 1);  // the opening is line 0, so sends have odd numbers
  run_once({{"/bin/rm", "-rf", folder + "/state/index"}, ""});
  Timed first = measure(command({"hist", "big", "host:app7", "status:404", "--last", "50"}), 1);
  struct Asked {
    const char* what;
    Timed timed;
    double bar_ms;
  };
  std::vector<Asked> asked = {
      {"hist --last 1", measure(command({"hist", "big", "--last", "1"}), rounds), kOpenMs},
      {"hist host:app7 status:404 --last 50", measure(command({"hist", "big", "host:app7", "status:404", "--last", "50"}), rounds), kQueryMs},
      {"hist host:rare status:418 (one, far back)", measure(command({"hist", "big", "host:rare", "status:418"}), rounds), kQueryMs},
      {"hist host:app7 status:404 (1000 rows)", measure(command({"hist", "big", "host:app7", "status:404"}), rounds), kQueryMs},
      {"hist status:2xx (1000 rows)", measure(command({"hist", "big", "status:2xx"}), rounds), 0},
      {"hist path:/item/77 --last 50", measure(command({"hist", "big", "path:/item/77", "--last", "50"}), rounds), 0},
      {"show of one in the middle", measure(command({"show", "big", middle}), rounds), kQueryMs},
  };
  run_once({{"/bin/rm", "-rf", folder + "/state"}, ""});  // no index can be made
  Timed without = measure(command({"hist", "big", "host:app7", "status:404", "--last", "50"}), 1);

  Table t;
  t.name = "websec_session_scale";
  t.caption = "Milliseconds and peak memory of whole commands on a session of " + std::to_string(lines) + " lines (" + number(static_cast<double>(std::filesystem::file_size(folder + "/log.jsonl")) / 1e6, 0) + " MB, appended in " + number(filled / 1e6, 1) +
              " s), " + std::to_string(rounds) + " rounds, on " + file_system_of(s.scratch) + ". The peers read the log for outcomes with the status 404, half of the question.";
  t.head = {"what", "p50", "slowest", "MiB"};
  auto row = [&](const std::string& what, const Timed& m) { t.rows.push_back({what, milliseconds(m.time.at(0.5)), milliseconds(m.time.at(1)), number(static_cast<double>(m.peak_kib) / 1024, 0)}); };
  for (const Asked& a : asked) row(a.what, a.timed);
  row("the first hist, which makes the index", first);
  row("the same where no index can be made", without);
  row("grep -c '\"status\":404' log.jsonl", measure({{"/bin/sh", "-c", "grep -c '\"status\":404' \"$0\" | cat", folder + "/log.jsonl"}, ""}, 3));  // to a null device grep ends at the first
  if (std::string jq = find_program("jq"); !jq.empty()) row("jq, the same question", measure({{jq, "-c", "select(.kind == \"outcome\" and .body.status == 404) | .body.of", folder + "/log.jsonl"}, ""}, 1));
  long peak = std::max(first.peak_kib, without.peak_kib);
  double open = asked[0].timed.time.at(0.5) / 1e3, query = 0;
  for (const Asked& a : asked) {
    peak = std::max(peak, a.timed.peak_kib);
    if (a.bar_ms == kQueryMs) query = std::max(query, a.timed.time.at(0.5) / 1e3);
  }
  auto verdict = [](bool held) { return held ? std::string("held") : std::string("missed"); };
  t.verdicts = {"bar: a million lines open in 1 s, once they have an index; here " + number(open / 1e3, 3) + " s: " + verdict(open <= kOpenMs),
                "bar: a query by host and status in 100 ms; here at most " + number(query, 0) + " ms: " + verdict(query <= kQueryMs),
                "bar: under 150 MB; here " + number(static_cast<double>(peak) / 1024, 0) + " MiB, with the making of the index: " + verdict(peak < kPeakKib)};
  run_once({{"/bin/rm", "-rf", folder}, ""});
  return {t};
}

}  // namespace h5i::bench
