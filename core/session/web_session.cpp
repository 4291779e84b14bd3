#include "core/session/web_session.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/base/text.hpp"
#include "core/evidence/files.hpp"
#include "core/evidence/seal.hpp"
#include "core/os/beneath.hpp"
#include "core/os/fs.hpp"
#include "core/plugin/client.hpp"
#include "core/session/engine_lines.hpp"
#include "core/session/placement.hpp"
#include "core/session/probe.hpp"

namespace h5i::session {
namespace {

constexpr size_t kManifestLimit = 4u << 20;
constexpr const char* kManifest = "session.json";
constexpr const char* kLock = "lock";
constexpr const char* kPayloads = "blobs";  // with the log all that an engine writes
constexpr const char* kState = "state";     // and what it keeps for itself: jars
// There while an engine is at work, and holds the number of the line that began it: who finds it and has the lock knows that one was killed.
constexpr const char* kServing = "serving";

std::string folder_of(const UserDirs& dirs) { return dirs.state + "/websec"; }

Result<Json> load_manifest_of(const std::string& dir) {
  UniqueFd fd = H5I_TRY(os::open_directory(dir));
  std::string text = H5I_TRY(os::read_file_beneath(fd, kManifest, kManifestLimit));
  Json m = H5I_TRY(parse_json(text, "the session's manifest", kManifestLimit));
  if (m["schema"].string() != "h5i.websec-session/1" || !m["name"].is_string() || !m["expires_ns"].is_int())
    return make_error(Errc::CORRUPT, "not a session's manifest", printable(dir));
  return m;
}

Result<void> save_manifest_of(const WebSession& s) {
  return evidence::replace_file(s.dir + "/" + kManifest, json::canonical(s.manifest) + "\n", 0600);
}

Result<evidence::Head> record(const WebSession& s, std::string kind, Json body) {
  evidence::Log log = H5I_TRY(evidence::Log::open(s.log()));
  evidence::Record r;
  r.kind = std::move(kind);
  r.body = std::move(body);
  return log.append(r);
}

// The first record holds the manifest as it was when the session was opened; only the mark of its end comes later.
Result<void> check_against_log(const WebSession& s) {
  Json opened;
  H5I_TRY(evidence::read_log(s.log(), [&](uint64_t, const Json& r) {
    if (r["kind"].string() == "websec-opened") opened = r["body"];
    return false;
  }));
  Json now = s.manifest;
  now.make_object().erase("closed");
  if (opened == now || json::canonical(opened) == json::canonical(now)) return {};
  return make_error(Errc::CORRUPT, "the session " + s.name + " is not what its log says that was opened", printable(s.dir + "/" + kManifest) + " was changed", "h5i log show " + s.log());
}

// flock(2) on a file that is made with the session: nothing is written for it, and the kernel gives it back however its holder dies. The folder
// itself is locked by whoever signs the log.
class SessionLock {
 public:
  static Result<SessionLock> take(const WebSession& s) {
    UniqueFd dir = H5I_TRY(os::open_directory(s.dir));
    SessionLock out;
    out.fd_ = H5I_TRY(os::open_beneath(dir, kLock, O_RDONLY | O_NONBLOCK));
    while (::flock(out.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return make_error(Errc::BUSY, "the session " + s.name + " is in use", "another h5i has its lock");
      return sys_error("lock " + printable(s.dir));
    }
    struct stat st {};
    if (::fstat(out.fd_.get(), &st) != 0 || st.st_nlink == 0) return make_error(Errc::NOT_FOUND, "the session " + s.name + " was removed meanwhile");
    return out;
  }

 private:
  UniqueFd fd_;
};

// The line that began the act which is at work now. Nobody is asked to wait for this, nor kept from a lock by it: the kernel lists who has one.
std::optional<uint64_t> at_work_since(const UniqueFd& folder) {
  auto mark = os::open_beneath(folder, kServing, O_RDONLY | O_NONBLOCK);
  struct stat lock {};
  if (!mark || ::fstatat(folder.get(), kLock, &lock, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  auto since = os::read_fd(mark->get(), 32, kServing);
  auto locks = os::read_file("/proc/locks", 4u << 20);
  if (!since || !locks || since->empty() || since->find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const std::string file = ":" + std::to_string(lock.st_ino) + " ";
  for (size_t at = 0; at < locks->size();) {
    const size_t end = std::min(locks->find('\n', at), locks->size());
    const std::string_view line = std::string_view(*locks).substr(at, end - at);
    if (line.find("FLOCK") != std::string_view::npos && line.find("->") == std::string_view::npos && line.find(file) != std::string_view::npos) return std::stoull(*since);
    at = end + 1;
  }
  return std::nullopt;  // whoever made it was killed
}

Json plugin_facts(const plugin::PluginInfo& p) {
  return json::Object{{"id", p.id}, {"version", p.version}, {"digest", p.digest.value}, {"trust", plugin::trust_name(p.trust)}};
}

enum class Right { LOOK, WRITE };  // of an engine, in the folder that it is given

// `placed`: the wire is in a box, and this half has no socket but the channel to the other.
Result<plugin::HostProcess> start_engine(const plugin::PluginInfo& engine, const UniqueFd& folder, Right right, plugin::HostEvents events = {}, bool placed = false, const UniqueFd& channel = {}) {
  UniqueFd program = H5I_TRY(plugin::open_helper(plugin::install_prefix(), "libexec/h5i/h5i-engine"));
  plugin::VerifiedLibrary library = H5I_TRY(plugin::open_verified(engine, geteuid()));
  plugin::HostProcess host = H5I_TRY(plugin::HostProcess::start_engine(program, folder, std::move(events), channel));
  plugin::LoadSpec spec;
  spec.library = &library.fd;
  spec.id = engine.id;
  spec.version = engine.version;
  spec.digest = library.digest;
  spec.kind = "websec";
  spec.session = folder.get() >= 0;
  spec.writes = right == Right::WRITE;
  spec.network = !placed;
  for (const Json& s : engine.manifest["host_services"].array()) spec.services.push_back(s.string());
  H5I_TRY(host.load(spec));
  return host;
}

Result<WebAnswer> serve(const plugin::PluginInfo& engine, const UniqueFd& folder, Right right, Json request, const WebAct& act, UniqueFd channel = {}) {
  plugin::HostEvents events;
  events.log = [&](int, const std::string& text) {
    if (act.progress) act.progress(text);
  };
  plugin::HostProcess host = H5I_TRY(start_engine(engine, folder, right, std::move(events), is_placed(std::as_const(request)["session"]), channel));
  if (channel) request["channel"] = plugin::kEngineChannelFd;
  channel.reset();
  auto answer = H5I_TRY(host.act(request, act.timeout_ms));
  if (host.run_error()) {
    Error e = *host.run_error();
    e.what = "the engine refused in " + act.act;
    return e;
  }
  host.shutdown();
  return WebAnswer{std::move(answer.document), answer.outcome.code};
}

// What the engine shows of itself before anything is entrusted to it, in a scratch session of its own; nothing of that stays.
Result<Json> prove_engine(const plugin::PluginInfo& engine, const std::string& scratch) {
  WebSession s{"", scratch, {}};
  H5I_TRY(make_private_directory(s.dir));
  auto verify = [&]() -> Result<Json> {
    H5I_TRY(record(s, "websec-opened", json::Object{}));
    UniqueFd folder = H5I_TRY(os::open_directory(s.dir));
    plugin::HostProcess host = H5I_TRY(start_engine(engine, folder, Right::WRITE));
    Json verified = H5I_TRY(host.verify_exec(json::Object{{"schema", "h5i.websec-run/1"}}));
    H5I_TRY(check_verify(verified, engine.id));
    host.shutdown();
    return verified;
  }();
  (void)::unlink(s.log().c_str());
  (void)::rmdir(s.dir.c_str());
  return verify;
}

// Without a lock of ours: until it is another program, who signs has all of our descriptors.
void seal(const WebSession& session) {
  auto helper = plugin::open_helper(plugin::install_prefix(), "libexec/h5i/h5i-evidence");
  if (helper) (void)evidence::start_sealing("/proc/self/fd/" + std::to_string(helper->get()), session.log());
}

// What a killed engine left: the log says so before anything new is in it.
Result<void> record_the_dead(const WebSession& session) {
  UniqueFd folder = H5I_TRY(os::open_directory(session.dir));
  if (::faccessat(folder.get(), kServing, F_OK, AT_SYMLINK_NOFOLLOW) != 0) return {};
  H5I_TRY(record(session, "engine-died", json::Object{}));
  if (::unlinkat(folder.get(), kServing, 0) != 0) return sys_error("remove what a killed engine left");
  return {};
}

// What an `open` that was killed left of its scratch session, once nobody can be at it any more.
void sweep_scratch(const std::string& folder) {
  constexpr time_t kLongDead = 600;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    struct stat st {};
    if ((name.starts_with(".proof-") || name.starts_with(".new-")) && ::lstat(entry.path().c_str(), &st) == 0 && S_ISDIR(st.st_mode) && ::time(nullptr) - st.st_mtime > kLongDead)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

Json request_of(const WebAct& act) { return json::Object{{"schema", "h5i.websec-run/1"}, {"act", act.act}, {"words", act.words}}; }

}  // namespace

std::string_view web_state_name(WebState s) { return s == WebState::LIVE ? "live" : s == WebState::CLOSED ? "closed" : "expired"; }

WebState WebSession::state(int64_t realtime_ns) const {
  if (manifest["closed"].is_string()) return WebState::CLOSED;
  return realtime_ns >= manifest["expires_ns"].integer() ? WebState::EXPIRED : WebState::LIVE;
}

bool valid_web_name(std::string_view name) { return valid_slug(name, false); }

Result<plugin::PluginInfo> find_engine() {
  plugin::Settings settings = H5I_TRY(plugin::Settings::of_this_process());
  auto registry = H5I_TRY(plugin::Registry::scan(std::move(settings)));
  const plugin::PluginInfo* refused = nullptr;
  for (const plugin::PluginInfo& p : registry.plugins()) {
    if (p.kind != "websec" || p.id != "http") continue;
    if (!p.refused) return p;
    refused = &p;
  }
  if (refused) return *refused->refused;
  return make_error(Errc::NOT_FOUND, "the web engine is not installed", "no websec plugin with the id http", "install the package h5i-websec-http");
}

Result<WebSession> open_web_session(const UserDirs& dirs, const plugin::PluginInfo& engine, const WebOpen& open) {
  if (!valid_web_name(open.name)) return make_error(Errc::INVALID, "not a session's name: " + printable(open.name), "[a-z0-9][a-z0-9._-]{0,63}");
  H5I_TRY(make_private_directory(folder_of(dirs)));
  sweep_scratch(folder_of(dirs));
  SessionId id = H5I_TRY(new_session_id());
  Json proof = H5I_TRY(prove_engine(engine, folder_of(dirs) + "/.proof-" + id.value));
  Json placement = not_placed();
  if (open.box) {
    placement = H5I_TRY(placement_in(*open.box));
    // What is not seen to start is not said to be there.
    EngineInBox trial = H5I_TRY(EngineInBox::start(*open.box, engine));
    placement["trial"] = H5I_TRY(trial.finish())["receipt"];
  }
  WebSession s{open.name, folder_of(dirs) + "/.new-" + id.value, {}};
  H5I_TRY(make_private_directory(s.dir));
  const int64_t now = realtime_ns();
  s.manifest = json::Object{{"schema", "h5i.websec-session/1"},
                            {"id", id.value},
                            {"name", open.name},
                            {"created", rfc3339(now)},
                            {"expires", rfc3339(now + open.lifetime_s * 1'000'000'000)},
                            {"expires_ns", now + open.lifetime_s * 1'000'000'000},
                            {"scope", open.scope},
                            {"options", open.options},
                            {"engine", plugin_facts(engine)},
                            {"placement", std::move(placement)},
                            {"proved", proof["dimensions"]}};
  auto written = record(s, "websec-opened", s.manifest);
  auto saved = written ? evidence::create_file(s.dir + "/" + kLock, "", 0600) : Result<void>(written.error());
  for (const char* folder : {kPayloads, kState})
    if (saved && ::mkdir((s.dir + "/" + folder).c_str(), 0700) != 0) saved = sys_error("make a folder of the session");
  if (saved) saved = save_manifest_of(s);
  const std::string name = folder_of(dirs) + "/" + open.name;
  // A folder that holds something is in the way of a rename: of two that open one name, one wins.
  if (saved && ::rename(s.dir.c_str(), name.c_str()) != 0)
    saved = errno == ENOTEMPTY || errno == EEXIST ? Result<void>(make_error(Errc::EXISTS, "there is a session " + open.name + " already", printable(name), "h5i websec close " + open.name + ", or another name"))
                                                  : Result<void>(sys_error("name the session's folder"));
  if (!saved) {
    for (const char* file : {"log.jsonl", kLock, kManifest}) (void)::unlink((s.dir + "/" + file).c_str());
    for (const char* folder : {kPayloads, kState}) (void)::rmdir((s.dir + "/" + folder).c_str());
    (void)::rmdir(s.dir.c_str());
    return saved.error();
  }
  s.dir = name;
  seal(s);
  return s;
}

Result<WebSession> find_web_session(const UserDirs& dirs, const std::string& name) {
  if (!valid_web_name(name)) return make_error(Errc::INVALID, "not a session's name: " + printable(name), "[a-z0-9][a-z0-9._-]{0,63}");
  WebSession s{name, folder_of(dirs) + "/" + name, {}};
  auto manifest = load_manifest_of(s.dir);
  if (!manifest && manifest.error().code == Errc::NOT_FOUND) return make_error(Errc::NOT_FOUND, "there is no session " + name, printable(s.dir), "h5i websec ls");
  s.manifest = H5I_TRY(std::move(manifest));
  return s;
}

std::vector<WebSession> list_web_sessions(const UserDirs& dirs) {
  std::vector<WebSession> out;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder_of(dirs).c_str()), ::closedir);
  while (dirent* e = dir ? ::readdir(dir.get()) : nullptr) {
    if (!valid_web_name(e->d_name)) continue;
    if (auto s = find_web_session(dirs, e->d_name)) out.push_back(std::move(*s));
  }
  std::sort(out.begin(), out.end(), [](const WebSession& a, const WebSession& b) { return a.name < b.name; });
  return out;
}

namespace {

Result<bool> close_locked(WebSession& session) {
  SessionLock lock = H5I_TRY(SessionLock::take(session));
  session.manifest = H5I_TRY(load_manifest_of(session.dir));
  if (session.manifest["closed"].is_string()) return false;
  H5I_TRY(record_the_dead(session));
  const std::string now = rfc3339(realtime_ns());
  const Json before = session.manifest;
  session.manifest["closed"] = now;
  H5I_TRY(save_manifest_of(session));
  if (auto told = record(session, "websec-closed", json::Object{{"at", now}}); !told) {
    session.manifest = before;
    (void)save_manifest_of(session);
    return told.error();
  }
  return true;
}

}  // namespace

Result<bool> close_web_session(WebSession& session) {
  auto closed = close_locked(session);
  if (closed && *closed) seal(session);
  return closed;
}

Result<WebAnswer> look_at_session(const WebSession& session, const WebAct& act) {
  H5I_TRY(check_against_log(session));
  plugin::PluginInfo engine = H5I_TRY(find_engine());
  UniqueFd folder = H5I_TRY(os::open_directory(session.dir));
  Json request = request_of(act);
  request["session"] = session.manifest;
  if (auto since = at_work_since(folder)) request["session"]["at_work_since"] = *since;
  WebAnswer answer = H5I_TRY(serve(engine, folder, Right::LOOK, request, act));
  answer.document["placement"] = placement_text(session.manifest);
  return answer;
}

namespace {

// Those that send; every other act needs no wire.
bool sends(const std::string& act) { return act == "send" || act == "replay" || act == "experiment" || act == "sequence"; }

// The session is over: nothing may be sent elsewhere than where it said that it would.
Error end_over_its_box(WebSession& session, Error why) {
  session.manifest["closed"] = rfc3339(realtime_ns());
  if (auto saved = save_manifest_of(session); !saved) return saved.error();
  (void)record(session, "websec-closed", json::Object{{"at", session.manifest["closed"]}, {"why", why.what + ": " + why.evidence}});
  return why;
}

// What the host saw of the box while it had the wire, and what the box said and may not: its own claim, in its own lane.
Result<void> record_the_box(const WebSession& session, const WebAct& act, Result<Json>& ran, Result<WebAnswer>& answer) {
  Json body = json::Object{{"act", act.act}, {"box", session.manifest["placement"]["box"]}, {"tier", session.manifest["placement"]["tier"]}};
  if (ran) {
    for (const char* part : {"run", "receipt", "status", "outcome", "network"}) body[part] = (*ran)[part];
  } else {
    body["lost"] = ran.error().what + ": " + ran.error().evidence;
  }
  evidence::Record seen;
  seen.kind = "box-run";
  seen.boundary = evidence::Boundary::NET;
  seen.body = body;
  evidence::Log log = H5I_TRY(evidence::Log::open(session.log()));
  H5I_TRY(log.append(seen));
  if (!answer) return {};
  Json& document = answer->document;
  const Json forged = std::as_const(document)["forged"];
  for (const Json& f : forged.array()) {
    evidence::Record claimed;
    claimed.observer = evidence::Observer::box();
    claimed.boundary = evidence::Boundary::NET;
    claimed.kind = "box-claimed";
    claimed.body = f;
    H5I_TRY(log.append(claimed));
  }
  if (!forged.array().empty()) answer->code = 2;
  document["box"] = json::Object{{"run", body["run"]}, {"receipt", body["receipt"]}};
  for (const Json& r : body["network"]["refused"].array())
    document["lines"].push("  host-observed: the rules of the box refused " + printable(r["to"].string()) + ", " + std::to_string(r["packets"].integer()) + " packets");
  return {};
}

Result<WebAnswer> act_alone_in(WebSession& session, const WebAct& act) {
  SessionLock lock = H5I_TRY(SessionLock::take(session));
  session.manifest = H5I_TRY(load_manifest_of(session.dir));
  H5I_TRY(check_against_log(session));
  if (const WebState state = session.state(realtime_ns()); state != WebState::LIVE)
    return make_error(Errc::CANCELLED, "the session " + session.name + " has ended", state == WebState::CLOSED ? "closed at " + session.manifest["closed"].string() : "expired at " + session.manifest["expires"].string(),
                      "h5i websec open another");
  plugin::PluginInfo engine = H5I_TRY(find_engine());
  UniqueFd folder = H5I_TRY(os::open_directory(session.dir));
  H5I_TRY(record_the_dead(session));
  std::optional<EngineInBox> in_box;
  if (is_placed(session.manifest) && sends(act.act)) {
    auto box = box_of(std::as_const(session.manifest)["placement"]);
    if (!box && box.error().code == Errc::CANCELLED) return end_over_its_box(session, box.error());
    auto started = box ? EngineInBox::start(*box, engine) : Result<EngineInBox>(box.error());
    if (!started) {
      H5I_TRY(record(session, "box-refused", json::Object{{"act", act.act}, {"id", started.error().id()}, {"text", printable(started.error().what + ": " + started.error().evidence)}}));
      return started.error();
    }
    in_box.emplace(std::move(*started));
  }
  const evidence::Head head = H5I_TRY(record(session, "act", json::Object{{"act", act.act}, {"engine", plugin_facts(engine)}, {"uid", static_cast<int64_t>(getuid())}, {"placement", placement_text(session.manifest)}}));
  struct stat log {};
  if (::fstatat(folder.get(), "log.jsonl", &log, AT_SYMLINK_NOFOLLOW) != 0) return sys_error("stat of the session's log");
  UniqueFd mark(::openat(folder.get(), kServing, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!mark) return sys_error("mark that an act goes on");
  (void)os::write_all(mark.get(), std::to_string(head.count));  // on a full disk it is empty, and then nobody is told since when
  mark.reset();
  Json request = request_of(act);
  request["session"] = session.manifest;
  auto answer = serve(engine, folder, Right::WRITE, request, act, in_box ? in_box->take_channel() : UniqueFd());
  std::optional<Result<Json>> ran;
  if (in_box) ran.emplace(in_box->finish());
  const bool died = !answer && (answer.error().code == Errc::PLUGIN_CRASHED || answer.error().code == Errc::PLUGIN_HUNG);
  if (!died && ::unlinkat(folder.get(), kServing, 0) != 0) return sys_error("end an act");
  // A session whose engine wrote in another's name, or over what was there, is over. The record of it is the log's last.
  if (auto own = check_engine_lines(session.log(), head, static_cast<uint64_t>(log.st_size), engine.id + "@" + engine.digest.value); !own) {
    session.manifest["closed"] = rfc3339(realtime_ns());
    H5I_TRY(save_manifest_of(session));
    (void)record(session, "engine-forged", json::Object{{"found", own.error().evidence}});
    return own.error();
  }
  if (ran) H5I_TRY(record_the_box(session, act, *ran, answer));
  if (answer) answer->document["placement"] = placement_text(session.manifest);
  return answer;
}

}  // namespace

Result<WebAnswer> act_in_session(WebSession& session, const WebAct& act) {
  auto answer = act_alone_in(session, act);
  seal(session);
  return answer;
}

Result<WebAnswer> act_alone(const plugin::PluginInfo& engine, const WebAct& act) { return serve(engine, UniqueFd(), Right::LOOK, request_of(act), act); }

}  // namespace h5i::session
