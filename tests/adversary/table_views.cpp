// Group B: namespaces, /proc, descriptors, the view of files and the processes of the host.
#include <cstdlib>

#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"

namespace h5i::adversary {
namespace {

// Outside a harmless form of the same act is made: what the box tries would change the machine.
Try harmless(Try t, const std::string& outside, Answers control = {"did"}) { return answers_outside(outside_by(std::move(t), outside), std::move(control)); }

std::vector<Try> proc_files() {
  std::vector<Try> out;
  auto add = [&](const std::string& act, const std::string& path, const std::string& more, Answers right) {
    out.push_back(needs(held(act + path + more, std::move(right)), file_of_kernel(path)));
  };
  for (const char* name : {"acpi", "asound", "kallsyms", "kcore", "key-users", "keys", "kmsg", "latency_stats", "sched_debug", "scsi",
                           "sysrq-trigger", "timer_list"})
    add("kernel-file ", std::string("/proc/") + name, "", {"EACCES", "ENOENT"});
  for (const char* path : {"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"}) add("writable-mount ", path, "", {"EROFS", "ENOENT"});
  for (const char* path : {"/proc/kallsyms", "/proc/keys", "/proc/key-users"}) add("read ", path, "", {"EACCES", "ENOENT"});
  for (const char* path : {"/proc/kcore", "/proc/kmsg", "/proc/timer_list"}) add("sys openat -100 s:", path, " 0x800", {"EACCES", "ENOENT"});
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname",
                           "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"})
    add("sys openat -100 s:", path, " 1", {"EROFS", "EACCES", "ENOENT"});
  return out;
}

// Names that a box has no business with. Outside they are there.
std::vector<Try> absent_places() {
  std::vector<Try> out;
  for (const char* path : {"/sys", "/run", "/var/lib", "{home}/hidden", "{home}/run", "{repo}", "/proc/{victim}"}) out.push_back(held(std::string("list ") + path, {"ENOENT"}));
  // These may be empty, or closed to an ordinary user.
  for (const char* path : {"/root", "/home", "/boot"}) out.push_back(held(std::string("sys access s:") + path + " 0", {"ENOENT"}));
  // The folders above the work tree are there as names; what is in them is not.
  for (const char* file : {"manifest.json", "policy.resolved.json", "log.jsonl", "lock"})
    out.push_back(outside_by(held(std::string("sys access s:{box}/") + file + " 0", {"ENOENT"}), std::string("sys access s:{box}/") + file + " 0"));
  for (const char* path : {"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/userfaultfd", "/dev/vsock", "/dev/loop-control", "/dev/mapper/control"})
    out.push_back(needs(held(std::string("sys access s:") + path + " 0", {"ENOENT"}), file_of_kernel(path)));
  return out;
}

// What is not granted is not there for any call that takes a path.
std::vector<Try> hidden() {
  std::vector<Try> out;
  for (const char* words :
       {"sys openat -100 s:{hidden} 0", "sys openat -100 s:{hidden} 0x200000", "sys newfstatat -100 s:{hidden} b:256 0", "sys statx -100 s:{hidden} 0 0xfff b:256",
        "sys faccessat -100 s:{hidden} 0", "sys faccessat2 -100 s:{hidden} 0 0", "sys listxattr s:{hidden} 0 0", "sys llistxattr s:{hidden} 0 0",
        "sys statfs s:{hidden} b:256", "sys chdir s:{home}/hidden", "sys truncate s:{hidden} 0",
        "sys utimensat -100 s:{hidden} 0 0", "sys unlinkat -100 s:{hidden} 0", "sys renameat2 -100 s:{hidden} -100 s:{hidden}2 0",
#if defined(__x86_64__)
        "sys open s:{hidden} 0", "sys stat s:{hidden} b:256", "sys lstat s:{hidden} b:256", "sys access s:{hidden} 0", "sys utime s:{hidden} 0",
        "sys utimes s:{hidden} 0", "sys rename s:{hidden} s:{hidden}3",
#endif
        "sys fchmodat -100 s:{hidden} 0600", "sys fchownat -100 s:{hidden} -1 -1 0", "sys linkat -100 s:{hidden} -100 s:{work}/l 0"}) {
    Try t = held(words, {"ENOENT", "EROFS"});
    std::string w = words;
    if (w.find("rename") != std::string::npos || w.find("unlink") != std::string::npos) t = outside_by(t, "sys newfstatat -100 s:{hidden} b:256 0");
    out.push_back(t);
  }
  out.push_back(answers_outside(refused("sys openat2 -100 s:{hidden} q:0+0+0 24", "ENOSYS"), {"did"}));
  return out;
}

