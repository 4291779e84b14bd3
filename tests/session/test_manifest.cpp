#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;
using namespace h5i::test;

TEST_CASE("a manifest that was saved is read back, every member") {
  Scratch s;
  Manifest m = some_manifest("human", "fix");
  m.state = BoxState::PROPOSED;
  m.proposed_commit = std::string(40, 'b');
  m.last_session = "01arz3ndektsv4rrffq69g5fav";
  m.host_uid = 4294967294u;
  BoxPaths paths = make_box(s / "boxes", m);
  auto back = load_manifest(paths);
  REQUIRE(back);
  CHECK(json::canonical(back->to_json()) == json::canonical(m.to_json()));
  struct stat st{};
  REQUIRE(stat(paths.manifest().c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
}

TEST_CASE("every state has a name, and the name names the state") {
  for (BoxState state : {BoxState::CREATED, BoxState::RUNNING, BoxState::IDLE, BoxState::PROPOSED, BoxState::APPLIED, BoxState::ABORTED})
    CHECK(state_from(state_name(state)) == state);
  CHECK_FALSE(state_from("ready"));
}

TEST_CASE("a manifest that is not exactly this schema is refused") {
  Scratch s;
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  Json good = *json::parse(read_file(paths.manifest()));
  REQUIRE(load_manifest(paths));  // the control
  auto refused = [&](const Json& v, const std::string& why) {
    write_file(paths.manifest(), json::canonical(v));
    auto r = load_manifest(paths);
    REQUIRE_FALSE(r);
    CAPTURE(r.error().evidence);
    CHECK(r.error().code == Errc::BOX_MANIFEST);
    CHECK(r.error().evidence.find(why) != std::string::npos);
  };
  Json v = good;
  v["schema"] = "h5i.box/2";
  refused(v, "h5i.box/2");
  v = good;
  v["surprise"] = 1;
  refused(v, "surprise");
  for (const auto& [key, value] : good.object()) {
    v = good;
    v.make_object().erase(key);
    refused(v, key == "schema" ? "schema" : key);
    if (key == "source" || key == "schema") continue;
    v = good;
    v[key] = json::Object{};
    refused(v, key);
  }
  v = good;
  v["agent"] = "../x";
  refused(v, "name");
  v = good;
  v["base_commit"] = "HEAD";
  refused(v, "hexadecimal");
  v = good;
  v["repo_git_dir"] = "relative";
  refused(v, "absolute");
  v = good;
  v["placeholders"] = json::Array{Json("a/../../b")};
  refused(v, "work tree");
  refused(Json(json::Array{}), "object");
  write_file(paths.manifest(), "{\"schema\":\"h5i.box/1\",\"schema\":\"h5i.box/1\"}");
  CHECK(load_manifest(paths).error().code == Errc::BOX_MANIFEST);
}

TEST_CASE("a manifest behind a symbolic link, or a fifo in its place, is refused without waiting") {
  Scratch s;
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  std::filesystem::rename(paths.manifest(), s / "elsewhere.json");
  std::filesystem::create_symlink(s / "elsewhere.json", paths.manifest());
  CHECK(load_manifest(paths).error().code == Errc::PATH_ESCAPE);
  std::filesystem::remove(paths.manifest());
  REQUIRE(mkfifo(paths.manifest().c_str(), 0600) == 0);
  CHECK_FALSE(load_manifest(paths));
}

TEST_CASE("a box folder that others may write is refused") {
  Scratch s;
  BoxPaths paths = make_box(s / "boxes", some_manifest("human", "fix"));
  REQUIRE(load_manifest(paths));
  chmod(paths.dir.c_str(), 0777);
  CHECK(load_manifest(paths).error().code == Errc::DENIED);
}

TEST_CASE("a policy is used only with the digest that the manifest pins") {
  Scratch s;
  Json policy = json::Object{{"schema", "h5i.policy/1"}, {"tier", "process"}};
  Manifest m = some_manifest("human", "fix");
  m.policy_digest = PolicyDigest(canonical_digest(policy));
  BoxPaths paths = make_box(s / "boxes", m);
  write_file(paths.policy(), json::pretty(policy));  // the form on disk does not matter, the value does
  auto read = load_policy(paths, m);
  REQUIRE(read);
  CHECK(*read == policy);
  policy["tier"] = "workspace";
  write_file(paths.policy(), json::pretty(policy));
  auto refused = load_policy(paths, m);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::POLICY_DIGEST);
  CHECK(refused.error().evidence.find(m.policy_digest.value) != std::string::npos);
}
