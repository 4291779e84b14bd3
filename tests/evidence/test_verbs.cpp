// The verbs of log and key, run as programs: exit status, the three lines, JSON against its schema.
#include <sys/stat.h>

#include "core/base/ids.hpp"
#include "core/evidence/keys.hpp"
#include "core/evidence/log.hpp"
#include "core/evidence/record.hpp"
#include "core/evidence/seal.hpp"
#include "tests/cli/program.hpp"
#include "tests/evidence/program.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/schema.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

namespace {

const char kSession[] = "01abcdefghjkmnpqrstvwxyz01";

// A repository with boxes, and a home.
struct World {
  Scratch s;
  std::string home = s.path("home"), repo = s.path("repo");
  World() {
    std::filesystem::create_directories(home);
    std::filesystem::create_directories(repo + "/.git/objects");
    std::filesystem::create_directories(repo + "/.git/refs");
    spill(repo + "/.git/HEAD", "ref: refs/heads/main\n");
  }
  std::string add_box(const std::string& slug, int records) {
    std::string dir = repo + "/.git/h5i/boxes/human/" + slug;
    std::filesystem::create_directories(dir);
    spill(dir + "/manifest.json", "{}\n");
    auto log = Log::open(dir + "/log.jsonl");
    REQUIRE(log.ok());
    Record r;
    r.kind = "created";
    r.body = json::Object{{"box", "human/" + slug}};
    REQUIRE(log->append(r).ok());
    for (int i = 1; i < records; i++) {
      r.kind = "denial";
      r.boundary = Boundary::NET;
      r.session = SessionId(kSession);
      r.body = json::Object{{"what", "connect"}, {"n", i}};
      REQUIRE(log->append(r).ok());
    }
    return dir + "/log.jsonl";
  }
  Ran h5i(std::vector<std::string> words) {
    words.insert(words.begin(), build_dir() + "/out/bin/h5i");
    return run(words, home, repo);
  }
  // A refusal is looked at twice, the second time as a person sees it: the same status and id, and three lines.
  Json json_of(const std::string& schema, std::vector<std::string> words, int status) {
    const std::vector<std::string> for_a_person = words;
    words.push_back("--json");
    Ran r = h5i(words);
    INFO(r.out << r.err);
    CHECK(r.status == status);
    auto errors = schema_errors_of_text(schema, r.out);
    CHECK(errors == std::vector<std::string>{});
    auto v = parse_json(r.out, "output");
    REQUIRE(v.ok());
    if (const Json& id = (*v)["error"]["id"]; id.is_string()) {
      Ran text = h5i(for_a_person);
      INFO(text.status << ": " << text.err);
      CHECK(text.status == status);
      CHECK(is_refusal(text.err, id.string()));
    }
    return *v;
  }
};

size_t lines_in(const std::string& s) { return static_cast<size_t>(std::count(s.begin(), s.end(), '\n')); }

}  // namespace

