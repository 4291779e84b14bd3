#include "core/base/text.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/cli/websec_words.hpp"

namespace h5i::cli {
namespace {

Result<Json> ident_words(const Parsed& words) {
  const std::string& what = words.arguments[1];
  auto usage = [](std::string why) { return make_error(Errc::USAGE, "add NAME --header LINE, list, or remove NAME", std::move(why), "h5i websec ident --help"); };
  if (what != "add" && what != "list" && what != "remove") return usage("not one of them: " + printable(what));
  if ((what == "list") != (words.arguments.size() == 2)) return usage(what == "list" ? "list takes no name" : "a name is missing");
  if ((what == "add") != words.has("--header")) return usage(what == "add" ? "an identity has at least one header" : "--header belongs to add");
  Json out = json::Object{{"do", what}};
  if (what != "list") out["name"] = words.arguments[2];
  if (what == "add") out["headers"] = H5I_TRY(utf8_list(words.options.at("--header"), "a header"));
  return out;
}

}  // namespace

int websec_ident(Context& ctx, const Parsed& words) {
  auto wanted = ident_words(words);
  if (!wanted) return refuse_web(ctx, wanted.error());
  const bool looking = words.arguments[1] == "list";
  return act_and_print(ctx, words.arguments[0], "ident", std::move(*wanted), looking, kWebPatienceMs);
}

}  // namespace h5i::cli
