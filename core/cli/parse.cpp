#include "core/cli/parse.hpp"

#include <algorithm>

#include "core/base/edit_distance.hpp"

namespace h5i::cli {
namespace {

std::string full_name(const Command& c) { return c.full_name(); }

Error usage_error(const Command& c, std::string what, std::string evidence) {
  return make_error(Errc::USAGE, std::move(what), std::move(evidence), "h5i " + full_name(c) + " --help");
}

const Option* find_option(const Command& c, std::string_view name) {
  for (const Option& o : c.options)
    if (o.name == name) return &o;
  for (const Option& o : common_options())
    if (o.name == name) return &o;
  return nullptr;
}

const Option* find_short(const Command& c, char letter) {
  for (const Option& o : c.options)
    if (o.short_name == letter) return &o;
  for (const Option& o : common_options())
    if (o.short_name == letter) return &o;
  return nullptr;
}

Error unknown_option(const Command& c, const std::string& word) {
  std::vector<std::string> known;
  for (const Option& o : c.options) known.push_back(o.name);
  for (const Option& o : common_options()) known.push_back(o.name);
  std::string near = nearest(word, known);
  return usage_error(c, "unknown option " + word + " of " + full_name(c),
                     near.empty() ? "no option of this verb is near it" : "did you mean " + near + "?");
}

Result<void> store(const Command& c, const Option& o, std::string value, Parsed& out) {
  auto& values = out.options[o.name];
  bool common = std::any_of(common_options().begin(), common_options().end(),
                            [&](const Option& k) { return k.name == o.name; });
  if (!values.empty() && !o.repeated && !common)
    return usage_error(c, "option " + o.name + " is given twice", "it takes one value, and which was meant is not clear");
  values.push_back(std::move(value));
  return {};
}

std::string wrapped(const std::string& text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent, at = 0;
  bool first = true;
  while (at < text.size()) {
    if (text[at] == '\n') {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
      at++;
      continue;
    }
    if (text[at] == ' ') {
      at++;
      continue;
    }
    size_t end = std::min(text.find_first_of(" \n", at), text.size());
    size_t length = end - at;
    if (!first && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) {
      out += ' ';
      column++;
    }
    out.append(text, at, length);
    column += length;
    first = false;
    at = end;
  }
  return out;
}

constexpr size_t kWidth = 100;

std::string option_line(const Option& o) {
  std::string left = "  ";
  left += o.short_name ? std::string("-") + o.short_name + ", " : "    ";
  left += o.name;
  if (!o.value.empty()) left += " " + o.value;
  std::string out = left;
  constexpr size_t kColumn = 30;
  if (left.size() + 2 > kColumn)
    out += "\n" + std::string(kColumn, ' ');
  else
    out += std::string(kColumn - left.size(), ' ');
  std::string help = o.help;
  if (o.repeated) help += " (may be repeated)";
  return out + wrapped(help, kColumn, kWidth) + "\n";
}

std::string verb_line(const std::string& left, const std::string& summary) {
  constexpr size_t kColumn = 24;
  std::string out = "  " + left;
  out += out.size() + 2 > kColumn ? "  " : std::string(kColumn - out.size(), ' ');
  return out + wrapped(summary, kColumn, kWidth) + "\n";
}

}  // namespace

const std::vector<Option>& common_options() {
  static const std::vector<Option> kCommon = {
      {"--json", "", "print one JSON object on standard output, and nothing else there", false, 0},
      {"--quiet", "", "no notes on standard error", false, 'q'},
      {"--verbose", "", "more notes on standard error", false, 'v'},
      {"--help", "", "print this text", false, 'h'},
  };
  return kCommon;
}

Result<Parsed> parse_words(const Command& c, const std::vector<std::string>& words) {
  Parsed out;
  size_t i = 0;
  auto value_of = [&](const Option& o, const std::string& shown) -> Result<std::string> {
    if (i + 1 >= words.size() || words[i + 1] == "--")
      return usage_error(c, "option " + shown + " needs a value", shown + " " + o.value);
    return words[++i];
  };
  for (; i < words.size(); i++) {
    const std::string& w = words[i];
    if (w == "--") {
      if (!c.rest) return usage_error(c, full_name(c) + " takes nothing after --", "usage: h5i " + c.usage);
      out.rest.assign(words.begin() + static_cast<long>(i) + 1, words.end());
      break;
    }
    if (w.size() > 2 && w.compare(0, 2, "--") == 0) {
      size_t eq = w.find('=');
      std::string name = w.substr(0, eq);
      const Option* o = find_option(c, name);
      if (!o) return unknown_option(c, name);
      if (o->value.empty()) {
        if (eq != std::string::npos) return usage_error(c, "option " + name + " takes no value", w);
        H5I_TRY(store(c, *o, "", out));
      } else if (eq != std::string::npos) {
        H5I_TRY(store(c, *o, w.substr(eq + 1), out));
      } else {
        std::string value = H5I_TRY(value_of(*o, name));
        H5I_TRY(store(c, *o, std::move(value), out));
      }
    } else if (w.size() > 1 && w[0] == '-') {
      for (size_t k = 1; k < w.size(); k++) {
        std::string shown = std::string("-") + w[k];
        const Option* o = find_short(c, w[k]);
        if (!o) return unknown_option(c, w.size() == 2 ? w : shown);
        if (o->value.empty()) {
          H5I_TRY(store(c, *o, "", out));
          continue;
        }
        if (k + 1 != w.size()) return usage_error(c, "option " + shown + " needs a value of its own", shown + " " + o->value);
        std::string value = H5I_TRY(value_of(*o, shown));
        H5I_TRY(store(c, *o, std::move(value), out));
      }
    } else {
      out.arguments.push_back(w);
    }
  }
  if (out.has("--help")) return out;
  auto count = static_cast<int>(out.arguments.size());
  if (count < c.min_args)
    return usage_error(c, full_name(c) + " needs " + std::to_string(c.min_args) + (c.min_args == 1 ? " name" : " names"),
                       "usage: h5i " + c.usage);
  if (c.max_args >= 0 && count > c.max_args)
    return usage_error(c, "too many words for " + full_name(c) + ": " + out.arguments[static_cast<size_t>(c.max_args)],
                       c.rest ? "the words of the command go after --: h5i " + c.usage : "usage: h5i " + c.usage);
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // keeps the distance table small for hostile words
  if (word.empty() || word.size() > kLongest) return {};
  std::string best;
  size_t best_distance = std::max<size_t>(1, std::min<size_t>(3, word.size() / 3)) + 1;
  for (const std::string& k : known) {
    size_t d = edit_distance(word, k);
    if (d < best_distance) {
      best_distance = d;
      best = k;
    }
  }
  if (best.empty() && word.size() >= 4)
    for (const std::string& k : known)
      if (k.compare(0, word.size(), word) == 0) return k;
  return best;
}

std::string help_of(const Command& c) {
  std::string out = "Usage: h5i " + c.usage + "\n\n" + wrapped(c.summary, 0, kWidth) + "\n";
  if (!c.description.empty()) out += "\n" + wrapped(c.description, 0, kWidth) + "\n";
  out += "\nOptions:\n";
  for (const Option& o : c.options) out += option_line(o);
  for (const Option& o : common_options()) out += option_line(o);
  return out;
}

std::string help_of_noun(const std::string& noun, const std::vector<const Command*>& verbs) {
  std::string out = "Usage: h5i " + noun + " VERB [options]\n\nVerbs:\n";
  for (const Command* c : verbs) out += verb_line(c->verb, c->summary);
  return out + "\nh5i " + noun + " VERB --help says more about one of them.\n";
}

std::string help_of_all(const std::vector<const Command*>& verbs) {
  std::string out =
      "Usage: h5i NOUN VERB [options]\n\nRuns unreviewed work in confined boxes and leaves a receipt that says what was "
      "enforced.\n";
  std::string noun;
  for (const Command* c : verbs) {
    if (c->noun != noun) out += "\n" + c->noun + "\n";
    noun = c->noun;
    out += verb_line(c->full_name(), c->summary);
  }
  out +=
      "\nOptions:\n"
      "      --version               print version and commit; with --json also features and plugin ABI\n"
      "      --json                  with the above, and when a word is refused: one JSON object\n"
      "  -h, --help                  print this text\n"
      "      --generate-man DIR      write the manual pages there\n"
      "      --generate-completion SHELL\n"
      "                              print the completion for bash, zsh or fish\n"
      "\nh5i NOUN VERB --help says more about one verb. h5i env is another name for h5i box.\n";
  return out;
}

}  // namespace h5i::cli
