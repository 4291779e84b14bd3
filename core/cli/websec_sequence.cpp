#include "core/base/text.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/cli/websec_words.hpp"
#include "core/os/fs.hpp"

namespace h5i::cli {
namespace {

Result<Json> sequence_words(const session::WebSession& session, const Parsed& words) {
  if (!words.has("--plan")) return make_error(Errc::USAGE, "--plan FILE is missing", "a sequence is a file", "h5i websec sequence --help");
  const std::string text = H5I_TRY(os::read_file(words.get("--plan"), kMostWebBytes));
  if (!valid_utf8(text)) return make_error(Errc::INVALID, "the plan is not UTF-8", printable(words.get("--plan")));
  std::vector<std::string> as;
  // Only to know whose values it needs; the engine judges it.
  if (auto read = json::parse(text); read && (*read)["as"].is_string()) as.push_back((*read)["as"].string());
  Json out = json::Object{{"plan", text}};
  out["secrets"] = H5I_TRY(secrets_of(session, as));
  return out;
}

}  // namespace

int websec_sequence(Context& ctx, const Parsed& words) {
  auto session = web_session(words.arguments[0]);
  if (!session) return refuse_web(ctx, session.error());
  auto wanted = sequence_words(*session, words);
  if (!wanted) return refuse_web(ctx, wanted.error());
  return act_and_print(ctx, words.arguments[0], "sequence", std::move(*wanted), false);
}

}  // namespace h5i::cli