// A file that is granted for reading, by every call that would change it or what is said of it.
std::vector<Try> read_only() {
  std::vector<Try> out;
  auto add = [&](const char* words, const char* outside = "") {
    Try t = held(words, {"EROFS"}, "wide");
    if (*outside) t = outside_by(t, outside);
    out.push_back(t);
  };
  add("sys openat -100 s:{file} 1");
  add("sys openat -100 s:{file} 2");
  add("sys openat -100 s:{file} 0x201");
  add("sys openat -100 s:{shared}/new 0x41 0644");
  add("sys truncate s:{file} 3");
  add("sys fchmodat -100 s:{file} 0600");
  add("sys fchmod f:{file} 0600");
  add("sys fchownat -100 s:{file} -1 -1 0");
  add("sys fchown f:{file} -1 -1");
  add("sys utimensat -100 s:{file} q:1+0+1+0 0");
  add("sys utimensat f:{file} 0 q:1+0+1+0 0");
  add("sys mkdirat -100 s:{shared}/newdir 0755");
  add("sys symlinkat s:x -100 s:{shared}/newlink");
  add("sys linkat -100 s:{file} -100 s:{shared}/newname 0");
  add("sys mknodat -100 s:{shared}/newpipe 010644 0");
  add("sys renameat2 -100 s:{shared}/newlink -100 s:{shared}/newer 0");
  add("sys unlinkat -100 s:{shared}/newer 0");
#if defined(__x86_64__)
  add("sys chmod s:{file} 0644");
  add("sys chown s:{file} -1 -1");
  add("sys lchown s:{file} -1 -1");
  add("sys utime s:{file} q:1+1");
  add("sys utimes s:{file} q:1+0+1+0");
  add("sys futimesat -100 s:{file} q:1+0+1+0");
  add("sys creat s:{shared}/created 0644");
  add("sys mkdir s:{shared}/madedir 0755");
  add("sys rmdir s:{shared}/madedir");
  add("sys symlink s:x s:{shared}/madelink");
  add("sys link s:{file} s:{shared}/madename");
  add("sys rename s:{shared}/madelink s:{shared}/movedlink");
  add("sys unlink s:{shared}/movedlink");
  add("sys mknod s:{shared}/madepipe 010644 0");
#endif
  for (const char* words : {"sys setxattr s:{file} s:user.h5i s:x 1 0", "sys lsetxattr s:{file} s:user.h5i s:x 1 0", "sys fsetxattr f:{file} s:user.h5i s:x 1 0",
                            "sys removexattr s:{file} s:user.h5i"})
    out.push_back(needs(held(words, {"EROFS"}), attributes_of_users()));
  // Calls that are not in the allow-list at all; what is true of the old ones must not be asked of the new.
  auto newer = [&](const char* words, Answers control) {
    Try t = refused(words, "ENOSYS");
    out.push_back(needs(answers_outside(t, std::move(control)), system_call(t.words[1])));
  };
  newer("sys 452 -100 s:{file} 0600 0", {"did"});
  newer("sys 463 -100 s:{file} 0 s:user.h5i q:0+0 16", {"did", "EOPNOTSUPP", "EINVAL", "ENOENT"});
  newer("sys 469 -100 s:{file} b:64 64 0", {"did", "EOPNOTSUPP", "ENOTTY", "EINVAL"});
  out.push_back(answers_outside(refused("sys openat2 -100 s:{file} q:1+0+0 24", "ENOSYS"), {"did"}));
  return out;
}

