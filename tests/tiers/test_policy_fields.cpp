// Every field of a policy, at both tiers: tried here, or seen in not_enforced. The list is at the end of this file.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>

#include "plugins/tier-workspace/plan.hpp"
#include "tests/support/text_file.hpp"
#include "tests/tiers/box.hpp"
#include "tests/tiers/not_enforced.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool exists(const std::string& path) {
  struct stat s;
  return lstat(path.c_str(), &s) == 0;
}

// A service on the host's loopback.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof a;
    if (bind(fd_, reinterpret_cast<sockaddr*>(&a), n) == 0 && listen(fd_, 4) == 0)
      getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &n);
    port = ntohs(a.sin_port);
  }
  ~Listener() { close(fd_); }
  unsigned port = 0;

 private:
  int fd_;
};

const char* kConnect =
    "python3 -c 'import socket,sys; socket.create_connection((\"127.0.0.1\",int(sys.argv[1])),2); print(\"did\")' ";

}  // namespace

KERNEL_TEST("a process box runs a shell, under its own id, in a root of its own", "[tiers]") {
  TierBox box(k);
  Outcome o = box.shell("id; ls /; pwd; hostname; ls -la /dev/null");
  KCHECK_SAYS(o.ok(), o.text());
  KCHECK_SAYS(o.output.find("uid=" + std::to_string(k.root() ? kBoxId : k.who().uid) + "(") == 0, o.output);
  KCHECK_SAYS(has(o.output, "\nusr\n") && !has(o.output, "\nsys\n") && has(o.output, "\n" + box.work() + "\n"),
              o.output);
}

KERNEL_TEST("fs.read: what is granted is there, what is not granted is not", "[tiers][fs.read]") {
  TierBox box(k);
  mkdir((k.dir() + "/shared").c_str(), 0755);
  box.write(k.dir() + "/shared/note", "granted text");
  std::string script = "cat " + k.dir() + "/shared/note";
  Outcome without = box.shell(script);
  KCHECK_SAYS(!without.ok() && has(without.output, "No such file"), without.text());
  box.profile()["fs"]["read"].push(k.dir() + "/shared");
  if (k.root()) chown((k.dir() + "/shared/note").c_str(), kBoxId, kBoxId);
  Outcome with = box.shell(script);
  KCHECK_SAYS(with.ok() && with.output == "granted text", with.text());
}

KERNEL_TEST("fs.read: a missing grant that the profile names refuses the run", "[tiers][fs.read]") {
  TierBox box(k);
  box.profile()["fs"]["read"].push(k.dir() + "/nowhere");
  Outcome o = box.shell("true");
  KCHECK(!o.refused.empty());
  KCHECK(box.refusal == H5I_E_POLICY_PATH);
}

KERNEL_TEST(
    "fs.write: $WORK takes files, which belong to the owner outside; a read grant takes nothing, not even metadata",
    "[tiers][fs.write]") {
  TierBox box(k);
  mkdir((k.dir() + "/shared").c_str(), 0777);
  chmod((k.dir() + "/shared").c_str(), 0777);
  box.write(k.dir() + "/shared/note", "x", 0666);
  std::string file = k.dir() + "/shared/note";
  if (k.root()) chown(file.c_str(), kBoxId, kBoxId);
  box.profile()["fs"]["read"].push(k.dir() + "/shared");
  Outcome o = box.shell("echo made > made; mkdir d; echo x > " + k.dir() + "/shared/new; echo x > " + file +
                        "; chmod 600 " + file + "; touch -d 2001-01-01 " + file +
                        "; echo x > /usr/new; echo x > /new; mv " + file + " .; ln " + file + " l");
  KCHECK_SAYS(read_file(box.work() + "/made") == "made\n", o.text());
  struct stat s {};
  KCHECK(stat((box.work() + "/made").c_str(), &s) == 0 && s.st_uid == k.who().uid && s.st_gid == k.who().gid);
  KCHECK(stat((box.work() + "/d").c_str(), &s) == 0 && s.st_uid == k.who().uid);
  KCHECK_SAYS(!exists(k.dir() + "/shared/new") && read_file(file) == "x" && exists(file), o.output);
  KCHECK(stat(file.c_str(), &s) == 0 && (s.st_mode & 0777) == 0666 && s.st_mtime > 1000000000);
  size_t refused = 0;
  for (size_t at = 0; (at = o.output.find("Read-only file system", at)) != std::string::npos; at++) refused++;
  KCHECK_SAYS(refused >= 6, o.output);
  // With the feature granted the same acts work.
  box.profile()["fs"]["write"].push(k.dir() + "/shared");
  if (k.root()) chown(file.c_str(), 0, 0);
  if (k.root()) chown((k.dir() + "/shared").c_str(), 0, 0);
  Outcome granted = box.shell("echo y > " + k.dir() + "/shared/new && echo y > " + file + " && chmod 600 " + file);
  KCHECK_SAYS(granted.ok() && read_file(file) == "y\n", granted.text());
}

