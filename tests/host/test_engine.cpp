// h5i-engine with a websec plugin that tries what an engine may not do: the confinement, the session's log, and what is refused without one.
#include <sys/resource.h>

#include <fstream>

#include "core/base/sha256.hpp"
#include "core/evidence/log.hpp"
#include "core/os/landlock.hpp"
#include "core/plugin/client.hpp"
#include "tests/host/engine_fixture/acts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_test.hpp"
#include "tests/support/text_file.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string build_dir() { return getenv("H5I_BUILD_DIR") ? getenv("H5I_BUILD_DIR") : "."; }

struct Engine {
  std::optional<plugin::HostProcess> process;
  std::string digest;
  std::string error;
};

// `folder`: of a session whose log has a first record; empty: none is served.
Engine engine(const std::string& folder, const char* kind = "websec", rlim_t largest_file = RLIM_INFINITY, bool writes = true, bool network = true) {
  Engine out;
  std::string bytes = read_file(build_dir() + "/tests/host/plugins/websec-fixture.so");
  auto library = plugin::sealed_memfd("fixture", bytes);
  auto program = plugin::open_helper(build_dir() + "/out", "libexec/h5i/h5i-engine");
  UniqueFd session(folder.empty() ? -1 : open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto started = program && library ? plugin::HostProcess::start_engine(*program, session) : Result<plugin::HostProcess>(make_error(Errc::NOT_FOUND, "no engine"));
  if (!started) {
    out.error = started.error().what + started.error().evidence;
    return out;
  }
  const rlimit limit{largest_file, largest_file};
  if (largest_file != RLIM_INFINITY && prlimit(started->pid(), RLIMIT_FSIZE, &limit, nullptr) != 0) return out;
  out.digest = sha256_hex(bytes);
  plugin::LoadSpec spec;
  spec.library = &*library;
  spec.id = "fixture.engine";
  spec.version = "1.0.0";
  spec.digest = PluginDigest(out.digest);
  spec.services = {"h5i.host.log/1", "h5i.host.clock/1", "h5i.host.session/1", "h5i.host.spawn/1", "h5i.host.cgroup/1"};
  spec.kind = kind;
  spec.session = !folder.empty();
  spec.writes = writes;
  spec.network = network;
  if (auto loaded = started->load(spec); !loaded) {
    out.error = loaded.error().what + ": " + loaded.error().evidence;
    return out;
  }
  out.process.emplace(std::move(*started));
  return out;
}

std::string session_in(const std::string& dir) {
  std::string folder = dir + "/session";
  if (mkdir(folder.c_str(), 0700) != 0 || mkdir((folder + "/blobs").c_str(), 0700) != 0) return {};
  auto log = evidence::Log::open(folder + "/log.jsonl");
  evidence::Record opened;
  opened.kind = "websec-opened";
  return log && log->append(opened) ? folder : std::string();
}

Json asked(const std::string& act, Json words) { return json::Object{{"schema", "h5i.websec-run/1"}, {"act", act}, {"words", std::move(words)}}; }

void fill(const std::string& folder) {
  mkdir(folder.c_str(), 0700);
  for (const char* name : {"/file", "/gone"}) std::ofstream(folder + name) << "theirs";
}

}  // namespace

