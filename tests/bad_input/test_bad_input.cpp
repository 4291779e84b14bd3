// Each cell of the matrix: exit 0 with the right result, or a refusal that says what, why and what next, and changes nothing.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/result.hpp"
#include "core/cli/command.hpp"
#include "tests/bad_input/matrix.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/schema.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The id at the end of the first line of a refusal; "" where there is none.
std::string id_of(const std::string& err) {
  std::stringstream lines(err);
  std::string id;
  for (std::string line; std::getline(lines, line);)
    if ((line.starts_with("refused: ") || line.starts_with("failed: ")) && line.ends_with("]")) id = line.substr(line.rfind('[') + 1, line.size() - line.rfind('[') - 2);
  return id;
}

// Where `words` of a row stand for something of the world.
struct Filled {
  std::string box = "fix", other = "other", fresh = "fresh", profile = "default", tier, plugin = "fixture.good", mine = "fixture.good", rule = "api.example.org", session = "web", ended = "ended", begun = "begun", key;
};

std::vector<std::string> filled(const Verb& verb, const Condition& c, const World& w, const Filled& ids) {
  std::vector<std::pair<std::string, std::string>> names = {{"{box}", ids.box},       {"{other}", ids.other}, {"{fresh}", ids.fresh}, {"{profile}", ids.profile}, {"{tier}", ids.tier},
                                                            {"{plugin}", ids.plugin}, {"{mine}", ids.mine},   {"{rule}", ids.rule},   {"{key}", ids.key},
                                                            {"{session}", ids.session}, {"{ended}", ids.ended}, {"{begun}", ids.begun}};
  if (c.ids)
    for (auto& [name, value] : names) value = c.id;
  for (auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"{file}", w / "home/author/fixture-good.so"}, {"{pub}", w / "home/their.pub"}, {"{out}", w / "home/out"}, {"{policy}", w / "home/policy.yaml"}})
    names.emplace_back(name, c.ids ? c.id : value);
  std::vector<std::string> out{verb.noun};
  if (!verb.verb.empty()) out.push_back(verb.verb);
  bool any = false;
  for (const std::string& word : verb.words) {
    auto it = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.first == word; });
    any = any || it != names.end();
    out.push_back(it == names.end() ? word : it->second);
  }
  // A verb without an id gets one too many.
  if (c.ids && !any) out.push_back(c.id);
  return out;
}

class Matrix {
 public:
  explicit Matrix(uid_t uid) : w_(uid) {
    Json probe = w_.made({"box", "probe"});
    ids_.tier = "workspace";
    for (const Json& t : probe["tiers"].array())
      if (t["tier"].string() == "process" && t["state"].string() == "available") ids_.tier = "process";
    std::string fixture = std::string(getenv("H5I_BUILD_DIR")) + "/fixtures/plugins/good/fixture-good";
    for (const char* end : {".so", ".plugin.yaml"}) w_.write(std::string("home/author/fixture-good") + end, bytes_of(fixture + end));
    w_.write("home/policy.yaml", "profiles:\n  mine:\n    extends: default\n");
    w_.made({"plugin", "install", w_ / "home/author/fixture-good.so"});
    w_.made({"plugin", "trust", "fixture.good"});
    // Another host's key, trusted.
    Program theirs = w_.h5i({"key", "show", "--json"});
    theirs.env["HOME"] = w_ / "elsewhere";
    Ended e = run(theirs);
    REQUIRE(e.status == 0);
    w_.write("home/their.pub", bytes_of(w_ / "elsewhere/.local/state/h5i/keys/host.pub"));
    w_.sh("rm -rf '" + (w_ / "elsewhere") + "/.local'");
    w_.made({"key", "trust", w_ / "home/their.pub"});
    ids_.key = (*json::parse(e.out))["key"].string();
    w_.made({"key", "show"});
    for (const char* session : {"web", "ended"}) w_.made({"websec", "open", session, "--scope", "http://127.0.0.1:1"});
    w_.made({"websec", "close", "ended"});
    w_.settle();
    w_.tier = ids_.tier;
    w_.keep("repository");
    w_.make_boxes();
    w_.keep("boxes");
  }

  void run_condition(const Condition& c) {
    w_.repo = "r";
    w_.restore(c.from);
    if (c.make) c.make(w_);
    w_.keep("condition");
    fresh_ = false;
    for (const Verb& v : verbs()) cell(v, c);
    w_.unmount();
  }