KERNEL_TEST("fs.deny: a denied name cannot be read, replaced, renamed, linked, or reached another way",
            "[tiers][fs.deny]") {
  TierBox box(k);
  mkdir((box.work() + "/a").c_str(), 0755);
  mkdir((box.work() + "/a/b").c_str(), 0755);
  box.write(box.work() + "/a/b/secret", "S3CRET");
  box.write(box.work() + "/.env", "S3CRET");
  Outcome control = box.shell("cat .env a/b/secret");
  KCHECK_SAYS(control.output == "S3CRETS3CRET", control.text());
  box.profile()["fs"]["deny"] = json::Array{"$WORK/.env", "$WORK/a/b/secret", "$WORK/later/name"};
  Outcome o = box.shell(
      "cat .env; cat a/b/secret; cat a/../.env; cat a/b/../b/secret; ln -s .env s; cat s; ln .env h; rm -f .env; mv "
      ".env e2;"
      "echo new > .env; echo x > t; mv t .env; mv a a2; mv a/b a/b2; rm -rf a; cp a/b/secret c;"
      "echo new > later/name; mv later l2; rm -rf later; chmod 777 .env; cat .env; exit 0");
  KCHECK_SAYS(!has(o.output, "S3CRET"), o.output);
  KCHECK(read_file(box.work() + "/.env") == "S3CRET");
  KCHECK(read_file(box.work() + "/a/b/secret") == "S3CRET");
  KCHECK(!exists(box.work() + "/later/name") && !exists(box.work() + "/later"));  // the placeholder is gone again
  KCHECK(!exists(box.work() + "/l2") && !exists(box.work() + "/a2") && !exists(box.work() + "/e2") &&
         !exists(box.work() + "/h"));
  KCHECK_SAYS(has(o.output, "Device or resource busy") && has(o.output, "Permission denied"), o.output);
}

KERNEL_TEST("fs.deny: a denied directory is empty and unreadable; a mask cannot be taken off", "[tiers][fs.deny]") {
  TierBox box(k);
  mkdir((box.work() + "/keys").c_str(), 0755);
  box.write(box.work() + "/keys/id", "S3CRET");
  box.profile()["fs"]["deny"] = json::Array{"$WORK/keys"};
  Outcome o = box.shell(
      "ls keys; cat keys/id; touch keys/x; umount keys; umount -l keys; unshare -Urm umount keys; cat keys/id; true");
  KCHECK_SAYS(!has(o.output, "S3CRET") && has(o.output, "Permission denied"), o.output);
  KCHECK(!exists(box.work() + "/keys/x"));
}

