#include <algorithm>

#include "sample_run.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::container;
using namespace h5i::test;

namespace {

bool refused(const Run& run) {
  auto c = build_command(run);
  return !c.ok() && c.error().code == H5I_E_INVALID;
}

}  // namespace

TEST_CASE("a run is words for podman, each an argument of its own", "[container][command]") {
  auto c = build_command(sample_run());
  REQUIRE(c.ok());
  CHECK(c->argv[0] == "/usr/bin/podman");
  for (const char* word : {"--pull=never", "--cap-drop=all", "--security-opt=no-new-privileges", "--read-only", "--network=ns:/proc/self/ns/net", "--http-proxy=false", "--env-host=false", "--log-driver=none", "--ipc=private",
                           "--mount=type=bind,src=/home/u/work,dst=/work", "--mount=type=bind,src=/etc/ssl,dst=/etc/ssl,ro=true", "--cgroups=disabled"}) {
    INFO(word);
    CHECK(has_word(*c, word));
  }
  // The command and nothing else stands after the image, and the image after the end of the options.
  std::vector<std::string> tail(c->argv.end() - 5, c->argv.end());
  CHECK(tail == std::vector<std::string>{"--", "/srv/root:O", "sh", "-c", "echo $HOME; id"});
  Run stored = sample_run();
  stored.image = *parse_image("registry.example/dev:1");
  auto s = build_command(stored);
  REQUIRE(s.ok());
  CHECK(std::vector<std::string>(s->argv.end() - 5, s->argv.end()) == std::vector<std::string>{"--", "registry.example/dev:1", "sh", "-c", "echo $HOME; id"});
  CHECK_FALSE(has_word(*s, "--rootfs"));
}

TEST_CASE("no value of the box's environment is in an argument or in podman's own environment", "[container][command]") {
  Run run = sample_run();
  auto c = build_command(run);
  REQUIRE(c.ok());
  for (const std::string& word : c->argv) CHECK(word.find("s3cret") == std::string::npos);
  for (const auto& [name, value] : c->env) {
    CHECK(value.find("s3cret") == std::string::npos);
    CHECK(name != "TOKEN");
  }
  CHECK(c->environment_file == "CI=1\nTOKEN=s3cret value\n");
  CHECK(has_word(*c, "--env-file=/proc/self/fd/3"));
}

TEST_CASE("what podman would take apart is refused, and its plain form is not", "[container][command]") {
  REQUIRE_FALSE(refused(sample_run()));
  auto with = [](auto change) {
    Run run = sample_run();
    change(run);
    return refused(run);
  };
  for (const char* path : {"/a,ro=false", "/a:b", "/a\"b", "/a\nb", "a", "", "/a/../b", "/a//b", "/a/", "/a\\b", "/a\x01"}) {
    INFO(path);
    CHECK(with([&](Run& r) { r.binds[0].source = path; }));
    CHECK(with([&](Run& r) { r.binds[0].target = path; }));
    CHECK(with([&](Run& r) { r.cwd = path; }));
    CHECK(with([&](Run& r) { r.storage = path; }));
    CHECK(with([&](Run& r) { r.crun = path; }));
  }
  CHECK(with([](Run& r) { r.binds[0].target = "/"; }));
  CHECK_FALSE(with([](Run& r) { r.binds[0].source = "/home/u/w\xc3\xb6rk space"; }));
  for (const char* name : {"", "-x", "a b", "A", "a/b", "a,b"}) CHECK(with([&](Run& r) { r.name = name; }));
  for (const char* name : {"", "1A", "A B", "A=B", "A-B", "#A", "A\n"}) CHECK(with([&](Run& r) { r.env[name] = "x"; }));
  for (const char* value : {"a\nB=2", "a\r", "\n"}) CHECK(with([&](Run& r) { r.env["A"] = value; }));
  CHECK_FALSE(with([](Run& r) { r.env["A"] = "# \"quoted\" $HOME `id` = b"; }));
  CHECK(with([](Run& r) { r.env["A"] = std::string("a\0b", 3); }));
  CHECK(with([](Run& r) { r.argv.clear(); }));
  CHECK(with([](Run& r) { r.argv = {""}; }));
  CHECK(with([](Run& r) { r.argv[1] = std::string("a\0b", 3); }));
  CHECK_FALSE(with([](Run& r) { r.argv = {"--privileged"}; }));  // it stands after the image: a program of that name
  CHECK(with([](Run& r) { r.driver = "vfs --privileged"; }));
  CHECK(with([](Run& r) { r.image.path = "/srv/root:O,x"; }));
  CHECK(with([](Run& r) { r.image = *parse_image("oci:/var/dev"); }));
  CHECK(with([](Run& r) { r.image = {Image::Kind::STORAGE, "--privileged", ""}; }));
  CHECK(with([](Run& r) { r.image = {Image::Kind::STORAGE, "docker://x/y", ""}; }));
}

TEST_CASE("a limit of the profile's own is held or refused, a built-in one is held or reported", "[container][limits]") {
  Resources r;
  r.cpus = 1.5;
  auto held = build_limits(r, true);
  REQUIRE(held.ok());
  CHECK(held->not_enforced.empty());
  CHECK(held->words == std::vector<std::string>{"--cgroups=enabled", "--memory=4294967296b", "--memory-swap=4294967296b", "--pids-limit=256", "--cpus=1.50"});
  auto reported = build_limits(r, false);
  REQUIRE(reported.ok());
  CHECK(reported->words == std::vector<std::string>{"--cgroups=disabled"});
  REQUIRE(reported->not_enforced.size() == 3);
  CHECK(reported->not_enforced[0].field == "resources.mem");
  for (const char* field : {"resources.mem", "resources.procs", "resources.cpus"}) {
    Resources named = r;
    named.named = {field};
    CHECK(build_limits(named, true).ok());
    auto none = build_limits(named, false);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == H5I_E_POLICY_LIMIT_TIER);
    CHECK(none.error().text.find(field) == 0);
  }
}