KERNEL_TEST("an engine runs nothing, reads and writes nothing but its session, and has internet sockets only", "[engine]") {
  const std::string folder = session_in(k.dir()), theirs = k.dir() + "/theirs", ours = k.dir() + "/ours", others = k.dir() + "/others";
  fill(theirs);
  fill(others);
  KREQUIRE(mkdir(ours.c_str(), 0700) == 0);
  Engine e = engine(folder);
  KCHECK_SAYS(e.process, e.error);
  KREQUIRE(e.process);
  auto answer = e.process->act(asked("try", json::Object{{"theirs", theirs}}), 30000);
  KCHECK_SAYS(answer, answer ? "" : answer.error().what + answer.error().evidence);
  KREQUIRE(answer);
  const std::map<std::string, std::string> refused = {
      {"fork", "EPERM"},         {"exec", "EPERM"},          {"read-theirs", "EACCES"},       {"list-theirs", "EACCES"}, {"write-theirs", "EACCES"}, {"remove-theirs", "EACCES"},
      {"read-passwd", "EACCES"}, {"read-proc", "EACCES"},    {"unix-stream", "EAFNOSUPPORT"}, {"unix-pair", "EPERM"},    {"vsock", "EAFNOSUPPORT"},  {"netlink-netfilter", "EAFNOSUPPORT"},
      {"trace", "EPERM"},        {"unshare", "EPERM"},       {"write-ours", "EACCES"}};  // manifest, lock and marks are the core's
  // What an engine needs.
  const char* granted[] = {"thread", "read-certificates", "inet-stream", "inet6-datagram", "netlink-route"};
  for (const auto& [act, err] : refused) KCHECK_SAYS(answer->document[act].string() == err, act + " " + answer->document[act].string());
  for (const char* act : granted) KCHECK_SAYS(answer->document[act].string() == "done", act + (" " + answer->document[act].string()));
  const bool scoped = os::landlock::abi() >= 6;
  KCHECK_SAYS((answer->document["signal-parent"].string() == "EPERM") == scoped, answer->document["signal-parent"].string());
  KCHECK(access((folder + "/new").c_str(), F_OK) != 0 && access((theirs + "/gone").c_str(), F_OK) == 0);
  // The control: outside, the same tries succeed, all of them (vsock where the kernel has it).
  for (auto& [act, attempt] : fixture::acts(ours, others)) {
    if (act == "trace" || act == "unshare") continue;  // of this process; in a child they are "traced" and "user-namespace"
    if (act == "signal-parent" && !k.root()) continue;  // the test's parent is root then; the engine's is its own user
    std::string said = attempt();
    KCHECK_SAYS(said == "done" || (act == "vsock" && said == "EAFNOSUPPORT"), "control: " + act + " " + said);
  }
}

KERNEL_TEST("an engine whose wire is in a box makes no socket itself", "[engine]") {
  const std::string folder = session_in(k.dir()), theirs = k.dir() + "/theirs";
  fill(theirs);
  Engine e = engine(folder, "websec", RLIM_INFINITY, true, false);
  KCHECK_SAYS(e.process, e.error);
  KREQUIRE(e.process);
  auto answer = e.process->act(asked("try", json::Object{{"theirs", theirs}}), 30000);
  KREQUIRE(answer);
  for (const char* act : {"inet-stream", "inet6-datagram", "netlink-route", "unix-stream", "unix-pair", "vsock", "netlink-netfilter", "fork", "exec"})
    KCHECK_SAYS(answer->document[act].string() == "EPERM", act + (" " + answer->document[act].string()));
  for (const char* act : {"thread", "read-certificates"}) KCHECK_SAYS(answer->document[act].string() == "done", act + (" " + answer->document[act].string()));
  // The control: an engine with its own wire makes them (the test above).
}

