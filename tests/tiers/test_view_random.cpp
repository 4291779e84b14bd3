// Grants and denials drawn at random, and what the resulting mounts show of each name: the rules of docs/policy.md,
// said a second time in a few lines.
#include <algorithm>

#include "path.hpp"
#include "tests/tiers/fake_host.hpp"
#include "tests/tiers/sample_request.hpp"
#include "view.hpp"

using namespace h5i;
using namespace h5i::tests;
using confined::is_within;

namespace {

// The same sequence on every machine (Numerical Recipes' generator).
struct Draw {
  uint32_t state;
  uint32_t below(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  }
};

struct Shown {
  std::string kind = "nothing";  // of the mount that a name is on
  bool writable = false;
  std::string host;  // the host's path behind it
};

Shown shown(const confined::View& view, const std::string& path) {
  Shown out;
  size_t best = 0;
  for (const json::Value& m : view.mounts) {
    const std::string& target = m["target"].string();
    if (!is_within(path, target) || target.size() < best) continue;
    best = target.size();
    out = {m["kind"].string(), true, ""};
    for (const json::Value& f : m["flags"].array()) out.writable = out.writable && f.string() != "ro";
    if (out.kind == "bind") out.host = m["source"].string() + path.substr(target.size());
  }
  return out;
}

bool within_any(const std::string& path, const std::vector<std::string>& list) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& l) { return is_within(path, l); });
}

json::Array json_list(const std::vector<std::string>& list) {
  json::Array out;
  for (const std::string& s : list) out.push_back(s);
  return out;
}

}  // namespace

TEST_CASE("whatever is granted and denied, a name shows what the policy says") {
  std::vector<std::string> names;
  FakeHost host = debian();
  for (const char* top : {"/srv/a", "/srv/b", "/data"})
    for (const char* middle : {"", "/x", "/y", "/x-y"})
      for (const char* leaf : {"", "/k", "/l/m"}) {
        std::string path = std::string(top) + middle + leaf;
        host.dir(path);
        names.push_back(path);
      }
  confined::HostFacts facts;
  facts.landlock_abi = 7;

  size_t binds = 0, masks = 0, hidden = 0, writable = 0;
  for (uint32_t seed = 1; seed <= 1500; seed++) {
    Draw draw{seed};
    std::vector<std::string> read, write, deny, always, hide;
    auto pick = [&] { return names[draw.below(static_cast<uint32_t>(names.size()))]; };
    for (uint32_t n = draw.below(4); n > 0; n--) read.push_back(pick());
    for (uint32_t n = draw.below(4); n > 0; n--) write.push_back(pick());
    for (uint32_t n = draw.below(4); n > 0; n--) deny.push_back(pick() + (draw.below(3) == 0 ? "/later" : ""));
    for (uint32_t n = draw.below(4); n > 0; n--) always.push_back(pick());
    if (seed % 2 == 0)
      for (uint32_t n = draw.below(3); n > 0; n--) hide.push_back(pick());
    json::Value request = sample_request();
    for (const std::string& p : read) profile_of(request)["fs"]["read"].push(p);
    for (const std::string& p : write) profile_of(request)["fs"]["write"].push(p);
    profile_of(request)["fs"]["deny"] = json_list(deny);
    request["deny_always"] = json_list(always);
    request["hide_always"] = json_list(hide);
    auto view = confined::build_view(h5i::tests::read(request), facts, host);
    INFO("seed " << seed << " read " << json::canonical(json_list(read)) << " write "
                 << json::canonical(json_list(write)) << " deny " << json::canonical(json_list(deny)) << " always "
                 << json::canonical(json_list(always)) << " hide " << json::canonical(json_list(hide)));
    REQUIRE(view.ok());

    std::vector<std::string> asked = names;
    for (const std::string& d : deny) asked.push_back(d);
    for (const std::string& path : asked) {
      Shown s = shown(*view, path);
      INFO(path << " is on " << s.kind << " " << s.host);
      bool readable = within_any(path, read) || within_any(path, write);
      bool may_write = within_any(path, write) && !within_any(path, always);
      bool later = path.size() > 6 && path.compare(path.size() - 6, 6, "/later") == 0;
      if (within_any(path, hide)) {
        CHECK(s.kind != "bind");
        hidden += s.kind == "mask";
      } else if (within_any(path, deny)) {
        // An absent name of a read-only directory needs no mask: nobody in the box can make it.
        bool needless = later && !may_write;
        CHECK((s.kind != "bind" || (needless && !s.writable)));
        masks += s.kind == "mask";
      } else if (readable) {
        CHECK(s.kind == "bind");
        CHECK(s.host == path);
        CHECK(s.writable == may_write);
        binds++;
        writable += s.writable;
      } else {
        CHECK(s.kind == "nothing");
      }
    }
    // A denied name below a writable grant: no directory in between can be renamed.
    std::vector<std::string> fixed = deny;
    fixed.insert(fixed.end(), hide.begin(), hide.end());
    for (const std::string& d : fixed) {
      if (shown(*view, d).kind != "mask" || !within_any(d, write) || within_any(d, always)) continue;
      for (std::string at = confined::parent_of(d); within_any(at, write); at = confined::parent_of(at)) {
        if (within_any(at, fixed)) break;  // masked as a whole
        bool is_target = false;
        for (const json::Value& m : view->mounts) is_target = is_target || m["target"].string() == at;
        INFO(at << " above " << d);
        CHECK(is_target);
      }
    }
  }
  CHECK(binds > 1000);  // the draw is worth its time
  CHECK(masks > 100);
  CHECK(hidden > 50);
  CHECK(writable > 500);
}
