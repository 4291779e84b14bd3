#include "tests/tiers/sample_request.hpp"

using namespace h5i;
using namespace h5i::tests;

namespace {
int32_t code_of(const json::Value& request) {
  auto r = confined::read_request(request);
  return r.ok() ? H5I_OK : r.error().code;
}
}  // namespace

TEST_CASE("a request is read: $WORK is replaced, the rest is as written") {
  json::Value v = sample_request();
  profile_of(v)["fs"]["deny"].push("$WORK/.env");
  auto r = read(v);
  CHECK(r.work == kWork);
  CHECK(r.write == std::vector<std::string>{kWork});
  CHECK(r.deny == std::vector<std::string>{kWork + "/.env"});
  CHECK(r.argv.size() == 2);
  CHECK_FALSE(r.as_root());
  CHECK(r.resources.procs == 256);
}

TEST_CASE("egress rules are refused, an empty list is not a rule") {
  json::Value v = sample_request();
  profile_of(v)["net"]["egress"] = json::Array{};
  CHECK(code_of(v) == H5I_OK);
  profile_of(v)["net"]["egress"].push(json::Object{{"to", "api.example:443"}});
  CHECK(code_of(v) == H5I_E_POLICY_EGRESS_TIER);
}

TEST_CASE("paths that could mean something else are refused") {
  for (const char* path : {"relative", "/a/../b", "/a/./b", "//a", "$HOME/x", "$WORKX", ""}) {
    json::Value v = sample_request();
    profile_of(v)["fs"]["read"].push(path);
    INFO(path);
    CHECK(code_of(v) == H5I_E_POLICY_PATH);
  }
  for (const char* path : {"../x", "/x", "a//b", "", "a/../b"}) {
    json::Value v = sample_request();
    profile_of(v)["fs"]["private"][path] = "cache";
    INFO(path);
    CHECK(code_of(v) == H5I_E_POLICY_PATH);
  }
}

TEST_CASE("a box never has the host's root, and only root gives another id") {
  auto with = [](int uid, int gid, int box_uid, int box_gid) {
    json::Value v = sample_request();
    v["ids"] = json::Object{{"uid", uid}, {"gid", gid}, {"box_uid", box_uid}, {"box_gid", box_gid}};
    return code_of(v);
  };
  CHECK(with(1000, 1000, 1000, 1000) == H5I_OK);
  CHECK(with(0, 0, 165536, 165536) == H5I_OK);
  CHECK(with(0, 0, 0, 0) == H5I_E_INVALID);
  CHECK(with(0, 0, 165536, 0) == H5I_E_INVALID);
  CHECK(with(1000, 1000, 1001, 1000) == H5I_E_INVALID);
  CHECK(with(1000, 1000, 0, 0) == H5I_E_INVALID);
  CHECK(with(-1, 0, 5, 5) == H5I_E_INVALID);
}

TEST_CASE("limits are numbers above zero") {
  for (const char* name : {"mem", "procs", "cpu", "fsize", "disk", "inodes", "cpus"}) {
    INFO(name);
    json::Value v = sample_request();
    profile_of(v)["resources"][name] = 7;
    CHECK(code_of(v) == H5I_OK);
    profile_of(v)["resources"][name] = 0;
    CHECK(code_of(v) == H5I_E_INVALID);
    profile_of(v)["resources"][name] = "7";
    CHECK(code_of(v) == H5I_E_INVALID);
  }
}

TEST_CASE("what is missing or of another kind is refused, not guessed") {
  auto without = [](auto change) {
    json::Value v = sample_request();
    change(v);
    return code_of(v);
  };
  CHECK(without([](json::Value& v) { v["schema"] = "h5i.run/2"; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { v["policy"] = nullptr; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { v["paths"]["work"] = ""; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { v["ids"] = nullptr; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { profile_of(v)["net"]["mode"] = "open"; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { profile_of(v)["fs"]["read"] = "/usr"; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { v["command"]["argv"] = json::Array{}; }) == H5I_E_INVALID);
  CHECK(without([](json::Value& v) { v["command"] = nullptr; }) == H5I_OK);  // verify_exec and explain
}