KERNEL_TEST("what an engine says is in the log as the engine's, whatever it calls itself", "[engine]") {
  const std::string folder = session_in(k.dir());
  Engine e = engine(folder);
  KREQUIRE(e.process);
  Json forged = json::Object{{"lane", "host-observed"}, {"observer", "core"}, {"seq", 0}, {"url", "http://x.test/"}};
  auto answer = e.process->act(asked("append", json::Object{{"kind", "send"}, {"body", forged}}), 30000);
  KREQUIRE(answer && answer->outcome.code == 1 && answer->document["seq"].integer() == 1);
  std::vector<Json> records;
  KCHECK(evidence::read_log(folder + "/log.jsonl", [&](uint64_t, const Json& r) {
    records.push_back(r);
    return true;
  }));
  KREQUIRE(records.size() == 2);
  KCHECK(records[1]["lane"].string() == "engine-claimed" && records[1]["observer"].string() == "fixture.engine@" + e.digest && records[1]["boundary"].string() == "NET");
  KCHECK(records[1]["kind"].string() == "send" && records[1]["body"] == forged);
  KCHECK(evidence::verify_chain(folder + "/log.jsonl"));
  for (const char* kind : {"", "Send", "a b", "x\n"}) {
    auto refused = e.process->act(asked("append", json::Object{{"kind", kind}, {"body", json::Object{}}}), 30000);
    KCHECK_SAYS(refused && e.process->run_error() && refused->document.is_null(), kind);
  }
  auto big = e.process->act(asked("append", json::Object{{"kind", "send"}, {"body", json::Object{{"x", std::string(300 << 10, 'x')}}}}), 30000);
  KCHECK(big && big->document.is_null());
  auto read = e.process->act(asked("read", json::Object{{"from", 1}}), 30000);
  KREQUIRE(read);
  KCHECK_SAYS(read->document["records"].array().size() == 1 && read->document["payload"].string() == "payload" && read->document["digest"].string() == sha256_hex("payload") &&
                  !read->document["absent"].boolean(true) && !read->document["too-long"].boolean(true),
              json::canonical(read->document));
}

KERNEL_TEST("an engine that only looks reads the log and adds nothing to it", "[engine]") {
  const std::string folder = session_in(k.dir());
  Engine e = engine(folder, "websec", RLIM_INFINITY, false);
  KREQUIRE(e.process);
  const std::string before = read_file(folder + "/log.jsonl");
  auto refused = e.process->act(asked("append", json::Object{{"kind", "send"}, {"body", json::Object{}}}), 30000);
  KCHECK(refused && e.process->run_error() && e.process->run_error()->code == Errc::LOG_WRITE);
  KCHECK(read_file(folder + "/log.jsonl") == before && !before.empty());
  // The control.
  Engine writes = engine(folder);
  KREQUIRE(writes.process);
  auto added = writes.process->act(asked("append", json::Object{{"kind", "send"}, {"body", json::Object{}}}), 30000);
  KCHECK(added && !writes.process->run_error() && read_file(folder + "/log.jsonl").size() > before.size());
}

KERNEL_TEST("lines of the log come as they stand in it, from where one begins", "[engine]") {
  const std::string folder = session_in(k.dir());
  Engine e = engine(folder);
  KREQUIRE(e.process);
  for (int i = 0; i < 4; i++) KREQUIRE(e.process->act(asked("append", json::Object{{"kind", "send"}, {"body", json::Object{{"i", i}}}}), 30000));
  const std::string log = read_file(folder + "/log.jsonl");
  std::ofstream(folder + "/log.jsonl", std::ios::app) << "{\"cut\":";
  std::vector<size_t> begins = {0};
  for (size_t at = log.find('\n'); at + 1 < log.size(); at = log.find('\n', at + 1)) begins.push_back(at + 1);
  KREQUIRE(begins.size() == 5);
  for (size_t from = 0; from < begins.size(); from++) {
    auto answer = e.process->act(asked("lines", json::Object{{"from", begins[from]}}), 30000);
    KREQUIRE(answer && !e.process->run_error());
    const auto& lines = answer->document["lines"].array();
    KREQUIRE(lines.size() == std::min<size_t>(3, begins.size() - from));  // what is cut is none
    for (size_t i = 0; i < lines.size(); i++) {
      const size_t at = begins[from + i];
      KCHECK(static_cast<size_t>(lines[i]["at"].integer()) == at && lines[i]["text"].string() == log.substr(at, log.find('\n', at) - at));
    }
  }
  auto end = e.process->act(asked("lines", json::Object{{"from", log.size()}}), 30000);
  KCHECK(end && !e.process->run_error() && end->document["lines"].array().empty());
  for (size_t wrong : {size_t{1}, begins[1] - 1, begins[1] + 1, log.size() + 1, log.size() + 100}) {
    auto refused = e.process->act(asked("lines", json::Object{{"from", wrong}}), 30000);
    KCHECK_SAYS(refused && e.process->run_error() && e.process->run_error()->code == Errc::INVALID, std::to_string(wrong));
  }
}