TEST_CASE("log verify: a box, a session and a file; proven, unproven and refused") {
  World w;
  std::string log = w.add_box("fix", 4);
  // Its records are new, so the verb waits for a signature that may be under way, and then says that there is none.
  Ran unsealed = w.h5i({"log", "verify", "fix"});
  CHECK(unsealed.status == 1);
  CHECK(lines_in(unsealed.err) == 3);
  CHECK(unsealed.err.find("chain intact, end not proven") != std::string::npos);
  CHECK(unsealed.err.find("[log.end-not-proven]") != std::string::npos);
  CHECK(w.h5i({"log", "verify", "fix", "--allow-unsealed"}).status == 0);
  CHECK(w.json_of("log-verify", {"log", "verify", "fix"}, 1)["error"]["id"].string() == "log.end-not-proven");

  CHECK(w.json_of("log-seal", {"log", "seal", "fix"}, 0)["made"].boolean());
  CHECK_FALSE(w.json_of("log-seal", {"log", "seal", "fix"}, 0)["made"].boolean());
  CHECK(w.h5i({"log", "seal", "human/fix"}).out.find("already sealed: human/fix, 4 records") == 0);

  Json ok = w.json_of("log-verify", {"log", "verify", "human/fix"}, 0);
  CHECK(ok["sealed"].boolean());
  CHECK(ok["records"].integer() == 4);
  CHECK(ok["seal"]["key_from"].string() == "this host");
  CHECK(w.json_of("log-verify", {"log", "verify", kSession}, 0)["path"].string() == log);
  CHECK(w.json_of("log-verify", {"log", "verify", log}, 0)["ok"].boolean());
  Ran human = w.h5i({"log", "verify", "fix"});
  CHECK(human.status == 0);
  CHECK(human.out.find("verified human/fix: 4 records, chain intact, end proven\n") == 0);

  // What box rm keeps is found by the box's name, and by the session's id.
  std::filesystem::create_directories(w.repo + "/.git/h5i/evidence/human");
  std::filesystem::rename(w.repo + "/.git/h5i/boxes/human/fix", w.repo + "/.git/h5i/evidence/human/fix.2");
  CHECK(w.json_of("log-verify", {"log", "verify", "fix"}, 0)["records"].integer() == 4);
  CHECK(w.json_of("log-verify", {"log", "verify", kSession}, 0)["records"].integer() == 4);
  CHECK(w.json_of("log-seal", {"log", "seal", "fix"}, 1)["error"]["id"].string() == "box.not-found");
  w.add_box("fix", 2);
  CHECK(w.json_of("log-verify", {"log", "verify", "fix", "--allow-unsealed"}, 0)["records"].integer() == 2);

  CHECK(w.json_of("log-verify", {"log", "verify", "absent"}, 1)["error"]["id"].string() == "box.not-found");
  CHECK(w.json_of("log-verify", {"log", "verify", "./absent.jsonl"}, 1)["error"]["id"].string() == "not-found");
  CHECK(w.json_of("log-verify", {"log", "verify", "01zzzzzzzzzzzzzzzzzzzzzzzz"}, 1)["error"]["id"].string() ==
        "not-found");
  CHECK(w.h5i({"log", "verify"}).status == 2);
  CHECK(w.h5i({"log", "verify", "fix", "--nonsense"}).status == 2);
  CHECK(w.json_of("log-verify", {"log", "verify", "fix", "--key", log}, 1)["error"]["id"].string() == "input.invalid");
}

TEST_CASE("the evidence of a removed box is found by its own name, whatever other names look like") {
  World w;
  std::string boxes = w.repo + "/.git/h5i/boxes/human/", kept = w.repo + "/.git/h5i/evidence/human/";
  std::filesystem::create_directories(kept);
  auto removed = [&](const std::string& slug, int records, const std::string& folder) {
    w.add_box(slug, records);
    std::filesystem::rename(boxes + slug, kept + folder);
  };
  auto verify = [&](const std::string& name, int status = 0) { return w.json_of("log-verify", {"log", "verify", name, "--allow-unsealed"}, status); };
  removed("zz.2", 3, "zz.2");
  CHECK(verify("zz", 1)["error"]["id"].string() == "box.not-found");
  removed("zz", 5, "zz");
  CHECK(verify("zz")["records"].integer() == 5);
  CHECK(verify("zz.2")["records"].integer() == 3);
  removed("zz", 7, "zz~2");
  CHECK(verify("zz")["records"].integer() == 7);
  removed("zz", 8, "zz~10");
  CHECK(verify("zz")["records"].integer() == 8);
  CHECK(verify("zz~2", 2)["error"]["id"].string() == "box.name");  // no box can be called so
  // As it was written once: the first record says whose it is.
  removed("old", 4, "old");
  removed("old", 6, "old.2");
  CHECK(verify("old")["records"].integer() == 6);
  CHECK(verify("old.2", 1)["error"]["id"].string() == "box.not-found");
  // One that was exchanged for another's is still said to be: the first record does not choose among the folders.
  removed("other", 4, "other");
  std::filesystem::copy_file(kept + "other/log.jsonl", kept + "zz~10/log.jsonl", std::filesystem::copy_options::overwrite_existing);
  CHECK(verify("zz", 1)["error"]["id"].string() == "log.foreign-record");
}

