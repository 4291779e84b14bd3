#include "core/base/text.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/cli/websec_words.hpp"

namespace h5i::cli {
namespace {

constexpr int64_t kMostRace = 20, kMostRepeat = 1000;

Result<Json> replay_words(const session::WebSession& session, const Parsed& words) {
  std::vector<std::string> edits(words.arguments.begin() + 2, words.arguments.end());
  edits.insert(edits.end(), words.rest.begin(), words.rest.end());
  if (words.has("--raw") && (!edits.empty() || words.has("--as")))
    return make_error(Errc::USAGE, "--raw is the whole request", "no edit and no --as beside it", "h5i websec replay --help");
  if (words.has("--race") && words.has("--repeat")) return make_error(Errc::USAGE, "--race and --repeat exclude each other", "one is at once, the other one after another", "h5i websec replay --help");
  if (words.has("--race") && words.has("--rate")) return make_error(Errc::USAGE, "--race and --rate exclude each other", "what is at once has no spacing", "h5i websec replay --help");
  Json out = json::Object{{"number", words.arguments[1]}};
  out["edits"] = H5I_TRY(edit_words(edits));
  out["follow"] = H5I_TRY(number_word(words, "--follow", 0, 0, kMostFollow, "replay"));
  out["timeout_s"] = H5I_TRY(number_word(words, "--timeout", 30, 1, kMostSeconds, "replay"));
  out["race"] = H5I_TRY(number_word(words, "--race", 0, 2, kMostRace, "replay"));
  out["repeat"] = H5I_TRY(number_word(words, "--repeat", 0, 1, kMostRepeat, "replay"));
  out["lenient"] = words.has("--lenient");
  out["insecure"] = words.has("--insecure");
  if (words.has("--rate")) out["rate"] = words.get("--rate");
  if (words.has("--raw")) out["raw_hex"] = H5I_TRY(hex_of_file(words.get("--raw")));
  if (words.has("--as")) {
    out["as"] = words.get("--as");
    out["secrets"] = H5I_TRY(secrets_of(session, {words.get("--as")}));
  }
  return out;
}

}  // namespace

int websec_replay(Context& ctx, const Parsed& words) {
  auto session = web_session(words.arguments[0]);
  if (!session) return refuse_web(ctx, session.error());
  auto wanted = replay_words(*session, words);
  if (!wanted) return refuse_web(ctx, wanted.error());
  // With a rate how long it takes is the user's to say.
  const int64_t times = std::max<int64_t>((*wanted)["repeat"].integer(), 1), each_ms = ((*wanted)["follow"].integer() + 1) * (*wanted)["timeout_s"].integer() * 1000;
  return act_and_print(ctx, words.arguments[0], "replay", std::move(*wanted), false, words.has("--rate") ? -1 : times * each_ms + kWebPatienceMs);
}

}  // namespace h5i::cli
