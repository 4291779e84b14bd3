#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/session/environment.hpp"
#include "core/session/index.hpp"
#include "core/session/probe.hpp"
#include "core/session/receipt.hpp"
#include "core/session/request.hpp"
#include "core/session/verify_cache.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

using namespace h5i;
using namespace h5i::session;

namespace {
Json profile_of(const char* text) {
  auto v = json::parse(text);
  REQUIRE(v);
  return std::move(*v);
}
}  // namespace

TEST_CASE("the environment is what env.pass names and env.set says; set wins; nothing else comes through") {
  Variables host = {{"PATH", "/usr/bin"}, {"HOME", "/h"}, {"SECRET", "s"}, {"CI", "host"}, {"BAD", "\xff"}};
  Environment e = compute_environment(profile_of(R"({"env":{"pass":["PATH","CI","ABSENT","BAD"],"set":{"CI":"1","X":""}}})"), host);
  CHECK(e.values == Variables{{"PATH", "/usr/bin"}, {"CI", "1"}, {"X", ""}});
  CHECK(e.unrepresentable == std::vector<std::string>{"BAD"});
  e = compute_environment(profile_of(R"({"env":{"pass":[],"set":{}}})"), host);
  CHECK(e.values == Variables{{"PATH", std::string(kDefaultPath)}});
}

TEST_CASE("a program is looked for in the box's PATH, and never in a relative directory") {
  using V = std::vector<std::string>;
  CHECK(exec_candidates("cc", "/usr/local/bin:/usr/bin/", "/w") == V{"/usr/local/bin/cc", "/usr/bin/cc"});
  CHECK(exec_candidates("cc", ":.:bin:/a::/a", "/w") == V{"/a/cc"});
  CHECK(exec_candidates("cc", "/", "/w") == V{"/cc"});
  CHECK(exec_candidates("./cc", "/usr/bin", "/w") == V{"/w/./cc"});
  CHECK(exec_candidates("/bin/cc", "/usr/bin", "/w") == V{"/bin/cc"});
  CHECK(exec_candidates("", "/usr/bin", "/w").empty());
  CHECK(exec_candidates("cc", "", "/w").empty());
}

TEST_CASE("a working directory stays below $WORK") {
  CHECK(*cwd_below("/w", "") == "/w");
  CHECK(*cwd_below("/w", ".") == "/w");
  CHECK(*cwd_below("/w", "a//b/./c") == "/w/a/b/c");
  for (const char* bad : {"/etc", "..", "a/../..", "a/.."}) {
    auto r = cwd_below("/w", bad);
    REQUIRE(!r);
    CHECK(r.error().code == Errc::PATH_ESCAPE);
  }
}

TEST_CASE("tools name what h5i may start: by base name; an empty list is none, left out is any") {
  CHECK(check_tool(profile_of("{}"), "/bin/anything"));
  CHECK(check_tool(profile_of(R"({"tools":["make"]})"), "/usr/bin/make"));
  for (const char* argv0 : {"/usr/bin/gmake", "make/", "sh", "/make/sh", ""}) {
    auto r = check_tool(profile_of(R"({"tools":["make"]})"), argv0);
    REQUIRE(!r);
    CHECK(r.error().code == Errc::POLICY_TOOL);
  }
  CHECK(!check_tool(profile_of(R"({"tools":[]})"), "make"));
}

TEST_CASE("a profile with secrets or auth is refused by id; empty ones are not") {
  CHECK(check_broker(profile_of("{}")));
  CHECK(check_broker(profile_of(R"({"secrets":{},"auth":[]})")));
  CHECK(check_broker(profile_of(R"({"secrets":{"A":{}}})")).error().code == Errc::BROKER_ABSENT);
  CHECK(check_broker(profile_of(R"({"auth":[{}]})")).error().code == Errc::BROKER_ABSENT);
}