std::vector<Try> set_id() {
  std::vector<Try> out;
  auto add = [&](const char* words, const char* answer = "EPERM") { out.push_back(refused(words, answer)); };
  for (const char* mode : {"04755", "02755", "06711"}) {
    add((std::string("sys fchmodat -100 s:{attack-copy} ") + mode).c_str());
    add((std::string("sys fchmod f:{attack-copy} ") + mode).c_str());
    add((std::string("sys openat -100 s:{work}/o") + mode + " 0x41 " + mode).c_str());
    add((std::string("sys mkdirat -100 s:{work}/d") + mode + " " + mode).c_str());
#if defined(__x86_64__)
    add((std::string("sys chmod s:{attack-copy} ") + mode).c_str());
    add((std::string("sys open s:{work}/p") + mode + " 0x41 " + mode).c_str());
    add((std::string("sys creat s:{work}/c") + mode + " " + mode).c_str());
    add((std::string("sys mkdir s:{work}/e") + mode + " " + mode).c_str());
#endif
  }
  // O_TMPFILE, which not every file system has.
  out.push_back(answers_outside(refused("sys openat -100 s:{work} 0x410002 04755", "EPERM"), {"did", "EOPNOTSUPP"}));
  add("sys mknodat -100 s:{work}/m 0104755 0");
  // A capability in an attribute is set-user-id by another name: {magic of version 2, permitted 1}.
  out.push_back(held("sys setxattr s:{attack-copy} s:security.capability q:0x0000000102000000+0+0 20 0", {"EPERM"}));
  out.push_back(held("sys setxattr s:{attack-copy} s:trusted.h5i s:x 1 0", {"EPERM"}));
  out.push_back(needs(refused("sys 452 -100 s:{attack-copy} 04755 0", "ENOSYS"), system_call("452")));
  add("sys openat2 -100 s:{work}/q q:0x41+04755+0 24", "ENOSYS");
  return out;
}

std::vector<Try> denied_names() {
  std::vector<Try> out;
  auto add = [&](const char* words, Answers right, const char* outside = "") {
    Try t = held(words, std::move(right), *outside ? "" : "wide");
    if (*outside) t = outside_by(t, outside);
    out.push_back(t);
  };
  const Answers closed = {"EACCES", "EROFS", "EPERM"}, fixed = {"EBUSY", "EXDEV", "EROFS", "EACCES", "EEXIST"};
  add("read {open}/denied", closed);
  add("write {open}/denied", closed);
  add("read {secret}", closed);
  add("read {open}/parent/inner/denied", closed);
  add("sys truncate s:{open}/denied 0", closed);
  add("sys fchmodat -100 s:{open}/denied 0666", closed);
  add("sys utimensat -100 s:{open}/denied q:1+0+1+0 0", closed);
  add("sys linkat -100 s:{open}/denied -100 s:{open}/alias 0", fixed);
  add("sys renameat2 -100 s:{open}/plain -100 s:{open}/denied 2", fixed);  // RENAME_EXCHANGE
  add("sys renameat2 -100 s:{open}/denied -100 s:{open}/moved 0", fixed);
  add("sys unlinkat -100 s:{open}/parent/inner/denied 0", fixed);
  return out;
}

std::vector<Try> late_names() {
  std::vector<Try> out;
  for (const char* words : {"make {open}/late", "sys mkdirat -100 s:{open}/late 0755", "sys symlinkat s:/etc/passwd -100 s:{open}/late",
                            "sys linkat -100 s:{open}/plain -100 s:{open}/late 0", "sys renameat2 -100 s:{open}/made -100 s:{open}/late 0",
                            "sys renameat2 -100 s:{open}/plain -100 s:{open}/late 0", "sys mknodat -100 s:{open}/late 010644 0",
                            "sys openat -100 s:{open}/late 0x41 0644"}) {
    Try t = held(words, {"EBUSY", "EXDEV", "EROFS", "EACCES", "EEXIST", "ENOTDIR"});
    out.push_back(outside_by(t, "sys openat -100 s:{open}/late 0x41 0644"));
  }
  return out;
}