TEST_CASE("a box's name wins over a file's and a session's look") {
  World w;
  const std::string digits = "01jd0000000000000000000000";
  w.add_box("a.jsonl", 3);
  w.add_box(digits, 4);
  auto verify = [&](const std::string& name, int status = 0) { return w.json_of("log-verify", {"log", "verify", name, "--allow-unsealed"}, status); };
  CHECK(verify("a.jsonl")["records"].integer() == 3);
  CHECK(verify(digits)["records"].integer() == 4);
  CHECK(w.json_of("log-seal", {"log", "seal", digits}, 0)["made"].boolean());
  // Controls: a file is named by ./, and a session and a file where no box is called so.
  CHECK(verify("./a.jsonl", 1)["error"]["id"].string() == "not-found");
  CHECK(verify(kSession)["records"].integer() > 0);
  std::filesystem::copy_file(w.repo + "/.git/h5i/boxes/human/a.jsonl/log.jsonl", w.repo + "/b.jsonl");
  CHECK(verify("b.jsonl")["records"].integer() == 3);
  CHECK(verify("c.jsonl", 1)["error"]["id"].string() == "not-found");
  // Removed: its evidence by the same name, unless a file is called so.
  std::string kept = w.repo + "/.git/h5i/evidence/human/";
  std::filesystem::create_directories(kept);
  for (const std::string& name : {std::string("a.jsonl"), digits}) std::filesystem::rename(w.repo + "/.git/h5i/boxes/human/" + name, kept + name);
  CHECK(verify("a.jsonl")["records"].integer() == 3);
  CHECK(verify(digits)["records"].integer() == 4);
  w.add_box("more", 9);
  std::filesystem::copy_file(w.repo + "/.git/h5i/boxes/human/more/log.jsonl", w.repo + "/a.jsonl");
  CHECK(verify("a.jsonl")["records"].integer() == 9);
}

TEST_CASE("log verify names the first bad record of a changed copy") {
  World w;
  std::string log = w.add_box("fix", 6), other = w.add_box("other", 6);
  REQUIRE(w.h5i({"log", "seal", "fix"}).status == 0);
  auto lines = lines_of(read_file(log));
  std::string foreign = lines_of(read_file(other))[2];
  struct Case {
    std::function<void(std::vector<std::string>&)> change;
    const char* id;
    int64_t index;
  } cases[] = {{[](auto& l) { l[2][20] ^= 1; }, "log.chain", 2},
               {[](auto& l) { l.pop_back(); }, "log.truncated", 5},
               {[](auto& l) { std::swap(l[1], l[2]); }, "log.chain", 1},
               {[&](auto& l) { l[2] = foreign; }, "log.foreign-record", 2}};
  for (const Case& c : cases) {
    auto changed = lines;
    c.change(changed);
    std::string copy = w.s.path("copy.jsonl");
    spill(copy, joined(changed));
    for (bool with_seal : {true, false}) {
      std::filesystem::remove(copy + ".seal");
      if (with_seal) spill(copy + ".seal", read_file(log + ".seal"));
      Json v = w.json_of("log-verify", {"log", "verify", copy}, 1);
      CHECK(v["error"]["id"].string() == c.id);
      CHECK(v["first_bad"].integer(-1) == c.index);
      Ran r = w.h5i({"log", "verify", copy, "--allow-unsealed"});
      CHECK(r.status == 1);
      CHECK(lines_in(r.err) == 3);
      CHECK(r.err.find("record " + std::to_string(c.index) + ": ") != std::string::npos);
    }
  }
  // The box's log exchanged whole for another box's, which is sealed as well.
  REQUIRE(w.h5i({"log", "seal", "other"}).status == 0);
  spill(log, read_file(other));
  spill(log + ".seal", read_file(other + ".seal"));
  CHECK(w.json_of("log-verify", {"log", "verify", "fix"}, 1)["error"]["id"].string() == "log.foreign-record");
}

