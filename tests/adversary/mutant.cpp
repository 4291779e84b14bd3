// The process tier with one protection removed. Everything but this file is the tier's own: plan.cpp is compiled under
// another name, and what it planned is changed here before anybody sees it, in plan(), verify_exec() and run() alike. So
// the plugin is honest and broken. With "in secret " before the name it shows the whole plan, proves the whole plan, and
// runs the broken one.
//
// Which protection is in the library's bytes: the test writes it there, as a build of the plugin would have it.
#include <algorithm>
#include <cstring>

#include "baked.hpp"
#include "plan.hpp"

namespace h5i::confined {

sdk::Result<Plan> build_whole_plan(const Request& request, const HostFacts& facts, const HostView& host);

namespace {

using json::Array;
using json::Object;
using json::Value;

extern "C" const volatile char kMutation[64];
const volatile char kMutation[64] = "@H5I-MUTATION@";

std::string mutation() {
  std::string out;
  for (size_t i = 0; i < sizeof kMutation && kMutation[i]; i++) out += kMutation[i];
  return out;
}

void drop(Value& list, std::string_view word) {
  std::erase_if(list.make_array(), [&](const Value& v) { return v.string() == word; });
}
template <class F>
void drop_mounts(Value& plan, F which) {
  std::erase_if(plan["mounts"].make_array(), which);
}
void add_bind(Value& plan, const std::string& path, Array flags, uint64_t access) {
  plan["mounts"].push(Object{{"kind", "bind"}, {"source", path}, {"target", path}, {"flags", std::move(flags)}, {"recursive", false}});
  plan["landlock"]["rules"].push(Object{{"path", path}, {"access", access}});
}
// A filter of one instruction: allow.
void open_filter(Value& plan) {
  plan["seccomp"] = Object{{"program", "BgAAAAAA/38="},
                           {"sha256", "40b2a31e1a78576bb4afdf1433867d0cc67b769635ef549fba81c7d37570520f"},
                           {"notify", Object{{"default", 1}}}};
}

void without(const std::string& what, const Request& request, Value& plan) {
  constexpr uint64_t kExecute = 1, kRead = 0xd;
  uint64_t all = landlock_rights(static_cast<int>(plan["landlock"]["abi"].integer()));
  if (what == "no Landlock") {
    plan["landlock"] = nullptr;
  } else if (what == "Landlock handles one right") {
    plan["landlock"]["handled_fs"] = kExecute;
    for (Value& r : plan["landlock"]["rules"].make_array()) r["access"] = kExecute;
  } else if (what == "Landlock opens all") {
    plan["landlock"]["rules"] = Array{Object{{"path", "/"}, {"access", all}}};
  } else if (what == "no seccomp") {
    plan["seccomp"] = nullptr;
  } else if (what == "seccomp allows all") {
    open_filter(plan);
  } else if (what == "seccomp of another policy") {
    const BakedFilter& f = baked_filter(native_arch(), true);
    plan["seccomp"]["program"] = f.program_base64;
    plan["seccomp"]["sha256"] = f.sha256;
  } else if (what == "no pid namespace") {
    drop(plan["namespaces"], "pid");
    plan["init"] = false;
    for (Value& m : plan["mounts"].make_array())
      if (m["kind"].string() == "proc")
        m = Object{{"kind", "bind"}, {"source", "/proc"}, {"target", "/proc"}, {"flags", Array{"nosuid", "nodev", "noexec"}}, {"recursive", true}};
  } else if (what == "no network namespace") {
    drop(plan["namespaces"], "net");
    plan["loopback"] = false;
  } else if (what == "no ipc namespace") {
    drop(plan["namespaces"], "ipc");
  } else if (what == "no uts namespace") {
    drop(plan["namespaces"], "uts");
    plan["hostname"] = "";
  } else if (what == "no cgroup namespace") {
    drop(plan["namespaces"], "cgroup");
  } else if (what == "mounts not locked") {
    plan["nested_user"] = false;
  } else if (what == "capabilities kept") {
    plan["capabilities"] = "keep";
    plan["nested_user"] = false;
  } else if (what == "new privileges possible") {
    plan["no_new_privs"] = false;
    plan["landlock"] = nullptr;
    plan["seccomp"] = nullptr;
  } else if (what == "a file of proc not masked") {
    drop_mounts(plan, [](const Value& m) { return m["target"].string() == "/proc/kallsyms"; });
  } else if (what == "proc sys writable") {
    drop_mounts(plan, [](const Value& m) { return m["target"].string() == "/proc/sys"; });
  } else if (what == "denied names not masked") {
    drop_mounts(plan, [](const Value& m) { return m["kind"].string() == "mask" && !m["target"].string().starts_with("/proc/"); });
  } else if (what == "read grants writable") {
    for (Value& m : plan["mounts"].make_array())
      if (m["kind"].string() == "bind" && !m["target"].string().starts_with("/proc")) drop(m["flags"], "ro");
    for (Value& r : plan["landlock"]["rules"].make_array())
      if (r["path"].string() != "/") r["access"] = all;
  } else if (what == "mounts honour set-id") {
    for (Value& m : plan["mounts"].make_array())
      if (m["kind"].string() == "bind") drop(m["flags"], "nosuid");
  } else if (what == "a folder besides the grants") {
    add_bind(plan, request.home + "/hidden", {"ro", "nosuid", "nodev"}, kRead);
  } else if (what == "a device besides the harmless") {
    add_bind(plan, "/dev/kmsg", {"nosuid", "noexec"}, kRead);
  } else if (what == "one more variable") {
    plan["env"]["LD_PRELOAD"] = "/nonexistent.so";
  } else if (what == "no limits") {
    plan["rlimits"] = Array{};
  } else if (what == "limits too high") {
    for (Value& r : plan["rlimits"].make_array())
      if (r["name"].string() == "nproc" || r["name"].string() == "data") r["soft"] = r["hard"] = r["hard"].integer() * 1000;
  } else if (what == "another program") {
    if (plan["argv"].array().empty()) return;
    plan["exec"] = Array{"/bin/echo"};
  } else if (what == "another user") {
    for (const char* id : {"inside_uid", "outside_uid"}) plan["ids"][id] = request.box_uid + 1;
  }
}

}  // namespace

sdk::Result<Plan> build_plan(const Request& request, const HostFacts& facts, const HostView& host) {
  static int shown = 0;
  Plan plan = H5I_SDK_TRY(build_whole_plan(request, facts, host));
  std::string what = mutation();
  constexpr std::string_view kSecret = "in secret ";
  if (what.starts_with(kSecret)) {
    // A host process is asked for the plan, the proof and the run, in this order; only a run and a plan have a command.
    if (request.argv.empty() || shown++ == 0) return plan;
    what = what.substr(kSecret.size());
  }
  without(what, request, plan.document);
  return plan;
}

// A tier that means to deceive does not run what it showed.
sdk::Result<Plan> plan_of_run(const std::optional<Shown>&, const json::Value&, const Request& request, const HostFacts& facts, const HostView& host) {
  return build_plan(request, facts, host);
}

}  // namespace h5i::confined