std::vector<Try> moved_parents() {
  const Answers fixed = {"EBUSY", "EXDEV", "EROFS", "EACCES"};
  return {held("replace-parent {open}/parent/inner denied", fixed, "wide"),
          held("replace-parent {open}/parent planted", fixed, "wide"),
          held("sys renameat2 -100 s:{open}/parent -100 s:{open}/made 2", fixed, "wide"),
          outside_by(held("replace-parent {work}/.git hooks", fixed), "replace-parent {open}/made hooks"),
          outside_by(held("sys renameat2 -100 s:{work}/.git -100 s:{work}/git 0", fixed), "sys renameat2 -100 s:{open}/plain -100 s:{open}/plainer 0"),
          outside_by(held("sys unlinkat -100 s:{work}/.git 0x200", fixed), "sys unlinkat -100 s:{open}/plainer 0"),
          outside_by(held("sys renameat2 -100 s:{work}/cache -100 s:{work}/cache2 0", fixed), "sys renameat2 -100 s:{open}/copy -100 s:{open}/copier 0"),
          outside_by(held("sys renameat2 -100 s:{open} -100 s:{home}/open2 0", fixed), "sys renameat2 -100 s:{open}/copier -100 s:{open}/copy 0"),
          outside_by(held("sys renameat2 -100 s:{work} -100 s:{work}2 0", fixed), "sys renameat2 -100 s:{open}/copy -100 s:{open}/copier 0")};
}

std::vector<Try> signals() {
  std::vector<Try> out;
  for (const char* words :
       {"kill {victim} 9", "kill {victim} 19", "kill -{victim} 9", "sys tkill {victim} 9", "sys tgkill {victim} {victim} 9", "sys rt_sigqueueinfo {victim} 9 q:9+0xffffffff+0",
        "sys rt_tgsigqueueinfo {victim} {victim} 9 q:9+0xffffffff+0"}) {
    std::string w = words, outside = "kill {victim} 0";
    if (w.find("info") != std::string::npos) outside = "sys rt_sigqueueinfo {victim} 0 q:0+0xffffffff+0";
    out.push_back(outside_by(held(words, {"ESRCH"}), outside));
  }
  for (const char* words : {"sys prlimit64 {victim} 7 0 b:16", "sys sched_getaffinity {victim} 128 b:128", "sys getsid {victim}", "sys getpgid {victim}",
                            "sys setpriority 0 {victim} 19", "sys sched_getscheduler {victim}", "sys ioprio_get 1 {victim}", "sys getpriority 0 {victim}"})
    out.push_back(held(words, {"ESRCH"}));
  return out;
}

std::string kill_all(const Place& p) {
  if (!p.inside()) return p.tries({{"kill", "-1", "0"}}).answers[0];
  // Where the host's processes can be named, this would end all of the user's.
  if (std::string first = p.tries({{"kill", "{victim}", "0"}}).answers[0]; first != "ESRCH") return "the host's processes have names: " + first;
  Ran r = p.tries({{"kill", "-1", "9"}});
  if (!p.world->victim_lives()) return "the other process was killed";
  return r.receipt["outcome"]["status"].string() == "signaled" ? "only the box" : "outcome " + json::canonical(r.receipt["outcome"]);
}

// SIGSTOP to everything that can be named: the run ends in its time, so whoever watches it was not reached.
std::string stop_all(const Place& p) {
  if (!p.inside()) return p.tries({{"kill", "{victim}", "0"}}).answers[0];
  Ran r = p.tries({{"signal-all", "19"}, {"sleep", "0"}}, 30);
  return r.status == 0 && r.answers[1] == "did" ? "unreached" : "status " + std::to_string(r.status);
}

// Whoever grants a folder with somebody's socket in it is told so, before anything runs.
std::string granted_socket(const Place& p) {
  if (!p.inside()) return p.tries({{"unix", "stream", "{agent}"}}).answers[0];
  std::string why;
  Place box = p.world->box("sockets", &why);
  if (box.inside()) why = box.tries({{"sleep", "0"}}).err;
  return why.find("[policy.granted-socket]") != std::string::npos ? "refused by name" : "not refused: " + why;
}

// Whatever is sent to the box's first process, the run goes on to its own end.
std::string first_process(const Place& p) {
  if (!p.inside()) return p.tries({{"kill", "{victim}", "0"}}).answers[0];
  std::vector<std::vector<std::string>> all;
  for (int s = 1; s <= 64; s++)
    if (s != 32 && s != 33) all.push_back({"kill", "1", std::to_string(s)});
  all.push_back({"sleep", "0"});
  Ran r = p.tries(all, 30);
  return r.status == 0 && r.answers.back() == "did" ? "it goes on" : "status " + std::to_string(r.status);
}

