// The plan of a tier beside the request that it was made for: equal is silent, each difference is one line.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/session/departures.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::session;

namespace {

// Folders that exist, since links are followed on the host: a grant is named by a link here.
class Asked {
 public:
  Asked() {
    char name[] = "/tmp/h5i-asked-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root = name;
    for (const char* d : {"/work", "/git", "/private", "/shared", "/other", "/work/sub"}) std::filesystem::create_directories(root + d);
    std::ofstream(root + "/work/.env") << "x";
    std::filesystem::create_symlink(root + "/shared", root + "/link");
    request = json::Object{
        {"policy", json::Object{{"profile", json::Object{{"fs", json::Object{{"read", json::Array{"/usr", root + "/link"}},
                                                                             {"write", json::Array{"$WORK"}},
                                                                             {"deny", json::Array{"$WORK/.env", "$WORK/late", root + "/shared/late", root + "/elsewhere"}}}},
                                                         {"net", json::Object{{"mode", "deny"}}}}}}},
        {"paths", json::Object{{"work", root + "/work"}, {"git", root + "/git"}, {"private", root + "/private"}, {"spool", ""}, {"objects", json::Array{}}}},
        {"env", json::Object{{"PATH", "/bin"}}},
        {"command", json::Object{{"argv", json::Array{"make"}}, {"exec", json::Array{"/bin/make"}}}}};
    plan = json::Object{{"root", json::Object{{"size", 1}, {"inodes", 1}}},
                        {"argv", json::Array{"make"}},
                        {"exec", json::Array{"/bin/make"}},
                        {"env", json::Object{{"PATH", "/bin"}}},
                        {"mounts", json::Array{}},
                        {"not_enforced", json::Array{}}};
    bind("/usr", true);
    bind(root + "/shared", true);
    bind(root + "/work", false);
    bind("/dev/null", false);
    bind("/proc/sys", true);
    mask(root + "/work/.env");
    mask(root + "/work/late");
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() { std::filesystem::remove_all(root); }

  void bind(const std::string& path, bool read_only) {
    plan["mounts"].push(json::Object{{"kind", "bind"}, {"source", path}, {"target", path}, {"flags", read_only ? json::Array{"ro", "nosuid"} : json::Array{"nosuid"}}});
  }
  void mask(const std::string& path) { plan["mounts"].push(json::Object{{"kind", "mask"}, {"target", path}}); }
  void drop_last_mount() { plan["mounts"].make_array().pop_back(); }
  std::string said() const {
    std::string out;
    for (const std::string& line : departures(plan, request, claims)) out += line + "\n";
    return out;
  }

  std::string root;
  Json request, plan;
  std::vector<std::string> claims = {"fs.read", "fs.write", "fs.deny", "env.pass", "env.set"};
};

bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("a plan that is what was asked for departs from nothing") {
  Asked a;
  CHECK(a.said().empty());
}

TEST_CASE("a plan that shows h5i's own files is not what was asked for, whatever the tier claims") {
  Asked a;
  a.claims.clear();
  std::string h5i = a.root + "/shared/h5i", late = a.root + "/shared/h5i-later";
  std::filesystem::create_directories(h5i + "/boxes/x/work");
  a.request["hide_always"] = json::Array{h5i, late};
  CHECK(has(a.said(), h5i));
  CHECK(!has(a.said(), late));  // not there, and nobody can make it in a read-only grant
  a.mask(h5i);
  CHECK(a.said().empty());
  a.drop_last_mount();
  a.plan["mounts"].push(json::Object{{"kind", "tmpfs"}, {"target", h5i}});
  CHECK(a.said().empty());
  // What is mounted over the mask shows it again, unless it is the box's own.
  a.bind(h5i + "/boxes", true);
  CHECK(has(a.said(), h5i));
  a.drop_last_mount();
  a.request["paths"]["work"] = h5i + "/boxes/x/work";
  a.bind(h5i + "/boxes/x/work", false);
  CHECK(a.said().empty());
  a.bind(a.root + "/shared", false);
  CHECK(has(a.said(), h5i));
  CHECK(has(a.said(), late));
}

TEST_CASE("each departure of a plan is said, and only where the field is claimed and not given up") {
  {
    Asked a;
    a.bind(a.root + "/other", true);
    CHECK(has(a.said(), "fs.read is claimed, the plan shows " + a.root + "/other"));
    a.claims = {"fs.write"};
    CHECK(a.said().empty());
  }
  {
    Asked a;
    a.bind(a.root + "/shared", false);
    CHECK(has(a.said(), "fs.write is claimed, the plan makes " + a.root + "/shared writable"));
    a.plan["not_enforced"].push(json::Object{{"field", "fs.write"}, {"reason", "x"}, {"detail", ""}});
    CHECK_FALSE(has(a.said(), "fs.write"));
  }
  {
    Asked a;
    a.bind("/dev/kmsg", false);
    CHECK(has(a.said(), "shows /dev/kmsg"));
    CHECK(has(a.said(), "makes /dev/kmsg writable"));
  }
  {
    Asked a;
    a.drop_last_mount();
    CHECK(has(a.said(), "fs.deny is claimed, the plan does not mask " + a.root + "/work/late"));
    a.drop_last_mount();
    CHECK(has(a.said(), "does not mask " + a.root + "/work/.env"));
    a.mask(a.root + "/work");  // what hides the folder hides the name
    CHECK(a.said().empty());
  }
  {
    Asked a;
    a.plan["env"]["LD_PRELOAD"] = "/x.so";
    CHECK(has(a.said(), "the plan sets LD_PRELOAD"));
    a.plan["env"] = json::Object{};
    CHECK(has(a.said(), "leaves variables out"));
  }
  {
    Asked a;
    a.plan["exec"] = json::Array{"/bin/echo"};
    CHECK(has(a.said(), "another program"));
  }
}

TEST_CASE("a neighbour whose name begins alike is not the grant") {
  Asked a;
  std::filesystem::create_directories(a.root + "/shared2");
  a.bind(a.root + "/shared2", true);
  CHECK(has(a.said(), "/shared2"));
}

TEST_CASE("a plan that runs something else than the command says nothing of the box's view") {
  Asked a;
  a.plan["argv"] = json::Array{"podman", "run"};
  a.plan["env"]["LD_PRELOAD"] = "/x.so";
  CHECK(a.said().empty());
}

TEST_CASE("packet rules let through what the core looked up, the host's loopback at the policy's ports, and nothing else") {
  Asked a;
  a.claims.push_back("net.egress");
  a.plan["namespaces"] = json::Array{"user", "net"};
  Json asked = json::Object{{"id", "r1"}, {"about", "api.example.org:443"}, {"pinned", true}, {"protocol", "tcp"}, {"addresses", json::Array{"93.184.216.34"}}, {"ports", json::Array{"443"}}};
  Json loopback = json::Object{{"id", "host-loopback"}, {"about", "net.loopback"}, {"protocol", "tcp"}, {"addresses", json::Array{"192.0.2.2"}}, {"ports", json::Array{"3000"}}};
  a.request["network"] = json::Object{{"egress", json::Object{{"allow", json::Array{asked}}}}, {"hosts", ""}};
  a.request["policy"]["profile"]["net"]["loopback"] = json::Array{3000};
  Json good = json::Object{{"egress", json::Object{{"allow", json::Array{asked, loopback}}}}, {"uplink", "slirp4netns"}, {"host_loopback", true}};
  a.plan["network"] = good;
  CHECK(a.said() == "");
  struct {
    const char* what;
    std::function<void(Json&)> change;
  } rows[] = {{"another address", [](Json& n) { n["egress"]["allow"].make_array()[0]["addresses"] = json::Array{"0.0.0.0/0"}; }},
              {"another port", [](Json& n) { n["egress"]["allow"].make_array()[0]["ports"] = json::Array{"1-65535"}; }},
              {"another protocol", [](Json& n) { n["egress"]["allow"].make_array()[0]["protocol"] = "udp"; }},
              {"one more", [&](Json& n) { n["egress"]["allow"].push(json::Object{{"id", "r9"}, {"protocol", "tcp"}, {"addresses", json::Array{"198.51.100.1"}}, {"ports", json::Array{"443"}}}); }},
              {"another port of the host", [](Json& n) { n["egress"]["allow"].make_array()[1]["ports"] = json::Array{"22"}; }},
              {"another address as the host", [](Json& n) { n["egress"]["allow"].make_array()[1]["addresses"] = json::Array{"10.0.0.1"}; }}};
  for (const auto& row : rows) {
    INFO(row.what);
    Json n = good;
    row.change(n);
    a.plan["network"] = n;
    CHECK(a.said().find("net.egress is claimed, the plan lets through") != std::string::npos);
  }
  a.plan["network"] = good;
  a.request["policy"]["profile"]["net"]["loopback"] = json::Array{};
  CHECK(a.said().find("opens the host's loopback") != std::string::npos);
  // Without rules: a network with nothing in it is less than was asked for, the host's is more.
  a.plan["network"] = Json();
  CHECK(a.said() == "");
  a.plan["namespaces"] = json::Array{"user"};
  CHECK(a.said().find("the host's network and no rules") != std::string::npos);
}