TEST_CASE("each outcome has one exit status") {
  using S = Outcome::Status;
  struct Case {
    Outcome o;
    int status;
  };
  for (const Case& c : {Case{{S::EXITED, 0, Errc::OK, ""}, 0},
                        {{S::EXITED, 124, Errc::OK, ""}, 124},
                        {{S::SIGNALED, 9, Errc::OK, ""}, 137},
                        {{S::TIMEOUT, 0, Errc::RUN_DEADLINE, ""}, 124},
                        {{S::VIOLATION, 0, Errc::TIER_ATTEST, ""}, 125},
                        {{S::SETUP_FAILED, 0, Errc::TIER_SETUP, ""}, 125},
                        {{S::SETUP_FAILED, 0, Errc::EXEC_NOT_FOUND, ""}, 127},
                        {{S::SETUP_FAILED, 0, Errc::EXEC_NOT_EXECUTABLE, ""}, 126},
                        {{S::CANCELLED, 0, Errc::CANCELLED, ""}, 125},
                        {{S::CANCELLED, 15, Errc::CANCELLED, ""}, 143},
                        {{S::HOST_LOST, 0, Errc::PLUGIN_CRASHED, ""}, 125}}) {
    INFO(status_name(c.o.status) << " " << c.o.code);
    CHECK(exit_status_of(c.o) == c.status);
    ReceiptInput r;
    r.outcome = c.o;
    Json receipt = receipt_json(r);
    CHECK(receipt["exit_status"].integer() == c.status);
    CHECK(receipt["outcome"]["status"].string() == status_name(c.o.status));
  }
  // Errors before a run: by the table's class.
  CHECK(exit_status_of(make_error(Errc::RUN_DEADLINE, "")) == 124);
  CHECK(exit_status_of(make_error(Errc::EXEC_NOT_FOUND, "")) == 127);
  CHECK(exit_status_of(make_error(Errc::EXEC_NOT_EXECUTABLE, "")) == 126);
  CHECK(exit_status_of(make_error(Errc::BOX_COMMAND, "")) == 2);
  CHECK(exit_status_of(make_error(Errc::POLICY_TOOL, "")) == 125);
  CHECK(exit_status_of(make_error(Errc::SYSTEM, "")) == 125);
}

