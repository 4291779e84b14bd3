// verify_exec of the process tier against a real spawner, and against one that does not confine.
#include "tests/tiers/box.hpp"
#include "verify.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

// The host's spawn service over the test's own spawner; `strip` takes confinement out of a plan on its way.
struct FakeHost {
  std::function<void(json::Value&)> strip;
  Session* session = nullptr;
  std::map<uint64_t, Outcome> ended;
  h5i_host host{};

  explicit FakeHost(std::function<void(json::Value&)> s = {}) : strip(std::move(s)) {
    host = {sizeof host, 0, this,
            [](void*, h5i_str id) -> const void* { return sdk::to_view(id) == H5I_HOST_SPAWN ? &kSpawn : nullptr; }};
  }
  static h5i_status start(void* context, h5i_str plan, uint32_t, uint64_t* handle, h5i_error* error) {
    auto* self = static_cast<FakeHost*>(context);
    json::Value document = *json::parse(sdk::to_view(plan));
    if (self->strip) self->strip(document);
    Outcome o = Session().canary(document);
    if (!o.refused.empty()) return sdk::detail::fill(error, sdk::failure(H5I_E_INVALID, o.refused));
    *handle = self->ended.size() + 1;
    self->ended[*handle] = o;
    return H5I_OK;
  }
  static h5i_status wait(void* context, uint64_t handle, int64_t, h5i_spawn_result* out, h5i_sink_fn sink,
                         void* sink_context, h5i_error*) {
    const Outcome& o = static_cast<FakeHost*>(context)->ended[handle];
    out->status = o.result.status;
    out->code = o.result.code;
    out->setup_errno = o.result.setup_errno;
    snprintf(out->setup_text, sizeof out->setup_text, "%s", o.result.setup_text.c_str());
    return sink(sink_context, sdk::to_str(o.output));
  }
  static h5i_status kill(void*, uint64_t, h5i_error*) { return H5I_OK; }
  static constexpr h5i_host_spawn kSpawn = {sizeof(h5i_host_spawn), 1, start, wait, kill};
};

sdk::Result<json::Value> verified(TierBox& box, FakeHost& fake) {
  auto r = confined::read_request(box.request);
  if (!r) return r.error();
  if (auto made = confined::prepare_private_dirs(*r); !made) return made.error();
  auto p = confined::build_plan(*r, confined::read_facts(), confined::RealHostView());
  if (!p) return p.error();
  auto held = confined::Placeholders::make(p->placeholders);
  if (!held) return held.error();
  return confined::verify(sdk::Host(&fake.host), *r, *p);
}

bool proved(const json::Value& document, std::string_view claim) {
  bool any = false;
  for (const json::Value& d : document["dimensions"].array())
    if (d["claim"].string() == claim) {
      any = true;
      if (!d["ok"].boolean() || d["control"].string() != "ok") return false;
    }
  return any;
}

}  // namespace

KERNEL_TEST("verify proves each claim with a control, and leaves nothing behind", "[tiers][verify]") {
  TierBox box(k);
  box.profile()["fs"]["private"]["cache"] = "cache";
  box.profile()["resources"]["fsize"] = 1 << 30;
  FakeHost fake;
  auto v = verified(box, fake);
  KREQUIRE(v.ok() || (k.say(v.error().text), false));
  std::string text = json::pretty(*v);
  KCHECK_SAYS((*v)["ok"].boolean(), text);
  for (const char* claim : {"fs.read", "fs.write", "fs.deny", "fs.private", "net.mode", "net.unix", "resources.mem",
                            "resources.procs", "resources.fsize"})
    KCHECK_SAYS(proved(*v, claim), std::string(claim) + text);
  for (const char* d : {"/private"}) {
    int left = 0;
    for (const std::string& n : confined::RealHostView().names(box.dir() + d)) left += n.rfind(".h5i-verify", 0) == 0;
    KCHECK(left == 0);
  }
  KCHECK(confined::RealHostView().names(box.dir() + "/private/cache/cache").empty());
}

KERNEL_TEST("a grant above the box's own folders is no breach of the policy that grants it", "[tiers][verify]") {
  for (const char* field : {"read", "write"}) {
    TierBox box(k);
    box.request["paths"]["repo_git"] = box.dir() + "/.git";  // the box lies in the repository, which is granted whole
    box.profile()["fs"][field].push(box.dir());
    FakeHost fake;
    auto v = verified(box, fake);
    KREQUIRE(v.ok() || (k.say(v.error().text), false));
    KCHECK_SAYS((*v)["ok"].boolean() && proved(*v, "fs.read") && proved(*v, "fs.write"), json::pretty(*v));
  }
}

KERNEL_TEST("verify sees a host that does not confine", "[tiers][verify]") {
  auto refused = [&](std::function<void(json::Value&)> strip, const char* claim) {
    TierBox box(k);
    FakeHost fake(std::move(strip));
    auto v = verified(box, fake);
    KREQUIRE(v.ok() || (k.say(std::string(claim) + ": " + v.error().text), false));
    KCHECK_SAYS(!(*v)["ok"].boolean() && !proved(*v, claim), std::string(claim) + json::pretty(*v));
  };
  refused([](json::Value& p) { p["seccomp"] = nullptr; }, "net.unix");
  refused(
      [](json::Value& p) {
        if (p["namespaces"].array().empty()) return;
        json::Array kept;
        for (const json::Value& n : p["namespaces"].array())
          if (n.string() != "net") kept.push_back(n);
        p["namespaces"] = kept;
        p["loopback"] = false;
      },
      "net.mode");
  refused(
      [](json::Value& p) {
        json::Array kept;
        for (const json::Value& m : p["mounts"].array())
          if (m["kind"].string() != "mask" || m["target"].string().find("denied") == std::string::npos)
            kept.push_back(m);
        p["mounts"] = kept;
      },
      "fs.deny");
  refused([](json::Value& p) { p["rlimits"] = json::Array{}; }, "resources.procs");
  refused([](json::Value& p) { p["landlock"] = nullptr; }, "fs.write");
  refused(
      [](json::Value& p) {
        if (p["landlock"].is_object())
          p["landlock"]["rules"] = json::Array{json::Object{{"path", "/"}, {"access", p["landlock"]["handled_fs"]}}};
      },
      "fs.read");
}