KERNEL_TEST("fs.private: a cache stays between runs, a scratch is emptied, neither is in the work tree",
            "[tiers][fs.private]") {
  TierBox box(k);
  box.profile()["fs"]["private"]["node_modules"] = "cache";
  box.profile()["fs"]["private"]["web/.venv"] = "scratch";
  Outcome first = box.shell("echo kept > node_modules/f; echo lost > web/.venv/f; cat node_modules/f web/.venv/f");
  KCHECK_SAYS(first.ok() && first.output == "kept\nlost\n", first.text());
  KCHECK(!exists(box.work() + "/node_modules/f") && !exists(box.work() + "/web/.venv/f"));
  Outcome second = box.shell("cat node_modules/f; cat web/.venv/f");
  KCHECK_SAYS(has(second.output, "kept") && has(second.output, "No such file"), second.text());
  box.profile()["fs"]["private"] = json::Object{};
  Outcome control = box.shell("cat node_modules/f");
  KCHECK_SAYS(!control.ok(), control.text());
}

KERNEL_TEST("net.mode: deny has only its own loopback, host reaches the host's", "[tiers][net.mode]") {
  Listener listener;
  TierBox box(k);
  std::string connect = kConnect + std::to_string(listener.port);
  Outcome denied = box.shell(connect);
  KCHECK_SAYS(!denied.ok() && has(denied.output, "Connection refused"), denied.text());
  Outcome away = box.shell("python3 -c 'import socket; socket.socket(2,2).sendto(b\"x\",(\"192.0.2.1\",9))'");
  KCHECK_SAYS(has(away.output, "Network is unreachable"), away.text());
  Outcome own = box.shell(
      "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); "
      "socket.create_connection(s.getsockname(),2); print(\"did\")'");
  KCHECK_SAYS(own.ok() && own.output == "did\n", own.text());
  box.profile()["net"]["mode"] = "host";
  Outcome host = box.shell(connect);
  KCHECK_SAYS(host.ok() && host.output == "did\n", host.text());
  KCHECK(reason(box.plan, "net.host-loopback") == "host-network");
}

KERNEL_TEST("net.unix: sockets by grant, pairs always, and the refusal is counted", "[tiers][net.unix]") {
  TierBox box(k);
  std::string make =
      "python3 -c 'import socket; socket.socketpair(); print(\"pair\"); s=socket.socket(socket.AF_UNIX); "
      "s.bind(\"s\"); print(\"did\")'";
  Outcome denied = box.shell(make);
  KCHECK_SAYS(has(denied.output, "pair") && has(denied.output, "PermissionError") && !has(denied.output, "did"),
              denied.text());
  bool counted = false;
  for (const auto& d : denied.result.denials) counted = counted || (d.syscall == 41 || d.syscall == 198);
  KCHECK(counted);
  box.profile()["net"]["unix"] = true;
  Outcome granted = box.shell(make);
  KCHECK_SAYS(granted.ok() && has(granted.output, "did"), granted.text());
}

KERNEL_TEST("net.egress: rules refuse the run", "[tiers][net.egress]") {
  TierBox box(k);
  box.profile()["net"]["egress"] = json::Array{json::Object{{"to", "api.example:443"}}};
  Outcome o = box.shell("true");
  KCHECK(!o.refused.empty() && box.refusal == H5I_E_POLICY_EGRESS_TIER);
}

KERNEL_TEST("resources.mem: more private memory than the limit is refused", "[tiers][resources.mem]") {
  TierBox box(k);
  const char* take = "python3 -c 'b=bytearray(200<<20); print(\"did\")'";
  Outcome control = box.shell(take);
  KCHECK_SAYS(control.output == "did\n", control.text());
  box.profile()["resources"]["mem"] = 100 << 20;
  Outcome o = box.shell(take);
  KCHECK_SAYS(!o.ok() && !has(o.output, "did"), o.text());
  KCHECK(!box.plan["cgroup"].is_null() || reason(box.plan, "resources.mem") == "per-process");
}

KERNEL_TEST("resources.mem: files in memory have sizes below it", "[tiers][resources.mem]") {
  TierBox box(k);
  box.profile()["resources"]["mem"] = 64 << 20;
  Outcome o = box.shell(
      "dd if=/dev/zero of=/tmp/f bs=1M count=200 2>&1; dd if=/dev/zero of=/dev/shm/f bs=1M count=200 2>&1; stat -c %s "
      "/tmp/f /dev/shm/f");
  KCHECK_SAYS(has(o.output, "No space left") && has(o.output, std::to_string(32 << 20)) &&
                  has(o.output, std::to_string(8 << 20)),
              o.output);
}