TEST_CASE("a cached result counts only for exactly its key, its owner and its mode") {
  char dir[] = "/tmp/h5i-cache-XXXXXX";
  REQUIRE(mkdtemp(dir) != nullptr);
  std::string inner = std::string(dir) + "/a/b";
  ResultCache cache(inner);
  VerifyKey key{"e", "p", "boot", "probe", 7};
  Json doc = json::Object{{"ok", true}};
  CHECK(!cache.get("verify", key.to_json()));
  cache.put("verify", key.to_json(), doc);
  REQUIRE(cache.get("verify", key.to_json()));
  CHECK(*cache.get("verify", key.to_json()) == doc);
  struct stat st {};
  REQUIRE(stat(inner.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
  for (auto change : {+[](VerifyKey& k) { k.effective_digest = "x"; }, +[](VerifyKey& k) { k.plugin_digest = "x"; },
                      +[](VerifyKey& k) { k.boot_id = "x"; }, +[](VerifyKey& k) { k.probe_digest = "x"; }, +[](VerifyKey& k) { k.uid++; }}) {
    VerifyKey other = key;
    change(other);
    CHECK(!cache.get("verify", other.to_json()));
  }
  CHECK(!cache.get("probe", key.to_json()));
  std::string file;
  for (const auto& e : std::filesystem::directory_iterator(inner)) file = e.path();
  REQUIRE(stat(file.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  // A file under the right name that holds another key: a collision made on purpose.
  VerifyKey other = key;
  other.uid++;
  std::string wrong = inner + "/verify-" + canonical_digest(other.to_json()) + ".json";
  std::filesystem::copy_file(file, wrong);
  CHECK(!cache.get("verify", other.to_json()));
  chmod(file.c_str(), 0620);
  CHECK(!cache.get("verify", key.to_json()));
  chmod(file.c_str(), 0600);
  chmod(inner.c_str(), 0770);
  CHECK(!cache.get("verify", key.to_json()));
  chmod(inner.c_str(), 0700);
  CHECK(cache.get("verify", key.to_json()));  // control
  std::filesystem::rename(file, file + ".real");
  std::filesystem::create_symlink(file + ".real", file);
  CHECK(!cache.get("verify", key.to_json()));
  cache.put("verify", key.to_json(), json::Object{{"ok", false}});  // in the link's place, not through it
  CHECK(*cache.get("verify", key.to_json()) == json::Object{{"ok", false}});
  CHECK(test::read_file(file + ".real").find("true") != std::string::npos);
  // What a writer leaves that was killed over it: nothing, or the beginning of the document. The next writer replaces it.
  std::filesystem::remove(wrong);
  std::filesystem::remove(file + ".real");
  const auto whole = std::filesystem::file_size(file);
  for (uint64_t size : {whole - 1, whole / 2, uint64_t{1}, uint64_t{0}}) {
    std::filesystem::resize_file(file, size);
    CHECK(!cache.get("verify", key.to_json()));
    cache.put("verify", key.to_json(), doc);
    CHECK(*cache.get("verify", key.to_json()) == doc);
    CHECK(std::distance(std::filesystem::directory_iterator(inner), {}) == 1);
  }
  std::filesystem::remove_all(dir);
}

TEST_CASE("a probe that claims more than the manifest, or is not what its schema says, is refused") {
  plugin::PluginInfo info;
  info.id = "t";
  info.manifest = profile_of(R"({"claims":["fs.read"]})");
  auto check = [&](const char* text) { return check_probe(profile_of(text), info); };
  CHECK(check(R"({"schema":"h5i.probe/1","tier":"t","available":true,"components":[],"claims":["fs.read"],"missing":[]})"));
  CHECK(check(R"({"schema":"h5i.probe/1","tier":"t","available":true,"components":[],"claims":["net.mode"],"missing":[]})").error().code ==
        Errc::TIER_OVERCLAIM);
  for (const char* bad : {R"({"schema":"h5i.probe/2","tier":"t","available":true,"components":[],"claims":[],"missing":[]})",
                          R"({"schema":"h5i.probe/1","tier":"other","available":true,"components":[],"claims":[],"missing":[]})",
                          R"({"schema":"h5i.probe/1","tier":"t","available":"yes","components":[],"claims":[],"missing":[]})",
                          R"({"schema":"h5i.probe/1","tier":"t","available":true,"components":[{"id":"x"}],"claims":[],"missing":[]})",
                          R"({"schema":"h5i.probe/1","tier":"t","available":true,"components":[],"claims":[],"missing":["x"]})"})
    CHECK(check(bad).error().code == Errc::PLUGIN_PROTOCOL);
}

TEST_CASE("a verification counts only with a positive control, and a control and the expected error for each claim") {
  auto check = [](const char* dimension, const char* positive = "true", const char* ok = "true") {
    return check_verify(profile_of((std::string(R"({"schema":"h5i.verify/1","tier":"t","missing":[],"ok":)") + ok +
                                    R"(,"positive":{"detail":"","ok":)" + positive + R"(},"dimensions":[)" + dimension + "]}")
                                       .c_str()),
                        "t");
  };
  const char* good = R"({"claim":"fs.write","control":"ok","negative":"EROFS","expected":["EROFS","EACCES"],"ok":true,"detail":""})";
  CHECK(check(good));
  CHECK(check(good, "false").error().code == Errc::TIER_VERIFY_FAILED);
  CHECK(check(good, "true", "false").error().code == Errc::TIER_VERIFY_FAILED);
  CHECK(check(R"({"claim":"fs.write","control":"failed","negative":"EROFS","expected":["EROFS"],"ok":true,"detail":""})").error().code ==
        Errc::TIER_NO_CONTROL);
  CHECK(check(R"({"claim":"fs.write","control":"ok","negative":"ok","expected":["EROFS"],"ok":true,"detail":""})").error().code ==
        Errc::TIER_VERIFY_FAILED);
  CHECK(check(R"({"claim":"fs.write","control":"ok","negative":"EROFS","expected":["EROFS"],"ok":false,"detail":""})").error().code ==
        Errc::TIER_VERIFY_FAILED);
}

TEST_CASE("the request denies what would let a box change who watches it, and never the box's own work") {
  BoxPaths paths{"/r/.git/h5i/boxes/a/b"};
  Manifest m;
  m.repo_git_dir = "/r/.git";
  UserDirs dirs;
  dirs.home = "/h";
  dirs.config = "/h/.config/h5i";
  dirs.state = "/h/.local/state/h5i";
  auto denied = always_denied(paths, m, dirs, "/usr");
  auto has = [&](const std::string& p) { return std::find(denied.begin(), denied.end(), p) != denied.end(); };
  for (const char* p : {"/r/.git/h5i/boxes/a/b/manifest.json", "/r/.git/h5i/boxes/a/b/log.jsonl", "/r/.git/h5i/boxes/a/b/policy.resolved.json",
                        "/r/.git/hooks", "/r/.git/config", "/h/.config/h5i", "/h/.bashrc", "/h/.profile", "/usr/libexec/h5i", "/usr/bin/h5i"})
    CHECK(has(p));
  std::string work = paths.work();
  for (const std::string& p : denied) CHECK(!(work + "/").starts_with(p + "/"));
}

TEST_CASE("what is hidden from a box: h5i's directories as this user has them, and each repository's that a grant reaches") {
  char scratch[] = "/tmp/h5i-hidden-XXXXXX";
  REQUIRE(mkdtemp(scratch) != nullptr);
  std::string top = scratch;
  for (const char* d : {"/r/.git", "/projects/a/.git", "/elsewhere/b/.git"}) std::filesystem::create_directories(top + d);
  std::filesystem::create_symlink(top + "/projects", top + "/link");
  UserDirs dirs;
  dirs.home = "/h";
  dirs.config = "/c/h5i";
  dirs.state = top + "/state/h5i";
  dirs.cache = "/x/h5i";
  dirs.runtime = "/run/user/7/h5i";
  for (const char* r : {"/r/.git", "/projects/a/.git", "/elsewhere/b/.git"}) REQUIRE(remember_repository(dirs, top + r));
  Manifest m;
  m.repo_git_dir = top + "/r/.git";
  auto hidden = [&](const char* profile) {
    auto list = always_hidden(BoxPaths{dirs.state + "/boxes/a/b"}, m, dirs, json::Object{{"profile", profile_of(profile)}});
    REQUIRE(list);
    return *list;
  };
  auto has = [](const std::vector<std::string>& list, const std::string& p) { return std::find(list.begin(), list.end(), p) != list.end(); };
  auto none = hidden(R"({"fs":{"read":["/usr"],"write":["$WORK"]}})");
  for (const std::string& p : {dirs.config, dirs.state, dirs.cache, dirs.runtime, std::string("/h/.config/h5i"), std::string("/h/.local/state/h5i"),
                               std::string("/h/.cache/h5i"), top + "/r/.git/h5i"})
    CHECK(has(none, p));
  CHECK(!has(none, top + "/projects/a/.git/h5i"));
  auto by_link = hidden((R"({"fs":{"read":[],"write":[")" + top + R"(/link"]}})").c_str());
  CHECK(has(by_link, top + "/projects/a/.git/h5i"));
  CHECK(!has(by_link, top + "/elsewhere/b/.git/h5i"));
  std::ofstream(dirs.state + "/repositories.json") << "{";
  CHECK(!always_hidden(BoxPaths{dirs.state + "/boxes/a/b"}, m, dirs, json::Object{{"profile", json::Object{}}}));
  std::filesystem::remove_all(top);
}
