#include "core/cli/websec_verbs.hpp"
#include "core/cli/websec_words.hpp"

namespace h5i::cli {

int websec_diff(Context& ctx, const Parsed& words) {
  return act_and_print(ctx, words.arguments[0], "diff", json::Object{{"a", words.arguments[1]}, {"b", words.arguments[2]}}, true);
}

int websec_match(Context& ctx, const Parsed& words) {
  auto patterns = utf8_list({words.arguments.begin() + 2, words.arguments.end()}, "a pattern");
  if (!patterns) return refuse_web(ctx, patterns.error());
  return act_and_print(ctx, words.arguments[0], "match", json::Object{{"number", words.arguments[1]}, {"patterns", std::move(*patterns)}}, true);
}

}  // namespace h5i::cli