KERNEL_TEST("resources.procs: the box is held, and other processes of the user do not count",
            "[tiers][resources.procs]") {
  std::vector<pid_t> others;
  for (int i = 0; i < 40; i++) {
    pid_t p = fork();
    if (p == 0) {
      pause();
      _exit(0);
    }
    others.push_back(p);
  }
  TierBox box(k);
  box.profile()["resources"]["procs"] = 24;
  const char* many =
      "python3 -c '\nimport os,time\nn=0\ntry:\n  for i in range(60):\n    if os.fork()==0: time.sleep(2); "
      "os._exit(0)\n    n+=1\nexcept OSError as e: print(e.strerror)\nprint(n)'";
  Outcome o = box.shell(many);
  int n = atoi(o.output.c_str() + (has(o.output, "\n") ? o.output.find('\n') + 1 : 0));
  KCHECK_SAYS(has(o.output, "Resource temporarily unavailable") && n >= 16 && n < 24, o.text());
  box.profile()["resources"]["procs"] = 256;
  Outcome control = box.shell(many);
  KCHECK_SAYS(control.output == "60\n", control.text());
  for (pid_t p : others) kill(p, SIGKILL);
  for (pid_t p : others) waitpid(p, nullptr, 0);
}

KERNEL_TEST("resources.cpu: processor time ends the program", "[tiers][resources.cpu]") {
  TierBox box(k);
  box.profile()["resources"]["cpu"] = 1;
  Outcome o = box.run({"/usr/bin/python3", "-c", "while True: pass"});
  KCHECK_SAYS(o.result.status == H5I_OUTCOME_SIGNALED && (o.result.code == SIGXCPU || o.result.code == SIGKILL),
              o.text());
  KCHECK(!box.plan["cgroup"].is_null() || reason(box.plan, "resources.cpu") == "per-process");
}

KERNEL_TEST("resources.fsize: one file cannot grow above it", "[tiers][resources.fsize]") {
  TierBox box(k);
  const char* grow =
      "python3 -c 'import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
      "open(\"f\",\"wb\",0).write(b\"x\"*3000000); open(\"f\",\"ab\",0).write(b\"x\"*10); print(\"did\")'";
  Outcome control = box.shell(grow);
  KCHECK_SAYS(control.output == "did\n", control.text());
  box.profile()["resources"]["fsize"] = 1000000;
  Outcome o = box.shell(grow);
  struct stat s {};
  KCHECK_SAYS(has(o.output, "File too large") && stat((box.work() + "/f").c_str(), &s) == 0 && s.st_size == 1000000,
              o.text());
}

KERNEL_TEST("env: the box has the environment of the request and nothing else", "[tiers][env.pass][env.set]") {
  setenv("H5I_TEST_LEAK", "leaked", 1);
  TierBox box(k);
  box.request["env"]["CI"] = "1";
  Outcome o = box.run({"/usr/bin/env"});
  std::set<std::string> names;
  for (size_t at = 0; at < o.output.size(); at = o.output.find('\n', at) + 1)
    names.insert(o.output.substr(at, o.output.find('=', at) - at));
  KCHECK_SAYS((names == std::set<std::string>{"CI", "HOME", "LANG", "PATH"}), o.output);
}