TEST_CASE("a log verifies elsewhere with the public key, and not without") {
  World w, away;
  std::string log = w.add_box("fix", 3);
  REQUIRE(w.h5i({"log", "seal", "fix"}).status == 0);
  std::string key = w.json_of("key-show", {"key", "show"}, 0)["path"].string();
  std::string copy = away.s.path("copy.jsonl"), pub = away.s.path("host.pub");
  spill(copy, read_file(log));
  spill(copy + ".seal", read_file(log + ".seal"));
  spill(pub, read_file(key));
  CHECK(away.json_of("log-verify", {"log", "verify", copy}, 1)["error"]["id"].string() == "key.untrusted");
  CHECK(away.json_of("log-verify", {"log", "verify", copy, "--key", pub}, 0)["seal"]["key_from"].string() == pub);
  std::string id = away.json_of("key-trust", {"key", "trust", pub}, 0)["key"].string();
  CHECK_FALSE(away.json_of("key-trust", {"key", "trust", pub}, 0)["added"].boolean());
  CHECK(away.json_of("log-verify", {"log", "verify", copy}, 0)["seal"]["key_from"].string() == "trusted");
  CHECK(away.json_of("key-show", {"key", "show"}, 0)["trusted"].array().size() == 1);
  CHECK(away.json_of("key-untrust", {"key", "untrust", id.substr(0, 12)}, 0)["key"].string() == id);
  CHECK(away.json_of("key-untrust", {"key", "untrust", id}, 1)["error"]["id"].string() == "key.untrusted");
  CHECK(away.json_of("log-verify", {"log", "verify", copy}, 1)["error"]["id"].string() == "key.untrusted");
  CHECK(away.json_of("key-trust", {"key", "trust", copy}, 1)["error"]["id"].string() == "input.invalid");
  CHECK(away.json_of("key-trust", {"key", "trust", "/absent"}, 1)["error"]["id"].string() == "not-found");
}

TEST_CASE("key show makes the key once; rotate keeps old seals checkable") {
  World w;
  std::string log = w.add_box("fix", 2);
  std::string first = w.json_of("key-show", {"key", "show"}, 0)["key"].string();
  CHECK(w.json_of("key-show", {"key", "show"}, 0)["key"].string() == first);
  REQUIRE(w.h5i({"log", "seal", "fix"}).status == 0);
  Json rotated = w.json_of("key-rotate", {"key", "rotate"}, 0);
  CHECK(rotated["retired"].string() == first);
  CHECK(w.json_of("key-show", {"key", "show"}, 0)["retired"].array().size() == 1);
  CHECK(w.json_of("log-verify", {"log", "verify", "fix"}, 0)["seal"]["key_from"].string() == "this host, retired");
  Ran human = w.h5i({"key", "show"});
  CHECK(human.out.find("-----BEGIN PUBLIC KEY-----\n") != std::string::npos);
  CHECK(human.out.find("PRIVATE") == std::string::npos);
  CHECK(human.out.find("retired  " + first) != std::string::npos);
}