 private:
  static std::string expected(const Verb& v, const Condition& c) {
    for (const Expect& e : c.expect) {
      std::stringstream names(e.verbs);
      for (std::string n; std::getline(names, n, ',');) {
        n.erase(0, n.find_first_not_of(' '));
        if (n == "*" || n == v.noun + " *" || n == v.name()) return e.outcome;
      }
    }
    return v.plain;
  }

  Program program(const Verb& v, const Condition& c, bool as_json) const {
    std::vector<std::string> words = filled(v, c, w_, ids_);
    if (as_json) words.insert(words.begin() + (v.verb.empty() ? 1 : 2), "--json");
    Program p = w_.h5i(words);
    if (c.start) c.start(w_, p);
    return p;
  }

  void prepare(const Condition& c) {
    if (!fresh_) {
      w_.restore("condition");
      if (c.each) c.each(w_);
      before_ = w_.listing();
      mounts_ = bytes_of("/proc/self/mountinfo");
    }
    fresh_ = true;
  }

  static int status_of(const Verb& v, const std::string& id) {
    Errc code = errc_from_id(id);
    if (errc_id(code) != id) return -1;
    ExitClass k = errc_class(code);
    // The statuses of web sessions are their own.
    if (v.noun == "websec") return k == ExitClass::USAGE || code == Errc::INVALID ? 64 : code == Errc::CANCELLED ? 69 : 2;
    bool runs = v.name() == "box run" || v.name() == "box shell";
    if (k == ExitClass::USAGE) return 2;
    if (k == ExitClass::NOTFOUND) return 127;
    if (k == ExitClass::NOEXEC) return 126;
    if (k == ExitClass::DEADLINE) return 124;
    return runs || id == "tier.not-installed" ? 125 : 1;
  }

  // A refusal of a run or of the gate leaves its record, and nothing else. A lock file says who held it last.
  void changed_nothing(const Listing& after) {
    std::vector<std::string> d = differences(before_, after);
    fresh_ = d.empty();
    std::erase_if(d, [&](const std::string& line) {
      std::string path = line.substr(1);
      // The index of a web session's log is a cache: who looks a send up makes it.
      if (path.find("/websec/") != std::string::npos && (path.ends_with("/state/index") || path.ends_with("/state/index/lock") || path.ends_with("/state/index/rows"))) return line[0] != '-';
      if (line[0] == '+') return own_and_empty(path);
      // files.state is what was seen of the files, kept so that they need not be read again.
      return line[0] == '~' && (path.ends_with("/lock") || path.ends_with("/files.state") || (path.ends_with("/log.jsonl") && grew_by_a_refusal(path)));
    });
    CAPTURE(d);
    CHECK(d.empty());
    CHECK(bytes_of("/proc/self/mountinfo") == mounts_);
  }
  // A lock file, or a folder of h5i's own with nothing in it.
  bool own_and_empty(const std::string& path) const {
    bool own = path.find(".git/h5i/") != std::string::npos || path.find(".git/objects/") != std::string::npos || path.starts_with("home/.local/state/h5i/") || path.starts_with("home/.config/h5i/");
    struct stat st{};
    if (!own || lstat((w_ / path).c_str(), &st) != 0) return false;
    return S_ISDIR(st.st_mode) ? std::filesystem::is_empty(w_ / path) : path.ends_with(".lock") && st.st_size == 0;
  }
  bool grew_by_a_refusal(const std::string& path) const {
    std::string was = bytes_of(w_.outside("condition/" + path)), is = bytes_of(w_ / path);
    if (!is.starts_with(was)) return false;
    std::stringstream added(is.substr(was.size()));
    std::string last;
    for (std::string line; std::getline(added, line);) {
      auto r = json::parse(line);
      std::string kind = r ? (*r)["kind"].string() : "";
      if (kind != "run-requested" && kind != "plugin" && kind != "run-refused" && kind != "violation") return false;
      last = kind;
    }
    return last == "run-refused" || last == "violation";
  }

  static int untold_status(const Verb& v) { return v.verb == "run" || v.verb == "shell" ? 125 : v.noun == "websec" ? 2 : 1; }

  void cell(const Verb& v, const Condition& c) {
    const std::string want = expected(v, c);
    CAPTURE(w_.uid(), v.name(), c.name, want);
    if (want == "ok")
      did_its_work(v, c);
    else
      refused(v, c, want);
  }

