// Help, parser and tables are one thing: what one knows, the others know.
#include <set>

#include "core/cli/parse.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::cli;

namespace {

// The options that a person finds in the text: words that begin with -- at the start of an option line.
std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> out;
  size_t at = help.find("\nOptions:\n");
  REQUIRE(at != std::string::npos);
  for (at += 10; at < help.size();) {
    size_t end = std::min(help.find('\n', at), help.size());
    std::string line = help.substr(at, end - at);
    at = end + 1;
    if (line.size() < 7 || line[0] != ' ' || (line[2] != '-' && line[6] != '-')) continue;
    size_t from = line.find("--");
    size_t to = std::min(line.find(' ', from), line.size());
    out.insert(line.substr(from, to - from));
  }
  return out;
}

std::vector<std::string> words_for(const Command& c, std::vector<std::string> extra) {
  std::vector<std::string> out(static_cast<size_t>(c.min_args), "word");
  out.insert(out.end(), extra.begin(), extra.end());
  return out;
}

const Command& command(const std::string& noun, const std::string& verb) {
  for (const Command& c : all_commands())
    if (c.noun == noun && c.verb == verb) return c;
  FAIL("no verb " << noun << " " << verb);
  return all_commands()[0];
}

}  // namespace

TEST_CASE("every option that a verb's parser accepts is in its help, and the reverse") {
  std::map<std::string, bool> every;  // all names of all verbs, and whether they take a value there
  for (const Command& c : all_commands())
    for (const Option& o : c.options) every[o.name] = !o.value.empty();
  for (const Option& o : common_options()) every[o.name] = false;
  REQUIRE(every.size() > 30);
  for (const Command& c : all_commands()) {
    std::set<std::string> shown = options_in(help_of(c));
    for (const auto& [name, unused] : every) {
      CAPTURE(c.noun, c.verb, name);
      bool accepted = parse_words(c, words_for(c, {name})).ok() || parse_words(c, words_for(c, {name, "value"})).ok();
      CHECK(accepted == (shown.count(name) == 1));
    }
    for (const std::string& name : shown) CHECK(every.count(name) == 1);
  }
}

TEST_CASE("every row of the tables is whole") {
  std::set<std::string> seen;
  for (const Command& c : all_commands()) {
    CAPTURE(c.noun, c.verb);
    CHECK(seen.insert(c.noun + " " + c.verb).second);
    CHECK(c.usage.compare(0, c.noun.size() + c.verb.size() + 1, c.noun + " " + c.verb) == 0);
    CHECK(c.summary.size() > 10);
    CHECK(c.summary.back() == '.');
    CHECK_FALSE(c.executable.empty());
    CHECK((c.max_args < 0 || c.max_args >= c.min_args));
    CHECK((c.options.empty() || c.usage.find("[options]") != std::string::npos));
    std::set<std::string> names;
    std::set<char> letters{'q', 'v', 'h'};
    for (const Option& o : c.options) {
      CHECK(o.name.compare(0, 2, "--") == 0);
      CHECK(o.help.size() > 5);
      CHECK(names.insert(o.name).second);
      if (o.short_name) CHECK(letters.insert(o.short_name).second);
    }
  }
  CHECK(seen.size() > 25);
}

TEST_CASE("an unknown option is wrong usage and names the nearest one") {
  auto r = parse_words(command("box", "create"), {"--isolaton", "process"});
  REQUIRE_FALSE(r);
  CHECK(r.error().code == Errc::USAGE);
  CHECK(r.error().what.find("--isolaton") != std::string::npos);
  CHECK(r.error().evidence.find("--isolation") != std::string::npos);
  CHECK(r.error().remedy() == "h5i box create --help");
  auto far = parse_words(command("box", "create"), {"--xyzzyplugh"});
  REQUIRE_FALSE(far);
  CHECK(far.error().evidence.find("did you mean") == std::string::npos);
}

TEST_CASE("words after -- belong to the command, whatever they look like") {
  auto r = parse_words(command("box", "run"), {"fix", "--cwd", "src", "--", "make", "--json", "-q", "--"});
  REQUIRE(r);
  CHECK(r->arguments == std::vector<std::string>{"fix"});
  CHECK(r->rest == std::vector<std::string>{"make", "--json", "-q", "--"});
  CHECK(r->get("--cwd") == "src");
  CHECK_FALSE(r->has("--json"));
}

TEST_CASE("a command without -- is refused and says where its words go") {
  auto r = parse_words(command("box", "run"), {"fix", "make", "test"});
  REQUIRE_FALSE(r);
  CHECK(r.error().evidence.find("after --") != std::string::npos);
}

TEST_CASE("the forms of an option") {
  const Command& stop = command("box", "stop");
  CHECK(parse_words(stop, {"b", "--grace=3"})->get("--grace") == "3");
  CHECK(parse_words(stop, {"--grace", "3", "b"})->get("--grace") == "3");
  CHECK(parse_words(stop, {"--grace=", "b"})->get("--grace", "x") == "");
  CHECK(parse_words(stop, {"-qv", "b"})->has("--verbose"));
  CHECK_FALSE(parse_words(stop, {"b", "--grace"}));
  CHECK_FALSE(parse_words(stop, {"b", "--grace", "1", "--grace", "2"}));
  CHECK_FALSE(parse_words(stop, {"b", "--json=yes"}));
  CHECK_FALSE(parse_words(stop, {"b", "-x"}));
  CHECK_FALSE(parse_words(stop, {"b", "--"}));
  CHECK_FALSE(parse_words(stop, {}));
  CHECK_FALSE(parse_words(stop, {"b", "c"}));
  CHECK(parse_words(stop, {"b", "-q", "-q"}));
}

TEST_CASE("nearest finds slips of one or two letters and nothing far off") {
  std::vector<std::string> verbs{"create", "status", "stop", "rebase"};
  CHECK(nearest("craete", verbs) == "create");
  CHECK(nearest("statsu", verbs) == "status");
  CHECK(nearest("stpo", verbs) == "stop");
  CHECK(nearest("reba", verbs) == "rebase");
  CHECK(nearest("frobnicate", verbs).empty());
  CHECK(nearest("", verbs).empty());
  CHECK(nearest(std::string(100000, 'a'), verbs).empty());
}
