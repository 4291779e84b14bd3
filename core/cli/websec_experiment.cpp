#include <algorithm>

#include "core/base/text.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/cli/websec_words.hpp"
#include "core/os/fs.hpp"

namespace h5i::cli {
namespace {

constexpr int64_t kMostSends = 1000, kMostParallel = 32;
constexpr const char* kHelp = "h5i websec experiment --help";

Error usage(std::string what, std::string why) { return make_error(Errc::USAGE, std::move(what), std::move(why), kHelp); }

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<int64_t> send_number(const std::string& text) {
  if (text.empty() || text.size() > 15 || text.find_first_not_of("0123456789") != std::string::npos) return usage("not the number of a send", printable(text));
  return std::stoll(text);
}

// A plan of words, as a file has it.
Result<Json> plan_of_words(const Parsed& words) {
  Json plan = json::Object{{"schema", "h5i.websec-plan/1"}};
  std::vector<std::string> edits(words.arguments.begin() + 1, words.arguments.end());
  if (words.has("--matrix")) {
    Json numbers = json::Array{};
    for (const std::string& n : split(words.get("--matrix"))) numbers.push(H5I_TRY(send_number(n)));
    plan["matrix"] = std::move(numbers);
  } else {
    if (edits.empty()) return usage("what is sent is missing", "the number of a send, --plan, --matrix or --resume");
    plan["replay"] = H5I_TRY(send_number(edits[0]));
    edits.erase(edits.begin());
  }
  edits.insert(edits.end(), words.rest.begin(), words.rest.end());
  plan["edits"] = H5I_TRY(utf8_list(edits, "an edit"));
  if (words.has("--as")) plan["as"] = H5I_TRY(utf8_list(split(words.get("--as")), "a name"));
  plan["follow"] = H5I_TRY(number_word(words, "--follow", 0, 0, kMostFollow, "experiment"));
  plan["timeout_s"] = H5I_TRY(number_word(words, "--timeout", 30, 1, kMostSeconds, "experiment"));
  plan["parallel"] = H5I_TRY(number_word(words, "--parallel", 1, 1, kMostParallel, "experiment"));
  if (words.has("--max-errors")) plan["max_errors"] = H5I_TRY(number_word(words, "--max-errors", 0, 1, kMostSends, "experiment"));
  for (const char* text : {"--rate", "--name"})
    if (words.has(text)) {
      if (!valid_utf8(words.get(text))) return make_error(Errc::INVALID, std::string(text) + " is not UTF-8", printable(words.get(text)));
      plan[std::string(text).substr(2)] = words.get(text);
    }
  plan["lenient"] = words.has("--lenient");
  plan["insecure"] = words.has("--insecure");
  plan["reuse"] = words.has("--reuse");
  if (words.has("--stop-on")) plan["stop_on"] = H5I_TRY(utf8_list({words.get("--stop-on")}, "--stop-on"));
  return plan;
}

Result<Json> experiment_words(const session::WebSession& session, const Parsed& words) {
  const bool plan = words.has("--plan"), resume = words.has("--resume"), more = words.arguments.size() > 1 || !words.rest.empty();
  if (plan && resume) return usage("--plan and --resume exclude each other", "what is resumed has its plan");
  if (plan || resume)
    for (const auto& [name, values] : words.options)
      if (name != "--plan" && name != "--resume" && (name != "--inputs" || resume) && name != "--json" && name != "--quiet" && name != "--verbose") return usage(name + " is in the plan", "give it there");
  if ((plan || resume) && more) return usage("the edits are in the plan", printable(words.arguments.size() > 1 ? words.arguments[1] : words.rest[0]));
  Json out = json::Object{};
  std::vector<std::string> as;
  if (resume) {
    out["resume"] = words.get("--resume");
    session::WebAct look{.act = "experiment", .words = json::Object{{"about", words.get("--resume")}}, .timeout_ms = kWebPatienceMs};
    const Json about = H5I_TRY(session::look_at_session(session, look)).document;
    for (const Json& name : about["as"].array()) as.push_back(name.string());
  } else {
    const std::string text = plan ? H5I_TRY(os::read_file(words.get("--plan"), kMostWebBytes)) : json::canonical(H5I_TRY(plan_of_words(words)));
    if (!valid_utf8(text)) return make_error(Errc::INVALID, "the plan is not UTF-8", printable(words.get("--plan")));
    // Only to know whose values it needs; the engine judges it.
    if (auto read = json::parse(text))
      for (const Json& name : (*read)["as"].array()) as.push_back(name.string());
    out["plan"] = text;
    if (words.has("--inputs")) out["inputs_hex"] = H5I_TRY(hex_of_file(words.get("--inputs")));
  }
  out["secrets"] = H5I_TRY(secrets_of(session, as));
  return out;
}

}  // namespace

int websec_experiment(Context& ctx, const Parsed& words) {
  auto session = web_session(words.arguments[0]);
  if (!session) return refuse_web(ctx, session.error());
  auto wanted = experiment_words(*session, words);
  if (!wanted) return refuse_web(ctx, wanted.error());
  // How long a plan takes is the user's to say.
  return act_and_print(ctx, words.arguments[0], "experiment", std::move(*wanted), false);
}

}  // namespace h5i::cli
