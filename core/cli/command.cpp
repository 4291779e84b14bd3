// From argv to a verb: top-level options, nouns, suggestions, dispatch.
#include "core/cli/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/text.hpp"
#include "core/cli/executables.hpp"
#include "core/cli/generate.hpp"
#include "core/cli/parse.hpp"
#include "core/cli/tables.hpp"
#include "core/cli/version.hpp"

namespace h5i::cli {
namespace {

std::vector<Command>& commands() {
  static std::vector<Command> all = [] {
    std::vector<Command> v;
    for (auto table : {box_table, box_repo_table, box_host_table, policy_table, log_table, plugin_table, key_table, websec_table, metrics_table, mcp_table})
      for (Command& c : table()) v.push_back(std::move(c));
    // Nouns stay together whichever file their verbs come from.
    std::vector<std::string> nouns;
    for (const Command& c : v)
      if (std::find(nouns.begin(), nouns.end(), c.noun) == nouns.end()) nouns.push_back(c.noun);
    auto rank = [&](const Command& c) { return std::find(nouns.begin(), nouns.end(), c.noun) - nouns.begin(); };
    std::stable_sort(v.begin(), v.end(), [&](const Command& a, const Command& b) { return rank(a) < rank(b); });
    return v;
  }();
  return all;
}

// A verb exists for the user when this executable implements it, or when the executable that holds it is installed.
bool exists(const Command& c, const std::string& executable) {
  return c.executable == executable ? c.run != nullptr : executable_present(c.executable);
}

std::vector<const Command*> existing(const std::string& executable, const std::string& noun = {}) {
  std::vector<const Command*> out;
  for (const Command& c : commands())
    if ((noun.empty() || c.noun == noun) && exists(c, executable)) out.push_back(&c);
  return out;
}

// What manual pages and completions hold: every verb of the installation that this build makes, installed here or not.
std::vector<const Command*> documented(const std::string& executable) {
  std::vector<const Command*> out;
  for (const Command& c : commands())
    if (c.executable != executable || c.run != nullptr) out.push_back(&c);
  return out;
}

// A process that was started without one of the three standard descriptors must not have its first opened file taken for
// it. Output that goes to a descriptor that was closed is reported as not written.
bool g_was_closed[3] = {};

void open_missing_standard_fds() {
  for (int fd = 0; fd <= 2; fd++) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    g_was_closed[fd] = true;
    int opened = ::open("/dev/null", O_RDWR);
    if (opened < 0 || opened != fd) ::abort();
  }
}

// The executable that holds the verb is to see what we saw, or it would take the substitute for a place that was meant.
void close_substitutes_on_exec() {
  for (int fd = 0; fd <= 2; fd++)
    if (g_was_closed[fd]) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool plain_switch(const std::string& w, bool& json) {
  if (w != "--json") return false;
  json = true;
  return true;
}

struct TopLevel {
  Context& ctx;
  const std::string& executable;
  const std::vector<std::string>& words;  // argv without argv[0]

  int usage(const std::string& what, const std::string& evidence, const std::string& next = "h5i --help") const {
    ctx.json = ctx.json || std::find(words.begin(), words.end(), "--json") != words.end();
    return ctx.refuse(make_error(Errc::USAGE, what, evidence, next));
  }

  int options() const {
    std::string first = words[0];
    std::vector<std::string> left(words.begin() + 1, words.end());
    if (plain_switch(first, ctx.json) && !left.empty()) {
      first = left[0];
      left.erase(left.begin());
    }
    if (first == "--generate-man" && left.size() == 1) return generate_man(ctx, documented(executable), left[0]);
    if (first == "--generate-completion" && left.size() == 1) return generate_completion(ctx, documented(executable), left[0]);
    if (first == "--generate-man" || first == "--generate-completion")
      return usage("option " + first + " needs one value", "h5i --help shows it");
    std::vector<std::string> rest;
    for (const std::string& w : left)
      if (!plain_switch(w, ctx.json)) rest.push_back(w);
    if (first == "--version" && rest.empty()) return print_version(ctx);
    if ((first == "--help" || first == "-h") && rest.empty()) {
      ctx.block(help_of_all(existing(executable)));
      return 0;
    }
    if (first == "--json") return usage("no noun was given", "h5i NOUN VERB [options]");
    // What stands behind an option that is known is wrong; else the option itself is.
    bool known = first == "--version" || first == "--help" || first == "-h";
    std::string wrong = known && !rest.empty() ? rest[0] : first;
    if (wrong[0] != '-') return usage("nothing follows " + words[0] + ", found " + wrong, "options of a verb come after it");
    std::string near = nearest(wrong, {"--version", "--help", "--json", "--generate-man", "--generate-completion"});
    return usage("unknown option " + wrong, near.empty() || near == wrong ? "options of a verb come after it"
                                                                          : "did you mean " + near + "?");
  }

  // Known to the tables, but its executable is not installed here: that is another answer than "no such verb".
  std::optional<int> not_installed(const std::string& noun, const std::string& verb) const {
    for (const Command& c : commands()) {
      if (c.noun != noun || (!verb.empty() && c.verb != verb) || c.executable == executable) continue;
      auto opened = open_executable(c.executable);
      if (opened) continue;
      ctx.json = std::find(words.begin(), words.end(), "--json") != words.end();
      return ctx.refuse(opened.error());
    }
    return std::nullopt;
  }

  int unknown_noun() const {
    if (auto status = not_installed(words[0] == "env" ? "box" : words[0], words.size() > 1 ? words[1] : "")) return *status;
    std::vector<std::string> nouns{"env"};
    for (const Command* c : existing(executable)) nouns.push_back(c->noun);
    std::string near = nearest(words[0], nouns);
    return usage("unknown noun " + words[0], near.empty() ? "there is no such noun" : "did you mean " + near + "?");
  }

  int unknown_verb(const std::string& noun) const {
    if (auto status = not_installed(noun, words[1])) return *status;
    std::vector<std::string> verbs;
    for (const Command* c : existing(executable, noun)) verbs.push_back(c->verb);
    std::string near = nearest(words[1], verbs);
    return usage("unknown verb " + words[1] + " of " + noun,
                 near.empty() ? "there is no such verb" : "did you mean " + near + "?", "h5i " + noun + " --help");
  }
};

int run_verb(Context& ctx, const Command& command, const std::vector<std::string>& words) {
  ctx.lost_status = command.lost_status != 1 || !command.rest ? command.lost_status : 125;
  // Looked at before parsing, so that wrong usage is answered in the form that was asked for.
  for (const std::string& w : words) {
    if (w == "--") break;
    if (w == "--json") ctx.json = true;
  }
  auto parsed = parse_words(command, words);
  if (!parsed) {
    ctx.refuse(parsed.error());
    return command.usage_status;
  }
  ctx.quiet = parsed->has("--quiet");
  ctx.verbose = parsed->has("--verbose");
  if (parsed->has("--help")) {
    ctx.block(help_of(command));
    return 0;
  }
  return command.run(ctx, *parsed);
}

int dispatch(Context& ctx, const std::string& executable, char** argv, const std::vector<std::string>& words) {
  TopLevel top{ctx, executable, words};
  if (words.empty()) return top.usage("no noun was given", "h5i NOUN VERB [options]");
  if (words[0].empty() || words[0][0] == '-') return top.options();
  const std::string noun = words[0] == "env" ? "box" : words[0];
  auto verbs = existing(executable, noun);
  if (verbs.empty()) return top.unknown_noun();
  auto go = [&](const Command& c, size_t own) {
    if (c.executable == executable) return run_verb(ctx, c, {words.begin() + static_cast<std::ptrdiff_t>(own), words.end()});
    close_substitutes_on_exec();
    Error e = exec_executable(c.executable, argv);
    ctx.json = std::find(words.begin(), words.end(), "--json") != words.end();
    return ctx.refuse(e);
  };
  if (verbs[0]->verb.empty()) return go(*verbs[0], 1);
  if (words.size() == 1) return top.usage("no verb was given for " + noun, "h5i " + noun + " VERB [options]", "h5i " + noun + " --help");
  if (words[1] == "--help" || words[1] == "-h") {
    if (words.size() > 2) return top.usage("too many words after " + words[1], words[2], "h5i " + noun + " --help");
    ctx.block(help_of_noun(noun, verbs));
    return 0;
  }
  for (const Command* c : verbs)
    if (c->verb == words[1]) return go(*c, 2);
  return top.unknown_verb(noun);
}

}  // namespace

const std::vector<Command>& all_commands() { return commands(); }

void implement(const std::string& noun, const std::string& verb, int (*run)(Context&, const Parsed&)) {
  for (Command& c : commands())
    if (c.noun == noun && c.verb == verb) {
      c.run = run;
      return;
    }
  ::abort();  // a verb without a table entry would have no help: a mistake in this executable's main
}

int main_with(const std::string& executable, int argc, char** argv) {
  open_missing_standard_fds();
  // A reader that goes away must not end us in the middle of a run; writes report EPIPE instead.
  ::signal(SIGPIPE, SIG_IGN);
  // The same for a write beyond this process's limit of file sizes: it reports EFBIG, and the log says what became of the run.
  ::signal(SIGXFSZ, SIG_IGN);
  Context ctx;
  for (int i = 0; i < argc; i++) ctx.argv.emplace_back(argv[i]);
  std::vector<std::string> words(ctx.argv.begin() + (argc > 0 ? 1 : 0), ctx.argv.end());
  int status = dispatch(ctx, executable, argv, words);
  int lost = ctx.output_errno();
  if (lost == 0 && g_was_closed[1] && ctx.printed()) lost = EBADF;
  if (lost == 0) return status;
  // A reader that went away wanted no more and is told nothing.
  if (lost != EPIPE) {
    ctx.json = false;
    ctx.refuse(make_error(Errc::OUTPUT, "the answer could not be written", std::string("standard output: ") + strerror(lost)));
  }
  // A refusal stays one although nobody heard it; what 125 stands for covers the command's own statuses.
  return status != 0 && (lost == EPIPE || ctx.lost_status != 125) ? status : ctx.lost_status;
}

}  // namespace h5i::cli