std::string processes_seen(const Place& p) {
  int n = atoi(p.command({"/bin/sh", "-c", "ls /proc | grep -c '^[0-9]'"}).out.c_str());
  return n <= 0 ? "none" : n < 8 ? "the box's own" : "the host's";
}

}  // namespace

std::vector<Case> cases_of_views() {
  return {
      {.id = "B01",
       .what = "the host's executables, by /proc/PID/exe",
       .must = "PS",
       .right = "no executable of the host can be opened by way of a process",
       .tries = {held("proc-file all exe r", {"EACCES", "EPERM", "ENOENT"}), held("proc-file all root/etc/passwd r", {"EACCES", "EPERM", "ENOENT"}),
                 held("proc-file all fd/0 r", {"EACCES", "EPERM", "ENOENT"})},
       .elsewhere = {{"tests/os/test_fs.cpp", "a sealed memfd cannot be changed, and an executable one cannot be read by its program"}}},
      {.id = "B03",
       .what = "a mask or a device that is swapped for a link while it is mounted",
       .must = "PS",
       .right = "masks are nodes of our own, never binds of a device; names of /dev cannot be moved",
       .tries = {harmless(held("sys renameat2 -100 s:/dev/null -100 s:/dev/null2 0", {"EROFS", "EBUSY", "EACCES"}), "sys renameat2 -100 s:{open}/plain -100 s:{open}/p2 0"),
                 harmless(held("sys unlinkat -100 s:/dev/null 0", {"EROFS", "EBUSY", "EACCES"}), "sys unlinkat -100 s:{open}/p2 0"),
                 harmless(held("sys symlinkat s:/proc/kcore -100 s:/dev/link", {"EROFS", "EACCES"}), "sys symlinkat s:x -100 s:{open}/l"),
                 harmless(held("sys symlinkat s:/etc -100 s:/link", {"EROFS", "EACCES"}), "sys symlinkat s:x -100 s:{open}/l2")},
       .elsewhere = {{"tests/spawn/test_confinement.cpp", "a mask hides a file and a directory, cannot be written, removed, moved or unmounted"}}},
      {.id = "B04",
       .what = "what is written to procfs during set-up lands elsewhere",
       .must = "PS",
       .right = "id maps are written through a descriptor that was opened before any mount, and the core reads them back",
       .elsewhere = {{"tests/session_run/test_attest.cpp", "a box that is what its plan says attests; with any one thing different it does not"}}},
      {.id = "B06",
       .what = "the source of a bind is swapped while boxes start",
       .must = "KPS",
       .right = "a link is a refusal, and what was opened is what is mounted",
       .elsewhere = {{"tests/spawn/test_confinement.cpp", "a source that is swapped for a link while boxes start is never followed"}}},
      {.id = "B07",
       .what = "release_agent of a control group",
       .must = "PS",
       .right = "no mount, and no control groups in the view",
       .tries = {harmless(refused("sys mount s:c s:{work} s:cgroup 0 0", "EPERM"), "sys mount s:c s:/nonexistent s:cgroup 0 0", {"ENOENT"}),
                 by_itself_in_bare(refused("sys mount s:c s:{work} s:cgroup2 0 0", "EPERM")),
                 held("list /sys/fs/cgroup", {"ENOENT"}),
                 held("cgroup-path", {"ENOENT"})}},
      {.id = "B09",
       .what = "files of /proc that show or steer the machine",
       .must = "PS",
       .claim = "fs.read",
       .right = "masked or read-only, and the box is not the machine's root",
       .tries = [] {
         auto all = proc_files();
         all.push_back(held("become 0", {"EPERM", "EINVAL"}));
         all.push_back(held("sys setgroups 1 q:0", {"EPERM"}));
         all.push_back(held("hostname {hostname}", {"ENOENT"}));
         return all;
       }()},
      {.id = "B10",
       .what = "taking a mask off",
       .must = "PS",
       .claim = "fs.deny",
       .right = "EPERM by the filter, and the mounts are locked",
       .tries = {harmless(refused("sys umount2 s:/proc/kallsyms 2", "EPERM"), "sys umount2 s:/nonexistent 0", {"ENOENT"}),
                 harmless(refused("sys umount2 s:{open}/denied 0", "EPERM"), "sys umount2 s:/nonexistent 0", {"ENOENT"}),
                 harmless(refused("sys umount2 s:{open}/denied 8", "EPERM"), "sys umount2 s:/nonexistent 8", {"ENOENT"})},
       .elsewhere = {{"tests/tiers/test_policy_fields.cpp", "fs.deny: a denied directory is empty and unreadable; a mask cannot be taken off"}}},
      {.id = "B12",
       .what = "signals and other reach to processes outside, by every call that names one",
       .must = "PS",
       .right = "ESRCH; the process outside lives",
       .tries = [] {
         auto all = signals();
         all.push_back(watched("kill -9 -1", {"only the box"}, kill_all));
         all.push_back(watched("processes in /proc", {"the box's own"}, processes_seen, {"the host's"}));
         return all;
       }()},
      {.id = "B13",
       .what = "SIGSTOP to whoever watches",
       .must = "PS",
       .right = "unreachable; the run ends in its time",
       .tries = {watched("stop everything", {"unreached"}, stop_all), watched("every signal to the box's first process", {"it goes on"}, first_process)}},
      {.id = "B15",
       .what = "sockets of daemons that act for the user, by path and by abstract name",
       .must = "PS",
       .claim = "net.unix",
       .right = "EPERM at socket()",
       .tries = {refused("unix stream {agent}", "EPERM", "socket"), refused("unix dgram {agent-dgram}", "EPERM", "socket"), refused("unix stream {abstract}", "EPERM", "socket"),
                 watched("a grant that holds a socket", {"refused by name"}, granted_socket)},
       .elsewhere = {{"tests/tiers/test_view.cpp", "a grant that is or holds a listening socket is refused; a denied one is not in the way"}}},
      {.id = "B15",
       .what = "the same where unix sockets are granted",
       .must = "PS",
       .claim = "fs.read",
       .right = "the path is not there; the abstract name belongs to another network namespace",
       .profile = "unix",
       .tries = {held("unix stream {agent}", {"ENOENT"}), held("unix dgram {agent-dgram}", {"ENOENT"}), held("unix stream {abstract}", {"ECONNREFUSED", "EPERM"})}},
      {.id = "B16",
       .what = "a descriptor that is passed in over a socket keeps its authority",
       .must = "P",
       .claim = "net.unix",
       .right = "no socket of the host can be reached, also with the host's network: Landlock scopes abstract names",
       .profile = "host-unix",
       .tries = {held("unix stream {abstract}", {"EPERM"}), held("unix stream {agent}", {"ENOENT"})}},
      {.id = "B16",
       .what = "the same where a box always has a network of its own, which is where abstract names live",
       .must = "S",
       .claim = "net.unix",
       .right = "no socket of the host can be reached: nobody is there to pass one",
       .profile = "unix",
       .tries = {held("unix stream {abstract}", {"ECONNREFUSED", "EPERM"}), held("unix stream {agent}", {"ENOENT"})}},
      {.id = "B18",
       .what = "shared memory, semaphores and queues of the host",
       .must = "PS",
       .right = "an ipc namespace and a /dev/shm of the box's own",
       .tries = {held("read {shm}", {"ENOENT"}), held("sys shmget {key} 0 0", {"ENOENT"}), held("sys semget {key} 0 0", {"ENOENT"}), held("sys msgget {key} 0", {"ENOENT"}),
                 held("sys mq_open s:{mq} 2 0 0", {"ENOENT"}), held("list /dev/shm", {"ENOENT"}),
                 outside_by(may("sys shmget 0 4096 0x3b6"), "sys getpid"),
                 outside_by(held("sys mq_open s:h5i-own 0x42 0600 0", {"EACCES"}), "sys mq_open s:{mq} 2 0 0")}},  // its own, too: Landlock has no rule for where queues live
      {.id = "B19",
       .what = "device nodes",
       .must = "KPS",
       .claim = "fs.write",
       .right = "EPERM, and no mount honours them",
       .tries = {refused("sys mknodat -100 s:{work}/c 020666 0x103", "EPERM"), refused("sys mknodat -100 s:{work}/b 060666 0x800", "EPERM"),
#if defined(__x86_64__)
                 refused("sys mknod s:{open}/c 020666 0x103", "EPERM"), refused("sys mknod s:{work}/b2 060666 0x800", "EPERM"),
#endif
                 held("loose-mount", {"EROFS"}), may("sys mknodat -100 s:{work}/fifo 010644 0"), may("sys mknodat -100 s:{work}/plain 0100644 0")},
       .elsewhere = {{"tests/gate/test_scan.cpp", "refused: fifo, socket, device"}}},
      {.id = "B21", .what = "files that are only granted for reading, by every call that changes one", .must = "PS", .claim = "fs.write", .right = "EROFS from the mount", .tries = read_only()},
      {.id = "A33",
       .what = "set-user-id and set-group-id bits, by every call that takes a mode",
       .must = "PS",
       .claim = "fs.write",
       .right = "EPERM, counted; ENOSYS where the mode lies in memory",
       .tries = set_id()},
      {.id = "A33", .what = "a file that is not granted, by every call that takes a path", .must = "PS", .claim = "fs.read", .right = "ENOENT, whichever call asks", .tries = hidden()},
      {.id = "B22",
       .what = "existence and size of what is not granted",
       .must = "PS",
       .claim = "fs.read",
       .right = "the path is not in the view",
       .tries = absent_places()},
      {.id = "B24",
       .what = "one missing path drops the whole ruleset",
       .must = "PS",
       .right = "a missing grant that the profile names refuses the run",
       .elsewhere = {{"tests/tiers/test_policy_fields.cpp", "fs.read: a missing grant that the profile names refuses the run"},
                     {"tests/spawn/test_confinement.cpp", "Landlock holds what it handles, and a missing rule path fails the start"}}},
      {.id = "B25",
       .what = "handles that are opened after rights were dropped",
       .must = "PS",
       .right = "what lies in a folder that only its owner may enter is granted all the same",
       .tries = {may("read {shared}/closed/file")},
       .elsewhere = {{"tests/spawn/test_confinement.cpp", "a source behind root's 0700 directory is granted although the box's id could not reach it"}}},
      {.id = "B27",
       .what = "rules that name a path before its mount is there",
       .must = "PS",
       .right = "grants below the box's own /tmp work, and are all that is there",
       .tries = {may("read {file}"), may("make {open}/own"), outside_by(may("make /tmp/h5i-own"), "sys getpid"),
                 held("list {root}/home/hidden", {"ENOENT"})}},
      {.id = "B28", .what = "Landlock cannot carve a hole", .must = "PS", .claim = "fs.deny", .right = "denied names are mounts", .tries = denied_names()},
      {.id = "C28", .what = "a denied name that is absent at the start", .must = "PS", .claim = "fs.deny", .right = "cannot be made in any way", .tries = late_names()},
      {.id = "C29", .what = "the parents of a protected name are renamed", .must = "PS", .claim = "fs.deny", .right = "EBUSY: every parent up to the writable root is a mount", .tries = moved_parents()},
      {.id = "B30",
       .what = "another verb that starts a process loses the wrapper",
       .must = "K",
       .right = "run, shell and canaries go through one spawner and one attestation",
       .elsewhere = {{"tests/session_run/test_run.cpp", "a shell has a terminal of its own, no deadline, and leaves one record with its status"},
                     {"tests/spawn/test_requests.cpp", "a workload starts once, with stdio from the core, and never as a canary"}}},
      {.id = "B31",
       .what = "a security module that goes by the path of a program",
       .must = "KPS",
       .right = "the probe finds out by trying, and says what is missing",
       .elsewhere = {{"tests/tiers/test_probe.cpp", "a host without user namespaces is found out by trying, and nothing is claimed"}}},
      {.id = "B34",
       .what = "starts that fail now and then",
       .must = "KPS",
       .right = "every start succeeds",
       .elsewhere = {{"tests/spawn/test_confinement.cpp", "three hundred starts in a row all succeed"}}},
  };
}

}  // namespace h5i::adversary
