// Before anything runs: the box and its policy, the command, the tier, its plan and its proof.
#include <fcntl.h>
#include <unistd.h>

#include "core/evidence/log.hpp"
#include "core/os/beneath.hpp"
#include "core/os/fs.hpp"
#include "core/session/departures.hpp"
#include "core/session/placeholders.hpp"
#include "core/session/probe.hpp"
#include "core/session/proof_files.hpp"
#include "core/session/request.hpp"
#include "core/session/run_steps.hpp"
#include "core/session/spool.hpp"
#include "core/session/verify_cache.hpp"
#include "core/spawn/plan.hpp"

namespace h5i::session {
namespace {

constexpr const char* kOwnProgram = "/proc/self/fd/0";  // no name of the box's view leads to it

std::string missing_of(const Json& probe) {
  std::string out;
  for (const std::string& m : strings(probe["missing"])) out += (out.empty() ? "" : ", ") + printable(m);
  return out;
}

}  // namespace

Result<void> OneRun::prepare() {
  lock_.emplace(H5I_TRY(BoxLock::acquire(box_.paths, options_.verb())));
  if (auto dir = os::open_directory(box_.paths.dir)) os::remove_dead_files(*dir);
  manifest_ = H5I_TRY(load_manifest(box_.paths));
  policy_ = H5I_TRY(load_policy(box_.paths, manifest_));
  if (manifest_.state == BoxState::ABORTED)
    return make_error(Errc::BOX_STATE, "nothing runs in " + manifest_.name.str(), "the box is aborted");
  dirs_ = H5I_TRY(UserDirs::from_environment());
  (void)make_private_directory(dirs_.state);  // what is there already can be hidden from a box that may only read around it
  hidden_ = H5I_TRY(always_hidden(box_.paths, manifest_, dirs_, policy_));
  H5I_TRY(check_command());
  H5I_TRY(check_objects());
  H5I_TRY(empty_spool(box_.paths.spool()));
  signals_.emplace(H5I_TRY(SignalFd::take()));
  H5I_TRY(start_host_process());  // goes on by itself while the next steps are taken
  int64_t wall = policy_["profile"]["resources"]["wall"].integer(0);
  if (wall > 0 && !options_.shell) deadline_ns_ = started_mono_ + wall * 1000000000;
  H5I_TRY(record("run-requested", json::Object{{"command", json_of(redacted_argv())},
                                               {"cwd", cwd_},
                                               {"shell", options_.shell},
                                               {"tier", manifest_.tier},
                                               {"policy_digest", manifest_.policy_digest.value}}));
  H5I_TRY(load_plugin());
  H5I_TRY(probe());
  H5I_TRY(make_plan());
  H5I_TRY(record_placeholders());
  return prove();
}

Result<void> OneRun::check_command() {
  const Json& profile = policy_["profile"];
  H5I_TRY(check_broker(profile));
  Variables host = host_variables();
  Environment env = compute_environment(profile, host);
  if (options_.own) {
    argv_ = {options_.own->name, options_.own->word};
    exec_ = {kOwnProgram};
    cwd_ = box_.paths.work();
    env_.values = {{"H5I_BOX", manifest_.name.str()}, {"H5I_SESSION", session_.value}};
    return {};
  }
  argv_ = options_.argv;
  if (options_.shell && argv_.empty()) {
    auto shell = host.find("SHELL");
    argv_ = {shell != host.end() && shell->second.starts_with('/') ? shell->second : "/bin/sh", "-i"};
  }
  if (argv_.empty() || argv_[0].empty())
    return make_error(Errc::BOX_COMMAND, "no command for " + box_.name.str(), "there is nothing after --");
  for (const std::string& a : argv_)
    if (!valid_utf8(a)) return make_error(Errc::INVALID, "an argument is not UTF-8", printable(a), "quote or rename it");
  H5I_TRY(check_tool(profile, argv_[0]));
  cwd_ = H5I_TRY(cwd_below(box_.paths.work(), options_.cwd));
  exec_ = exec_candidates(argv_[0], env.values["PATH"], cwd_);
  if (exec_.empty())
    return make_error(Errc::EXEC_NOT_FOUND, "there is no program " + printable(argv_[0]), "PATH names no folder by an absolute path: " + printable(env.values["PATH"]));
  env.values["H5I_BOX"] = manifest_.name.str();
  env.values["H5I_SESSION"] = session_.value;
  env.values["H5I_SPOOL"] = box_.paths.spool();
  env_ = std::move(env);
  return {};
}

// The view of a box shows these folders by name. They were no links when the box was made; one that is now would show it the
// objects of whatever repository it leads to.
Result<void> OneRun::check_objects() {
  for (const std::string& objects : manifest_.object_dirs) {
    auto fd = os::open_no_links(objects, O_PATH | O_DIRECTORY);
    if (!fd && fd.error().code == Errc::PATH_ESCAPE)
      return make_error(Errc::GIT_REDIRECTED, "objects that the box was made of lie behind a symbolic link now", printable(objects), "replace the link by what it leads to");
  }
  return {};
}

std::vector<std::string> OneRun::redacted_argv() {
  std::vector<std::string> out;
  for (const std::string& a : argv_) out.push_back(evidence::redact(a, &redactions_));
  return out;
}

Result<void> OneRun::start_host_process() {
  plugin::HostEvents events;
  events.evidence = [this](const std::string& boundary, const std::string& kind, const Json& body) {
    if (kind == "unobserved") unobserved_.push(body);
    auto r = record(kind, body, Observer::plugin(plugin_.id, plugin_.digest), evidence::boundary_from(boundary));
    if (!r && !record_error_) record_error_ = r.error();
  };
  host_.emplace(H5I_TRY(start_host(std::move(events), prefix_)));
  return {};
}

Result<void> OneRun::load_plugin() {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  auto registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  plugin_ = H5I_TRY(registry.find_tier(manifest_.tier));
  self_ = H5I_TRY(read_process(getpid(), false));
  host_->bound(deadline_ns_, signals_->fd());
  H5I_TRY(load_tier(*host_, plugin_));
  H5I_TRY(record("plugin", json::Object{{"id", plugin_.id},
                                        {"version", plugin_.version},
                                        {"digest", plugin_.digest.value},
                                        {"trust", plugin::trust_name(plugin_.trust)}}));
  spawner_ = {"spawner", host_->spawner_pid(), process_start(host_->spawner_pid())};
  return write_live_record();
}

Json OneRun::request(bool with_command) {
  RequestInput in;
  in.session = session_;
  in.manifest = &manifest_;
  in.paths = &box_.paths;
  in.policy = &policy_;
  in.dirs = &dirs_;
  in.prefix = prefix_;
  in.uid = getuid();
  in.gid = getgid();
  in.env = env_.values;
  in.hidden = hidden_;
  in.network = &egress_.network;
  in.probe = &probe_;
  if (with_command) {
    RequestInput::Command c;
    c.argv = argv_;
    c.exec = exec_;
    c.cwd = cwd_;
    c.tty = options_.shell;
    c.readonly = options_.readonly;
    in.command = std::move(c);
  }
  return run_request(in);
}

std::string OneRun::effective_form(const Json& plan, const Json& request) const {
  spawn::Names names;
  names.values = session_names(request);
  if (getuid() == 0 && manifest_.host_uid != 0) {
    names.box_uid = manifest_.host_uid;
    names.box_gid = manifest_.host_gid;
  }
  return json::canonical(spawn::effective_form_of(plan, names));
}

Result<void> OneRun::make_plan() {
  if (takes_egress(plugin_.manifest["claims"])) egress_ = H5I_TRY(egress_now(policy_["profile"], dirs_));
  request_ = request(true);
  plan_ = H5I_TRY(host_->plan(request_));
  plan_digest_ = H5I_TRY(spawn::decode_parsed_plan(plan_)).digest;
  std::string form = effective_form(plan_, request_);
  effective_ = EffectiveDigest(sha256_hex(form));
  evidence::BlobRef blob = H5I_TRY(evidence::put_blob(box_.paths.blobs(), form));
  for (const std::string& line : unfounded_claims(plan_, strings(plugin_.manifest["claims"]), policy_))
    return make_error(Errc::TIER_OVERCLAIM, "tier " + plugin_.id + " claims what its plan does not hold", line);
  for (const std::string& line : departures(plan_, request_, strings(plugin_.manifest["claims"])))
    return make_error(Errc::TIER_OVERCLAIM, "the plan of tier " + plugin_.id + " is not what was asked for", printable(line));
  H5I_TRY(record("plan", json::Object{{"effective_digest", effective_.value},
                                      {"not_enforced", plan_["not_enforced"]},
                                      {"blob", blob.sha256}}));
  return {};
}

// Before anything makes them: a run that is killed must leave nothing in the work tree that nobody knows of.
Result<void> OneRun::record_placeholders() {
  bool more = false;
  absent_ = names_to_be_made(plan_, box_.paths.work());
  absent_outside_ = names_to_be_made_outside(plan_, box_.paths.work());
  if (!absent_outside_.empty() || !groups().empty()) H5I_TRY(write_live_record());
  for (const std::string& name : absent_) {
    auto& known = manifest_.placeholders;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    known.push_back(name);
    more = true;
  }
  return more ? save_manifest(box_.paths, manifest_) : Result<void>();
}

// What this host could enforce, or the answer from this boot.
Result<void> OneRun::probe() {
  ResultCache cache(proofs());
  Json key = ProbeKey{plugin_.digest.value, boot_id(), getuid()}.to_json();
  if (auto known = cache.get("probe", key); known && check_probe(*known, plugin_) && (*known)["available"].boolean()) {
    probe_ = std::move(*known);
    probe_cached_ = true;
    return {};
  }
  probe_ = H5I_TRY(host_->probe());
  H5I_TRY(check_probe(probe_, plugin_));
  if (!probe_["available"].boolean()) return make_error(Errc::TIER_PROBE_MISSING, "tier " + plugin_.id + " is impossible here", "missing " + missing_of(probe_));
  cache.put("probe", key, probe_);
  return {};
}

// Where the tier could not set up a box although it could when this boot's answer was kept: what is missing now. Empty: nothing, or nobody says.
std::string OneRun::missing_now() {
  if (!probe_cached_) return "";
  auto now = probe_tier(plugin_, prefix_);
  if (!now || (*now)["available"].boolean()) return "";
  ResultCache(proofs()).put("probe", ProbeKey{plugin_.digest.value, boot_id(), getuid()}.to_json(), *now);
  return missing_of(*now);
}

Error OneRun::with_missing(Error e) {
  const Errc of_setup[] = {Errc::TIER_SETUP, Errc::TIER_PROBE_MISSING, Errc::TIER_VERIFY_FAILED, Errc::TIER_NO_CONTROL, Errc::UNSUPPORTED};
  if (std::find(std::begin(of_setup), std::end(of_setup), e.code) == std::end(of_setup)) return e;
  std::string missing = missing_now();
  if (missing.empty()) return e;
  return make_error(Errc::TIER_PROBE_MISSING, "tier " + plugin_.id + " is impossible here", "missing " + missing + " (" + e.what + ": " + e.evidence + ")");
}

// verify_exec under this policy, or its result from this boot.
Result<void> OneRun::prove() {
  ResultCache cache(proofs());
  Json key = VerifyKey{effective_.value, plugin_.digest.value, boot_id(), canonical_digest(probe_), getuid()}.to_json();
  auto verify = cache.get("verify", key);
  if (verify && !check_verify(*verify, plugin_.id)) verify.reset();
  proof_cached_ = verify.has_value();
  if (!verify) {
    auto proved = host_->verify_exec(request(false));
    if (!proved) {
      remove_proof_files(box_.paths);  // the tier does, unless it was killed over it
      return std::move(proved).error();
    }
    verify = std::move(*proved);
    H5I_TRY(check_verify(*verify, plugin_.id));
    cache.put("verify", key, *verify);
  }
  proof_digest_ = canonical_digest(*verify);
  return {};
}

}  // namespace h5i::session