  void did_its_work(const Verb& v, const Condition& c) {
    prepare(c);
    Ended e = run(program(v, c, true));
    if (v.verb == "run" || v.verb == "shell" || v.noun == "websec") w_.settle();
    CAPTURE(e.status, e.out, e.err);
    said("ok", v, c, e);
    if (c.sees == Sees::NO_OUTPUT || c.sees == Sees::NOTHING) {
      // It cannot be told, and that is said where something can be said: but not to who has stopped listening.
      CHECK(e.status == untold_status(v));
      if (c.sees == Sees::NO_OUTPUT) CHECK((c.name == kReaderGone ? e.err.find("refused: ") == std::string::npos && e.err.find("failed: ") == std::string::npos : is_refusal(e.err, "output.lost")));
    } else {
      CHECK(e.status == 0);
      for (const std::string& error : schema_errors_of_text(v.verb.empty() ? v.noun : v.noun + "-" + v.verb, e.out)) FAIL_CHECK(error);
      auto parsed = json::parse(e.out);
      if (parsed && v.right) CHECK(v.right(*parsed, w_));
      if (c.after) c.after(w_);
    }
    Listing after = w_.listing();
    fresh_ = differences(before_, after).empty();
    // What a verb does to the world it also does unseen.
    if (c.sees == Sees::BOTH && !fresh_) changes_.insert(v.name());
    if (c.sees != Sees::BOTH && changes_.count(v.name())) CHECK_FALSE(fresh_);
  }

  // As text and as JSON.
  void refused(const Verb& v, const Condition& c, const std::string& want) {
    auto wanted = [&](const std::string& id) { return ("|" + want + "|").find("|" + id + "|") != std::string::npos; };
    prepare(c);
    Ended text = run(program(v, c, false));
    {
      CAPTURE(text.status, text.out, text.err);
      said(want, v, c, text);
      std::string id = want;
      if (c.sees == Sees::BOTH || c.sees == Sees::NO_OUTPUT) {
        id = id_of(text.err);
        CHECK(wanted(id));
        CHECK(is_refusal(text.err, id));
      }
      CHECK(text.status == status_of(v, id));
      changed_nothing(w_.listing());
    }
    prepare(c);
    Ended e = run(program(v, c, true));
    CAPTURE(e.status, e.out, e.err);
    std::string id = want;
    if (c.sees == Sees::BOTH || c.sees == Sees::NO_ERRORS) {
      for (const std::string& error : schema_errors_of_text(v.verb.empty() ? v.noun : v.noun + "-" + v.verb, e.out)) FAIL_CHECK(error);
      auto parsed = json::parse(e.out);
      id = parsed ? (*parsed)["error"]["id"].string() : "";
      CHECK(wanted(id));
    }
    CHECK(e.status == status_of(v, id));
    changed_nothing(w_.listing());
  }

  // For whoever writes a new row: what was seen.
  void said(const std::string& want, const Verb& v, const Condition& c, const Ended& e) const {
    if (!getenv("H5I_BAD_INPUT_PRINT")) return;
    std::string id = id_of(e.err);
    auto parsed = json::parse(e.out);
    if (parsed && (*parsed)["error"].is_object()) id = (*parsed)["error"]["id"].string() + ": " + (*parsed)["error"]["what"].string() + ": " + (*parsed)["error"]["evidence"].string();
    printf("CELL %u | %s | %s | want %s | %d %s\n", w_.uid(), c.name.c_str(), v.name().c_str(), want.c_str(), e.status, id.substr(0, 300).c_str());
    fflush(stdout);
  }

  World w_;
  Filled ids_;
  bool fresh_ = false;
  Listing before_;
  std::string mounts_;
  std::set<std::string> changes_;  // verbs that were seen to change the world
};

}  // namespace

TEST_CASE("every verb of the command table is a row, and every row is a verb") {
  std::set<std::string> rows, known;
  for (const Verb& v : verbs()) rows.insert(v.name());
  for (const cli::Command& c : cli::all_commands()) known.insert(c.full_name());
  CHECK(rows == known);
}

TEST_CASE("every verb in every condition does its work, or refuses in words and changes nothing") {
  const char* only = getenv("H5I_BAD_INPUT_ONLY");
  for (uid_t uid : people()) {
    bool mounts = may_mount();
    Matrix m(uid);
    for (const Condition& c : conditions()) {
      if (only && c.name.find(only) == std::string::npos) continue;
      if (c.large && uid != people().back()) continue;
      if (c.mounts && !mounts) {
        printf("SKIP: bad-input-mounts: no mount namespace of the test's own: %s\n", c.name.c_str());
        continue;
      }
      m.run_condition(c);
    }
  }
}