KERNEL_TEST("what the process tier may declare instead is in not_enforced", "[tiers][declared]") {
  TierBox box(k);
  box.profile()["resources"]["disk"] = 100 << 20;
  box.profile()["resources"]["inodes"] = 1000;
  box.profile()["resources"]["cpus"] = 1;
  box.profile()["net"]["loopback"] = json::Array{3000};
  Outcome o = box.shell("true");
  KCHECK_SAYS(o.ok(), o.text());
  for (const char* field : {"container.image", "browser.deny"}) KCHECK_SAYS(reason(box.plan, field).empty(), field);
  box.profile()["container"]["image"] = "registry.example/dev:1";
  box.profile()["browser"]["deny"] = json::Array{"cookies"};
  o = box.shell("true");
  KCHECK_SAYS(o.ok(), o.text());
  for (const char* field :
       {"resources.disk", "resources.inodes", "net.loopback", "proc.tools", "container.image", "browser.deny"})
    KCHECK_SAYS(!reason(box.plan, field).empty(), field);
  KCHECK(!box.plan["cgroup"].is_null() || !reason(box.plan, "resources.cpus").empty());
}

// The one list. tier-process: T tried above, D declared, C held or refused by the core (test_run.cpp), R refused.
// tier-workspace: D declared in every plan that has the field, C held or refused by the core, R refused.
TEST_CASE("every field of a policy is tried, declared, refused, or the core's, at both tiers", "[tiers]") {
  struct Field {
    const char* name;
    char process, workspace;
  };
  const Field kFields[] = {
      {"fs.read", 'T', 'D'},          {"fs.write", 'T', 'D'},
      {"fs.deny", 'T', 'D'},          {"fs.private", 'T', 'D'},
      {"net.mode", 'T', 'D'},         {"net.unix", 'T', 'D'},
      {"net.egress", 'R', 'R'},       {"net.loopback", 'D', 'D'},
      {"resources.mem", 'T', 'D'},    {"resources.procs", 'T', 'D'},
      {"resources.cpus", 'D', 'D'},   {"resources.cpu", 'T', 'D'},
      {"resources.wall", 'C', 'C'},   {"resources.fsize", 'T', 'D'},
      {"resources.disk", 'D', 'D'},   {"resources.inodes", 'D', 'D'},
      {"resources.output", 'C', 'C'}, {"env.pass", 'T', 'C'},
      {"env.set", 'T', 'C'},          {"tools", 'C', 'C'},
      {"isolation", 'C', 'C'},        {"env.dangerous", 'C', 'C'},
      {"secrets", 'C', 'C'},          {"command_extractors", 'C', 'C'},
      {"auth", 'C', 'C'},             {"audit.capture", 'C', 'C'},
      {"container.image", 'D', 'D'},  {"browser.deny", 'D', 'D'},
  };
  // Every field of the schema is in the list.
  std::string schema = read_file(std::string(getenv("H5I_SOURCE_DIR")) + "/core/policy/schema.cpp");
  schema = schema.substr(schema.find("kFields = {"));
  schema = schema.substr(0, schema.find("};"));
  std::set<std::string> listed, of_the_schema;
  for (const Field& field : kFields) listed.insert(field.name);
  for (size_t at = schema.find('"'); at != std::string::npos;) {
    size_t end = schema.find('"', at + 1);
    of_the_schema.insert(schema.substr(at + 1, end - at - 1));
    at = schema.find('"', end + 1);
  }
  CHECK(of_the_schema == listed);
  std::string text = read_file(std::string(getenv("H5I_SOURCE_DIR")) + "/tests/tiers/test_policy_fields.cpp");
  auto request = json::parse(
      R"({"schema":"h5i.run/1","policy":{"profile":{"net":{},"container":{"image":"i"},"browser":{"deny":["x"]}}},"ids":{"uid":1,"gid":1},"paths":{"work":"/w"}})");
  auto workspace = tier_workspace::build_plan(*request, {true});
  REQUIRE(workspace.ok());
  for (const Field& f : kFields) {
    INFO(f.name);
    // A field that is tried carries its name as a tag of the test that tries it.
    if (f.process == 'T' || f.process == 'R') {
      std::string tag = "[" + std::string(f.name) + "]";
      bool tagged = has(text, tag + "\"") || has(text, tag + "[");
      CHECK(tagged);
    }
    CHECK((f.workspace == 'D') == !reason(*workspace, f.name).empty());
  }
}
