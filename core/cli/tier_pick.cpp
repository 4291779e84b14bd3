#include "core/cli/tier_pick.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "core/os/beneath.hpp"
#include "core/plugin/registry.hpp"
#include "core/session/egress.hpp"
#include "core/session/probe.hpp"
#include "core/session/request.hpp"

namespace h5i::cli {
namespace {

// A folder in the form of a box, only for proving: the new box does not exist yet.
class TrialBox {
 public:
  static Result<TrialBox> make(const session::UserDirs& dirs) {
    TrialBox t;
    t.parent_ = H5I_TRY(session::make_private_directory(dirs.cache + "/trial"));
    t.name_ = H5I_TRY(new_session_id()).value;
    t.paths_.dir = dirs.cache + "/trial/" + t.name_;
    while (flock(t.parent_.get(), LOCK_EX) != 0)  // a folder and its lock are made together
      if (errno != EINTR) return sys_error("lock " + dirs.cache + "/trial");
    t.clear_dead();
    if (mkdir(t.paths_.dir.c_str(), 0700) != 0) return sys_error("make " + t.paths_.dir);
    t.held_ = H5I_TRY(os::open_directory_beneath(t.parent_, t.name_));
    if (flock(t.held_.get(), LOCK_EX | LOCK_NB) != 0) return sys_error("lock " + t.paths_.dir);
    flock(t.parent_.get(), LOCK_UN);
    for (const char* d : {"/work", "/work/.git", "/git", "/spool", "/private"})
      if (mkdir((t.paths_.dir + d).c_str(), 0700) != 0) return sys_error("make " + t.paths_.dir);
    return t;
  }
  TrialBox(TrialBox&& o) noexcept
      : parent_(std::move(o.parent_)), held_(std::move(o.held_)), name_(std::exchange(o.name_, {})), paths_(std::move(o.paths_)) {}
  ~TrialBox() {
    if (!name_.empty()) (void)os::remove_tree(parent_, name_).ok();
  }
  const session::BoxPaths& paths() const { return paths_; }

 private:
  TrialBox() = default;
  // Each is locked by who uses it: one that is not was left by a death.
  void clear_dead() const {
    auto entries = os::list_directory(parent_);
    if (!entries) return;
    for (const os::DirectoryEntry& e : *entries) {
      auto dir = os::open_directory_beneath(parent_, e.name);
      if (dir && flock(dir->get(), LOCK_EX | LOCK_NB) == 0) (void)os::remove_tree(parent_, e.name).ok();
    }
  }
  UniqueFd parent_, held_;
  std::string name_;
  session::BoxPaths paths_;
};

Result<void> prove(const plugin::PluginInfo& info, const Json& policy, const session::UserDirs& dirs, const session::Manifest& like) {
  TrialBox box = H5I_TRY(TrialBox::make(dirs));
  session::RequestInput in;
  in.session = H5I_TRY(new_session_id());
  in.manifest = &like;
  in.paths = &box.paths();
  in.policy = &policy;
  in.dirs = &dirs;
  in.prefix = plugin::install_prefix();
  in.uid = geteuid();
  in.gid = getegid();
  in.env = session::compute_environment(policy["profile"], session::host_variables()).values;
  session::EgressNow egress;
  if (session::takes_egress(info.manifest["claims"])) egress = H5I_TRY(session::egress_now(policy["profile"], dirs));
  in.network = &egress.network;
  H5I_TRY(session::verify_tier(info, session::run_request(in)));
  return {};
}

}  // namespace

Result<PickedTier> pick_tier(policy::Resolved resolved, const PickRequest& request) {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  plugin::Registry registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  plugin::ChooseInput input;
  input.flag = request.flag;
  input.profile = resolved.isolation;
  input.environment = request.environment;
  input.order = resolved.host.tiers_order;
  input.image = !resolved.image.empty();
  input.allow_unconfined = request.allow_unconfined || resolved.host.allow_unconfined;
  std::map<std::string, policy::Resolved> pinned;
  plugin::ChooseCalls calls;
  calls.find = [&](std::string_view id) { return registry.find_tier(id); };
  calls.probe = [](const plugin::PluginInfo& info) { return session::probe_tier(info); };
  calls.suits = [&](const plugin::PluginInfo& info, const Json& probe) -> Result<void> {
    std::set<std::string> claims;
    for (const Json& c : probe["claims"].array()) claims.insert(c.string());
    pinned.emplace(info.id, H5I_TRY(policy::with_tier(resolved, policy::facts_of(TierId(info.id), claims))));
    return {};
  };
  calls.verify = [&](const plugin::PluginInfo& info) -> Result<void> {
    auto it = pinned.find(info.id);
    if (it == pinned.end()) return make_error(Errc::INTERNAL, "the tier was never held against the profile", info.id);
    return prove(info, it->second.document, request.dirs, request.like);
  };
  plugin::TierChoice choice = H5I_TRY(plugin::choose_tier(input, calls));
  auto it = pinned.find(choice.plugin.id);
  if (it == pinned.end()) return make_error(Errc::INTERNAL, "the chosen tier was never held against the profile", choice.plugin.id);
  return PickedTier{std::move(it->second), std::move(choice)};
}

}  // namespace h5i::cli
