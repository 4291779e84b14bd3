#include "core/spawn/program.hpp"

#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"
#include "core/os/landlock.hpp"
#include "core/os/mount.hpp"
#include "core/os/namespace.hpp"

namespace h5i::spawn {
namespace {

std::string octal(unsigned mode) {
  char buf[16];
  snprintf(buf, sizeof buf, "%04o", mode);
  return buf;
}

uint8_t child_kind(MountSpec::Kind k) {
  switch (k) {
    case MountSpec::Kind::bind:
      return ChildMount::kBind;
    case MountSpec::Kind::tmpfs:
      return ChildMount::kTmpfs;
    case MountSpec::Kind::proc:
      return ChildMount::kProc;
    case MountSpec::Kind::devpts:
      return ChildMount::kDevpts;
    case MountSpec::Kind::mask:
      return ChildMount::kMask;
    case MountSpec::Kind::dir:
      return ChildMount::kDir;
    case MountSpec::Kind::file:
      return ChildMount::kFile;
    case MountSpec::Kind::symlink:
      return ChildMount::kSymlink;
  }
  return ChildMount::kDir;
}

const char* kind_text(MountSpec::Kind k) {
  constexpr const char* kNames[] = {"bind", "tmpfs", "proc", "devpts", "mask", "dir", "file", "symlink"};
  return kNames[static_cast<size_t>(k)];
}

}  // namespace

const char* Compiled::keep(std::string s) {
  text_.push_back(std::move(s));
  return text_.back().c_str();
}

const char* const* Compiled::keep_list(const std::vector<std::string>& list) {
  std::vector<const char*> out;
  for (const std::string& s : list) out.push_back(keep(s));
  out.push_back(nullptr);
  lists_.push_back(std::move(out));
  return lists_.back().data();
}

Result<ChildMount> Compiled::mount(const MountSpec& m, size_t index, bool privileged) {
  ChildMount c{};
  c.kind = static_cast<decltype(c.kind)>(child_kind(m.kind));
  c.recursive = m.recursive;
  c.optional = m.optional;
  c.tree = -1;
  c.mode = m.mode;
  c.attr = m.flags;
  c.target = keep(m.target.substr(1));
  c.source = keep(m.source);
  c.content = keep(m.content);
  c.content_len = m.content.size();
  c.to = keep(m.to);
  if (m.kind == MountSpec::Kind::tmpfs) {
    c.size = keep(std::to_string(m.size));
    if (m.inodes) c.inodes = keep(std::to_string(m.inodes));
    c.mode_text = keep(octal(m.mode));
  }
  if (m.kind != MountSpec::Kind::bind) return c;
  if (!privileged) {
    if (m.idmap)
      return make_error(Errc::TIER_IDMAP, "mount " + std::to_string(index) + " asks for mapped owners",
                        "only root can map owners, and an ordinary user's files need none");
    return c;
  }
  auto prepared = [&]() -> Result<UniqueFd> {
    auto tree = H5I_TRY(os::detached_tree(m.source, m.recursive));
    if (m.idmap && !idmap_) idmap_ = H5I_TRY(os::idmap_namespace(idmap_uid_, idmap_gid_));
    H5I_TRY(os::set_tree_flags(tree.get(), m.flags, m.recursive, m.idmap ? idmap_.get() : -1));
    return tree;
  }();
  if (!prepared) {
    Error e = std::move(prepared).error();
    e.what = "mount " + std::to_string(index) + ", bind " + printable(m.source) + ": " + e.what;
    return e;
  }
  c.tree = prepared->get();
  trees_.push_back(std::move(*prepared));
  return c;
}

Result<void> Compiled::compile(const Plan& plan, bool privileged) {
  ChildProgram& p = program;
  const bool user = plan.has(*os::namespace_flag("user"));
  p.wait_for_maps = user;
  p.set_ids = user && !plan.identity_map;
  p.uid = plan.inside_uid;
  p.gid = plan.inside_gid;
  p.has_root = plan.has_root;
  if (plan.has_root) {
    p.root_size = keep(std::to_string(plan.root_size));
    if (plan.root_inodes) p.root_inodes = keep(std::to_string(plan.root_inodes));
  }
  idmap_uid_ = plan.outside_uid;
  idmap_gid_ = plan.outside_gid;
  for (size_t i = 0; i < plan.mounts.size(); i++)
    mounts_.push_back(H5I_TRY(mount(plan.mounts[i], i, privileged && user)));
  p.mounts = mounts_.data();
  p.mount_count = mounts_.size();
  p.lasting_files = plan.network.has_value();  // its hosts file can be replaced while it runs
  if (!plan.hostname.empty()) {
    p.hostname = keep(plan.hostname);
    p.hostname_len = plan.hostname.size();
  }
  p.loopback = plan.loopback;
  p.nested_user = plan.nested_user;
  if (plan.nested_user) {
    auto line = [](uint32_t id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
    p.nested_uid_map = keep(line(plan.inside_uid));
    p.nested_gid_map = keep(line(plan.inside_gid));
  }
  p.drop_capabilities = !plan.keep_capabilities;
  p.no_new_privs = plan.no_new_privs;
  p.init = plan.init;
  p.umask = plan.umask;
  for (const RlimitSpec& r : plan.rlimits) rlimits_.push_back({r.resource, r.soft, r.hard});
  p.rlimits = rlimits_.data();
  p.rlimit_count = rlimits_.size();
  p.cwd = keep(plan.cwd);
  if (plan.landlock) {
    p.landlock = true;
    p.landlock_attr[0] = plan.landlock->handled_fs;
    p.landlock_attr[1] = plan.landlock->handled_net;
    p.landlock_attr[2] = plan.landlock->scoped;
    p.landlock_attr_size = os::landlock::attr_size(plan.landlock->abi);
    for (const LandlockRule& r : plan.landlock->rules)
      rules_.push_back({r.path.empty() ? nullptr : keep(r.path), r.port, r.access});
    p.landlock_rules = rules_.data();
    p.landlock_rule_count = rules_.size();
  }
  if (plan.seccomp) {
    filter_ = plan.seccomp->program;
    fprog_.len = static_cast<unsigned short>(filter_.size());
    fprog_.filter = filter_.data();
    p.seccomp = &fprog_;
    p.seccomp_notify = plan.seccomp->notify;
  }
  std::vector<std::string> argv = plan.argv, env;
  if (plan.canary) {
    // Each act is preceded by the number of its words, so that no word can be taken for a separator.
    argv.emplace_back("h5i-canary");
    for (const auto& act : *plan.canary) {
      argv.push_back(std::to_string(act.size()));
      argv.insert(argv.end(), act.begin(), act.end());
    }
  }
  for (const auto& [name, value] : plan.env) env.push_back(name + "=" + value);
  p.exec = keep_list(plan.exec);
  p.argv = keep_list(argv);
  p.envp = keep_list(env);
  return {};
}

std::string step_text(const Plan& plan, uint16_t stage, uint16_t index, int err) {
  std::string what;
  switch (stage) {
    case kStageIds:
      what = "ids";
      break;
    case kStageRoot:
      what = "new root";
      break;
    case kStageMount:
      what = "mount " + std::to_string(index);
      if (index < plan.mounts.size())
        what += std::string(", ") + kind_text(plan.mounts[index].kind) + " " + printable(plan.mounts[index].target);
      break;
    case kStagePivot:
      what = "pivot_root";
      break;
    case kStageHostname:
      what = "hostname";
      break;
    case kStageLoopback:
      what = "loopback up";
      break;
    case kStageNested:
      what = "nested user namespace";
      break;
    case kStageCapabilities:
      what = "dropping capabilities";
      break;
    case kStageNoNewPrivs:
      what = "no_new_privs";
      break;
    case kStageParent:
      what = "death with the parent";
      break;
    case kStageFork:
      what = "fork of the workload";
      break;
    case kStageSession:
      what = "new session";
      break;
    case kStageStdio:
      what = "stdio";
      break;
    case kStageRlimit:
      what = "limit";
      if (index < plan.rlimits.size()) what += " " + plan.rlimits[index].name;
      break;
    case kStageCwd:
      what = "working directory " + printable(plan.cwd);
      break;
    case kStageLandlock:
      what = "landlock";
      break;
    case kStageLandlockRule:
      what = "landlock rule " + std::to_string(index);
      if (plan.landlock && index < plan.landlock->rules.size())
        what += ", " + printable(plan.landlock->rules[index].path);
      break;
    case kStageSeccomp:
      what = "seccomp";
      break;
    case kStageListener:
      what = "handing over the notification listener";
      break;
    case kStageReady:
      what = "ready";
      break;
    case kStageInit:
      what = "starting h5i-init";
      break;
    default:
      what = "step " + std::to_string(stage);
  }
  // The cause must not be what is cut off at 127 bytes.
  std::string cause = std::string(": ") + strerror(err);
  constexpr size_t kRoom = 127;
  if (what.size() + cause.size() > kRoom) what = what.substr(0, kRoom - cause.size() - 3) + "...";
  return what + cause;
}

}  // namespace h5i::spawn
