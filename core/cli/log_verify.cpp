#include <time.h>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/cli/evidence_verbs.hpp"
#include "core/cli/log_target.hpp"
#include "core/evidence/verify.hpp"

namespace h5i::cli {
namespace {

// The end of a run starts the signing and does not wait for it; a person who verifies at once should.
constexpr int64_t kSealingTimeNs = 3'000'000'000;
constexpr long kLookAgainNs = 50'000'000;

struct Outcome {
  LogTarget target;
  evidence::LogVerdict verdict;
};

bool sealing_may_be_under_way(const evidence::LogVerdict& v, const std::string& path) {
  if (v.error || v.sealed() || v.chain.head.count == 0) return false;
  std::string newest;
  auto read = evidence::read_log(path, [&](uint64_t, const Json& r) {
    newest = r["time"].string();
    return true;
  });
  // RFC 3339 in UTC with milliseconds sorts as text.
  return read && newest >= rfc3339(realtime_ns() - kSealingTimeNs);
}

// A log that was exchanged whole, seal and all, by the log of another box of this host is intact; the box's name in its
// first record is not.
std::optional<Error> of_another_box(const LogTarget& target) {
  if (!target.box) return {};
  std::string named;
  auto read = evidence::read_log(target.path, [&](uint64_t, const Json& r) {
    if (r["kind"].string() == "created") named = r["body"]["box"].string();
    return false;
  });
  // A session was found by its id, and the name adds nothing.
  if (!read || named.empty() || !target.session.empty() || named == target.box->name.str()) return {};
  return make_error(Errc::LOG_FOREIGN, "the log of " + target.box->name.str() + " is the log of another box",
                    "record 0: it was created as " + printable(named, {.limit = 200}));
}

Result<Outcome> verify(const Parsed& words) {
  Outcome out{H5I_TRY(log_target(words.arguments[0])), {}};
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  auto files = words.options.find("--key");
  evidence::VerifyInputs in;
  in.log_path = out.target.path;
  in.state_dir = dirs.state;
  in.keys = H5I_TRY(evidence::accepted_keys(dirs.state, dirs.config,
                                            files == words.options.end() ? std::vector<std::string>() : files->second));
  out.verdict = H5I_TRY(evidence::verify_log(in));
  while (out.target.box && !words.has("--allow-unsealed") && sealing_may_be_under_way(out.verdict, in.log_path)) {
    timespec nap{0, kLookAgainNs};
    nanosleep(&nap, nullptr);
    in.keys = H5I_TRY(evidence::accepted_keys(
        dirs.state, dirs.config, files == words.options.end() ? std::vector<std::string>() : files->second));
    out.verdict = H5I_TRY(evidence::verify_log(in));
  }
  if (!out.verdict.error)
    if (auto e = of_another_box(out.target)) {
      out.verdict.error = *e;
      out.verdict.chain.broken = true;
      out.verdict.chain.bad = 0;
    }
  return out;
}

Json verdict_json(const std::string& target, const Outcome& o, const std::optional<Error>& failed) {
  const evidence::LogVerdict& v = o.verdict;
  Json seal, error, bad;
  if (v.has_seal)
    seal = json::Object{{"records", v.seal.count},
                        {"time", v.seal.time},
                        {"key", v.seal.key_id},
                        {"key_from", v.key_from},
                        {"from", v.seal_from}};
  if (failed)
    error = json::Object{{"id", failed->id()},
                         {"code", static_cast<int>(failed->code)},
                         {"what", failed->what},
                         {"evidence", failed->evidence},
                         {"next", failed->remedy()}};
  if (v.chain.broken) bad = v.chain.bad;
  return json::Object{{"schema", "h5i.log-verify/1"},
                      {"target", target},
                      {"path", o.target.path},
                      {"log", v.chain.head.log_id},
                      {"ok", !failed},
                      {"records", v.chain.head.count},
                      {"chain", v.chain.broken ? "broken" : "intact"},
                      {"sealed", v.sealed()},
                      {"unproven", v.chain.broken ? Json() : Json(v.unproven())},
                      {"seal", seal},
                      {"first_bad", bad},
                      {"error", error}};
}

void print(Context& ctx, const Outcome& o) {
  const evidence::LogVerdict& v = o.verdict;
  std::string what = o.target.box ? o.target.box->name.str() : o.target.path;
  ctx.line("verified " + what + ": " + std::to_string(v.chain.head.count) + " records, chain intact, " +
           (v.sealed() ? "end proven" : "end not proven (--allow-unsealed)"));
  ctx.line("  log   " + v.chain.head.log_id);
  if (!v.has_seal) return;
  ctx.line("  seal  " + std::to_string(v.seal.count) + " records, " + v.seal.time + ", " + v.seal_from);
  ctx.line("  key   " + v.seal.key_id + " (" + v.key_from + ")");
}

}  // namespace

int log_verify(Context& ctx, const Parsed& words) {
  auto done = verify(words);
  if (!done) return ctx.refuse(done.error());
  std::optional<Error> failed = done->verdict.error;
  if (!failed && !done->verdict.sealed() && !words.has("--allow-unsealed"))
    failed = evidence::unsealed_error(done->target.path, done->verdict);
  if (ctx.json)
    ctx.result(verdict_json(words.arguments[0], *done, failed));
  else if (failed)
    return ctx.refuse(*failed);
  else
    print(ctx, *done);
  return failed ? 1 : 0;
}

}  // namespace h5i::cli
