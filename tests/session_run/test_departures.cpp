// The plan of a tier beside the request that it was made for: equal is silent, each difference is one line.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