TEST_CASE("log show lists, filters and survives what a log may hold") {
  World w;
  std::string log = w.add_box("fix", 5);
  Json all = w.json_of("log-show", {"log", "show", "fix"}, 0);
  CHECK(all["records"].array().size() == 5);
  CHECK(all["findings"]["host-observed"]["NET"]["denials"].integer() == 4);
  CHECK(w.json_of("log-show", {"log", "show", "fix", "--kind", "created"}, 0)["records"].array().size() == 1);
  CHECK(w.json_of("log-show", {"log", "show", "fix", "--session", kSession}, 0)["records"].array().size() == 4);
  CHECK(w.json_of("log-show", {"log", "show", kSession}, 0)["records"].array().size() == 4);
  Json last = w.json_of("log-show", {"log", "show", "fix", "--last", "2"}, 0);
  CHECK(last["records"].array().size() == 2);
  CHECK(last["omitted"].integer() == 3);
  CHECK(w.json_of("log-show", {"log", "show", log, "--raw", "1"}, 0)["records"].array().size() == 1);
  CHECK(w.h5i({"log", "show", "fix", "--raw", "2"}).out == lines_of(read_file(log))[2] + "\n");
  CHECK(w.json_of("log-show", {"log", "show", "fix", "--raw", "9"}, 1)["error"]["id"].string() == "not-found");
  CHECK(w.h5i({"log", "show", "fix", "--last", "0"}).status == 2);
  CHECK(w.json_of("log-show", {"log", "show", "absent"}, 1)["error"]["id"].string() == "box.not-found");
  spill(w.s.path("empty.jsonl"), "");
  CHECK(w.json_of("log-show", {"log", "show", w.s.path("empty.jsonl")}, 0)["records"].array().empty());

  std::string hostile = w.s.path("hostile.jsonl");
  spill(hostile, lines_of(read_file(log))[0] + "\n\x1b]52;c;aGk=\a\x1b[2K\rOK\x9b\n" + std::string(5 * kMaxLine, 'x') +
                     "\n{}\n" + std::string(100, '[') + "\n\n" + std::string("\0\xff", 2) + "\ntorn");
  Ran r = w.h5i({"log", "show", hostile});
  CHECK(r.status == 1);
  CHECK(r.out.find('\x1b') == std::string::npos);
  CHECK(r.out.find('\a') == std::string::npos);
  CHECK(r.out.find("line 2 is not readable (longer than a record can be)") != std::string::npos);
  CHECK(r.out.size() < 10'000);
  Json h = w.json_of("log-show", {"log", "show", hostile}, 1);
  CHECK(h["unreadable"].array().size() == 7);
  CHECK(h["records"].array().size() == 1);
}

TEST_CASE("records and seals on disk keep their schemas") {
  World w;
  std::string log = w.add_box("fix", 3);
  REQUIRE(w.h5i({"log", "seal", "fix"}).status == 0);
  for (const std::string& line : lines_of(read_file(log)))
    CHECK(schema_errors_of_text("record", line + "\n") == std::vector<std::string>{});
  CHECK(schema_errors_of_text("seal", read_file(log + ".seal")) == std::vector<std::string>{});
}

TEST_CASE("the head is sealed by a process that nobody waits for, however many run at once") {
  World w;
  std::string log = w.add_box("fix", 3);
  setenv("HOME", w.home.c_str(), 1);
  unsetenv("XDG_STATE_HOME");
  unsetenv("XDG_CONFIG_HOME");
  for (int i = 0; i < 5; i++) REQUIRE(start_sealing(build_dir() + "/out/libexec/h5i/h5i-evidence", log).ok());
  bool sealed = false;
  for (int i = 0; i < 200 && !sealed; i++) {
    usleep(50'000);
    auto state = seal_state(log);
    sealed = state && state->whole();
  }
  CHECK(sealed);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  CHECK(w.h5i({"log", "verify", "fix"}).status == 0);
  CHECK(start_sealing("/absent/h5i-evidence", log).error().code == Errc::NOT_FOUND);
}

TEST_CASE("a verifier that was written from the documentation alone agrees") {
  World w;
  std::string log = w.add_box("fix", 6), other = w.add_box("other", 6);
  REQUIRE(w.h5i({"log", "seal", "fix"}).status == 0);
  std::string key = w.json_of("key-show", {"key", "show"}, 0)["path"].string();
  auto verify = [&](const std::string& path) {
    return run({"/usr/bin/env", "python3", source_dir() + "/tests/evidence/verify_independent.py", path, "--key", key},
               w.home, w.repo);
  };
  Ran good = verify(log);
  INFO(good.out << good.err);
  if (good.status == 3) {
    WARN("no openssl program here: the signature was not checked independently");
  } else {
    CHECK(good.status == 0);
    CHECK(good.out == "verified, 6 records, end proven\n");
  }
  auto lines = lines_of(read_file(log));
  std::string foreign = lines_of(read_file(other))[3];
  std::function<void(std::vector<std::string>&)> changes[] = {
      [](auto& l) { l[5][20] ^= 1; },   [](auto& l) { l.pop_back(); }, [](auto& l) { std::swap(l[1], l[2]); },
      [&](auto& l) { l[3] = foreign; }, [](auto& l) { l[4] += " "; },  [](auto& l) { l.push_back(l.back()); }};
  for (const auto& change : changes) {
    auto changed = lines;
    change(changed);
    std::string copy = w.s.path("copy.jsonl");
    spill(copy, joined(changed));
    spill(copy + ".seal", read_file(log + ".seal"));
    Ran theirs = verify(copy), ours = w.h5i({"log", "verify", copy});
    INFO(theirs.out << ours.err);
    CHECK(theirs.status == 1);
    CHECK(ours.status == 1);
  }
  if (good.status != 3) {
    std::string seal = read_file(log + ".seal"), copy = w.s.path("copy.jsonl");
    spill(copy, read_file(log));
    seal.replace(seal.find("\"time\":\"2"), 9, "\"time\":\"3");
    spill(copy + ".seal", seal);
    CHECK(verify(copy).status == 1);
    CHECK(w.json_of("log-verify", {"log", "verify", copy}, 1)["error"]["id"].string() == "log.seal");
  }
}