KERNEL_TEST("an engine that only looks keeps nothing but what the log can give again", "[engine]") {
  const std::string folder = session_in(k.dir());
  KREQUIRE(mkdir((folder + "/state").c_str(), 0700) == 0);
  Engine looks = engine(folder, "websec", RLIM_INFINITY, false);
  KREQUIRE(looks.process);
  auto tried = looks.process->act(asked("keep", json::Object{}), 30000);
  KREQUIRE(tried);
  const std::map<std::string, std::string> expected = {{"state/index/new", "done"}, {"remove", "done"}, {"state/new", "EACCES"}, {"blobs/new", "EACCES"}, {"new", "EACCES"}, {"link", "EACCES"}, {"folder", "EACCES"}};
  for (const auto& [what, said] : expected) KCHECK_SAYS(tried->document[what].string() == said, what + " " + tried->document[what].string());
  // The control: one that writes has its state and its payloads too.
  Engine writes = engine(folder);
  KREQUIRE(writes.process);
  auto control = writes.process->act(asked("keep", json::Object{}), 30000);
  KREQUIRE(control);
  for (const char* what : {"state/index/new", "remove", "state/new", "blobs/new", "folder"}) KCHECK_SAYS(control->document[what].string() == "done", what + (" " + control->document[what].string()));
  KCHECK(control->document["new"].string() == "EACCES" && control->document["link"].string() == "EACCES");
  // A link in the place of the folder leads nowhere.
  KREQUIRE(rmdir((folder + "/state/index/folder").c_str()) == 0 && rmdir((folder + "/state/index").c_str()) == 0 && symlink(k.dir().c_str(), (folder + "/state/index").c_str()) == 0);
  Engine linked = engine(folder, "websec", RLIM_INFINITY, false);
  KREQUIRE(linked.process);
  auto nowhere = linked.process->act(asked("keep", json::Object{}), 30000);
  KCHECK(nowhere && nowhere->document["state/index/new"].string() == "EACCES");
}

KERNEL_TEST("a log that takes no more is named, and what was written stays whole", "[engine]") {
  const std::string folder = session_in(k.dir());
  Engine e = engine(folder, "websec", 64 << 10);
  KREQUIRE(e.process);
  auto answer = e.process->act(asked("flood", json::Object{{"most", 1000}}), 30000);
  KREQUIRE(answer && e.process->run_error());
  KCHECK_SAYS(e.process->run_error()->code == Errc::LOG_WRITE && e.process->run_error()->evidence.find("log.jsonl") != std::string::npos, e.process->run_error()->evidence);
  auto verified = evidence::verify_chain(folder + "/log.jsonl");
  KCHECK(verified && verified->records > 10);
}

KERNEL_TEST("without a session nothing is recorded, an engine has no spawner, and a tier's process loads no engine", "[engine]") {
  Engine e = engine("");
  KCHECK_SAYS(e.process, e.error);
  KREQUIRE(e.process);
  auto refused = e.process->act(asked("append", json::Object{{"kind", "send"}, {"body", json::Object{}}}), 30000);
  KCHECK(refused && e.process->run_error() && e.process->run_error()->evidence.find("no session") != std::string::npos);
  auto probe = e.process->probe();
  KCHECK(probe && !(*probe)["spawn"].boolean(true));
  KCHECK(!e.process->plan(json::Object{}));
  Engine tier = engine("", "tier");
  KCHECK_SAYS(!tier.process && tier.error.find("serves plugins of kind websec") != std::string::npos, tier.error);
  // A folder without a log is no session.
  std::string empty = k.dir() + "/empty";
  KREQUIRE(mkdir(empty.c_str(), 0700) == 0);
  Engine none = engine(empty);
  KCHECK_SAYS(!none.process && none.error.find("the session has no log") != std::string::npos, none.error);
}
