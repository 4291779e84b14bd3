// Group A: the surface of system calls. The filter answers ENOSYS for interfaces that programs probe for, EPERM for the
// rest; only a foreign architecture kills. Every refusal is counted, which is a control of its own: it was the filter that
// answered, not the kernel for want of a right.
#include <algorithm>

#include "core/os/syscall_name.hpp"
#include "tests/adversary/cases.hpp"
#include "tests/adversary/world.hpp"

namespace h5i::adversary {
namespace {

// Outside the kernel is reached and answers with one of these, where it has the call.
Try reaches(Try t, Answers control) {
  if (t.words[0] == "sys") t = needs(t, system_call(t.words[1]));
  return answers_outside(std::move(t), std::move(control));
}
// A socket that the filter refuses by its family, type and protocol.
Try odd_socket(int family, int type, int protocol, const std::string& act = "") {
  std::string words = act.empty() ? "socket " + std::to_string(family) + " " + std::to_string(type) + " " + std::to_string(protocol) : act;
  return needs(refused(words, "EPERM", "socket"), socket_kind(family, type, protocol));
}

std::vector<Try> namespaces() {
  std::vector<Try> out;
  // With a user namespace beside it, an ordinary user could have each of them.
  for (const char* flags : {"0x10000000", "0x10020000", "0x12000000", "0x14000000", "0x18000000", "0x30000000", "0x50000000", "0x10000080",
                            "0x20000", "0x2000000", "0x4000000", "0x8000000", "0x20000000", "0x40000000", "0x80"})
    out.push_back(refused(std::string("sys unshare ") + flags, "EPERM"));
  for (const char* flags : {"0x10000000", "0x10020000", "0x30000000", "0x50000000"}) {
    out.push_back(refused(std::string("clone ") + flags, "EPERM", "clone"));
    out.push_back(refused(std::string("clone3 ") + flags, "ENOSYS", "clone3"));
  }
  // One bit above the 32 that a filter would look at by mistake is another flag, not none.
  out.push_back(refused("setns /proc/self/ns/net", "EPERM", "setns"));
  out.push_back(reaches(refused("setns /proc/self/ns/user", "EPERM", "setns"), {"EINVAL"}));
  return out;
}

std::vector<Try> families() {
  std::vector<Try> out;
  for (int f = 0; f <= 45; f++) {
    if (f == 2 || f == 10 || f == 16) continue;  // inet, inet6 and netlink: by type and protocol below
    Try t = refused("any-socket " + std::to_string(f), "EPERM", "socket");
    if (f == 1)
      t = granted_by(t, "unix");
    else
      t = needs(t, address_family(f));
    out.push_back(t);
  }
  for (int protocol = 1; protocol <= 21; protocol++) out.push_back(odd_socket(16, 3, protocol));
  const int kOdd[][3] = {{2, 5, 132}, {2, 1, 132}, {2, 6, 33}, {2, 2, 136}, {10, 1, 262}, {10, 5, 132}, {2, 1, 255}};
  for (const auto& [family, type, protocol] : kOdd) out.push_back(odd_socket(family, type, protocol));
  out.push_back(reaches(refused("sys socketpair 2 1 0 b:8", "EPERM"), {"EOPNOTSUPP"}));
  out.push_back(reaches(refused("sys socketpair 16 3 0 b:8", "EPERM"), {"EOPNOTSUPP"}));
  out.push_back(may("socket 2 1 0"));
  out.push_back(may("socket 10 2 0"));
  out.push_back(may("socket 16 3 0"));
  out.push_back(may("sys socketpair 1 1 0 b:8"));
  return out;
}

// Calls that give no program of a tool chain anything, each with arguments that do no harm.
std::vector<Try> odd_calls() {
  std::vector<Try> out;
  auto add = [&](const char* words, Answers control = {"did"}) { out.push_back(reaches(refused(words, "EPERM"), std::move(control))); };
  auto newer = [&](const char* words, Answers control) { out.push_back(reaches(refused(words, "ENOSYS"), std::move(control))); };
  add("sys personality 0x0040000");
  add("sys personality 0x0400000");
  add("sys personality 0x100040000");  // the kernel takes the low half
  add("sys kcmp {victim} {victim} 0 0 0");
  add("sys move_pages 0 0 0 0 0 0");
  add("sys migrate_pages 0 0 0 0", {"did", "EINVAL"});
  add("sys process_vm_readv {victim} 0 0 0 0 0");
  add("sys perf_event_open b:128 0 -1 -1 0", {"did", "EINVAL", "ENOENT", "EOPNOTSUPP", "E2BIG"});
  add("sys bpf 99 b:8 8", {"EINVAL"});
  add("sys clock_adjtime 0 b:256");
  add("sys adjtimex b:256");
  add("sys name_to_handle_at -100 s:/ q:64 b:8 0", {"did", "EOVERFLOW", "EOPNOTSUPP"});
  add("sys open_by_handle_at -1 q:0 0", {"EINVAL", "EBADF"});
  add("sys fanotify_init 0x200 0");
  add("sys request_key s:user s:none 0 0", {"ENOKEY"});
  add("sys syslog 10 0 0");
  add("sys quotactl 0x80000700 s:/nonexistent 0 0", {"ENOENT", "ENOTBLK", "EINVAL"});
  add("sys acct s:/nonexistent", {"ENOENT"});
  add("sys swapon s:/nonexistent 0", {"ENOENT"});
  add("sys swapoff s:/nonexistent", {"ENOENT"});
  add("sys reboot 0 0 0 0", {"EINVAL"});
  add("sys kexec_load 0 0 0 -1", {"EINVAL"});
  add("sys kexec_file_load -1 -1 0 0 -1", {"EINVAL"});
  add("sys settimeofday 0 0");
  add("sys clock_settime -1 0", {"EINVAL", "EFAULT"});
  add("sys sethostname s:x -1", {"EINVAL"});
  add("sys setdomainname s:x -1", {"EINVAL"});
  add("sys lookup_dcookie -1 b:8 8", {"EINVAL"});
  for (const char* w : {"sys init_module b:8 8 s:", "sys finit_module -1 s: 0", "sys delete_module s:none 0"})
    out.push_back(needs(reaches(refused(w, "EPERM"), {"ENOEXEC", "EFAULT", "EBADF", "ENOENT"}), loadable_modules()));
#if defined(__x86_64__)
  add("sys modify_ldt 0 b:64 64");
  add("sys remap_file_pages 0 0 0 0 0", {"EINVAL"});
  add("sys iopl 0", {"did"});
  add("sys ioperm 0 0 0", {"did", "EINVAL"});
  newer("sys sysfs 3", {"did"});
  newer("sys uselib s:/nonexistent", {"ENOENT"});
  newer("sys ustat 0 b:64", {"EINVAL", "did"});
#endif
  // vhangup has no harmless argument, so outside another call stands for it.
  out.push_back(outside_by(refused("sys vhangup", "EPERM"), "sys getpid"));
  newer("sys memfd_secret 0", {"did"});
  newer("sys process_madvise -1 0 0 0 0", {"EBADF", "EINVAL"});
  newer("sys process_mrelease -1 0", {"EBADF"});
  newer("sys quotactl_fd -1 0 0 0", {"EBADF", "EINVAL"});
  newer("sys set_mempolicy_home_node 0 0 0 0", {"did", "EINVAL", "ENOENT"});
  newer("sys 451 -1 0 0 0", {"EBADF", "EFAULT"});          // cachestat
  newer("sys 453 0 0 0", {"EINVAL", "EOPNOTSUPP"});  // map_shadow_stack
  newer("sys 454 0 0 0 0", {"EINVAL"});
  newer("sys 459 0 0 0 0", {"EINVAL"});
  newer("sys 461 0 0 0", {"EINVAL", "EFAULT"});
  return out;
}

std::vector<Try> mount_calls() {
  std::vector<Try> out;
  auto old = [&](const char* words, Answers control, const char* outside = "") {
    Try t = reaches(refused(words, "EPERM"), std::move(control));
    if (*outside) t = outside_by(t, outside);
    out.push_back(t);
  };
  auto fresh = [&](const char* words, Answers control) { out.push_back(reaches(refused(words, "ENOSYS"), std::move(control))); };
  auto here = [&](const char* words) { out.push_back(by_itself_in_bare(refused(words, "EPERM"))); };
  here("sys mount s:none s:{work} s:tmpfs 0 0");
  here("sys mount s:/ s:{work} s:none 0x5000 0");
  here("sys mount s:none s:/ s:none 0x44000 0");
  here("sys chroot s:/tmp");
  here("sys umount2 s:/proc 2");
  // Only where nothing is: a path that is not there is looked up before any right is asked for.
  old("sys umount2 s:/proc/kcore 2", {"ENOENT"}, "sys umount2 s:/nonexistent 2");
  old("sys pivot_root s:/tmp s:/tmp", {"ENOENT"}, "sys pivot_root s:/nonexistent s:/nonexistent");
  fresh("sys open_tree -100 s:/ 0", {"did"});
  fresh("sys open_tree -100 s:/ 1", {"did"});
  fresh("sys fsopen s:tmpfs 0", {"did"});
  fresh("sys fspick -100 s:/nonexistent 0", {"ENOENT"});
  fresh("sys fsconfig -1 6 0 0 0", {"EBADF", "EINVAL"});
  fresh("sys fsmount -1 0 0", {"EBADF", "EINVAL"});
  fresh("sys move_mount -1 s: -1 s: 0", {"EBADF", "ENOENT"});
  fresh("sys mount_setattr -1 s:/nonexistent 0 q:1 32", {"ENOENT"});
  fresh("sys 457 q:32 b:64 64 0", {"did", "EINVAL", "ENOENT", "EOVERFLOW"});
  fresh("sys 458 q:32 b:64 8 0", {"did", "EINVAL", "ENOENT"});
  fresh("sys 467 -100 s:/ 0 0 0", {"did", "EINVAL"});
  return out;
}

std::vector<Try> keyring_calls() {
  return {refused("sys keyctl 0 -3 1", "EPERM"),
          refused("sys keyctl 1 0", "EPERM"),
          reaches(refused("sys keyctl 11 -3 0 0", "EPERM"), {"did"}),
          refused("sys add_key s:user s:h5i s:x 1 -1", "EPERM"),
          reaches(refused("sys request_key s:user s:none 0 0", "EPERM"), {"ENOKEY"})};
}

std::vector<Try> fast_open() {
  std::vector<Try> out = {refused("fast-open sendto", "EPERM", "sendto"), refused("fast-open sendmsg", "EPERM", "sendmsg"),
                          refused("fast-open sendmmsg", "EPERM", "sendmmsg"), refused("fast-open option", "EPERM", "setsockopt"),
                          refused("fast-open option-high", "EPERM", "setsockopt")};
  out.push_back(reaches(refused("upper-protocol", "EPERM", "setsockopt"), {"did", "ENOENT"}));
  return out;
}

std::vector<Try> terminal_calls() {
  Try console = refused("terminal 0x541D 0", "EPERM", "ioctl");
  return {refused("terminal 0x5412", "EPERM", "ioctl"),
          refused("terminal 0x100005412", "EPERM", "ioctl"),  // the kernel looks at 32 bits
          answers_outside(refused("terminal 0x541C", "EPERM", "ioctl"), {"ENOTTY", "EINVAL"}),
          answers_outside(refused("terminal 0xFFFFFFFF0000541C", "EPERM", "ioctl"), {"ENOTTY", "EINVAL"}),
          outside_by(console, "terminal 0x5413"),  // TIOCCONS would take the machine's console; another command stands for it
          answers_outside(refused("terminal 0x5423", "EPERM", "ioctl"), {"EINVAL"}),
          may("terminal 0x5413")};
}

std::string datagram(const Place& p) {
  Ran r = p.tries({{"connect", "udp", "127.0.0.1", "{udp}"}});
  return p.world->heard() ? "heard" : r.answers[0] == "did" ? "unheard" : r.answers[0];
}

// Every number, with arguments that mean nothing. The new ones that a box may use are listed here a second time on purpose.
std::string whole_table(const Place& p) {
  constexpr int kLast = 1023, kFirstNew = 424, kBeyond = 470;
  const std::vector<int> allowed = {424, 434, 436, 439, 441, 444, 445, 446, 449};
  std::vector<std::vector<std::string>> all;
  for (int n = p.inside() ? 0 : kFirstNew; n <= (p.inside() ? kLast : kBeyond - 1); n++) all.push_back({"number", std::to_string(n)});
  Ran r = p.tries(all, 120);
  if (!p.inside()) {  // the new calls are there outside, so that their absence inside is the filter's doing
    auto there = std::count_if(r.answers.begin(), r.answers.end(), [](const std::string& a) { return a != "ENOSYS" && !a.empty(); });
    return there > 20 ? "did" : "this kernel has few of them";
  }
  std::map<int64_t, int64_t> counted;
  for (const Json& d : r.receipt["denials"].array()) counted[d["number"].integer()] += d["count"].integer();
  // Numbers far above any kernel's share a row when there are very many of them.
  int64_t others = counted[os::kOtherNumbers];
  std::string wrong;
  auto say = [&](int n, const std::string& what) { wrong += (wrong.empty() ? "" : ", ") + std::to_string(n) + " " + what; };
  for (int n = 0; n <= kLast; n++) {
    const std::string& a = r.answers[static_cast<size_t>(n)];
    bool may_be_allowed = n < kFirstNew || std::find(allowed.begin(), allowed.end(), n) != allowed.end();
    if (a.empty()) say(n, "gave no answer");
    if (!may_be_allowed && a != (n == 438 ? "EPERM" : "ENOSYS")) say(n, "gives " + a);
    if (!may_be_allowed && counted[n] < 1 && (n < 768 || others-- < 1)) say(n, "is not in the receipt");
  }
  return wrong.empty() ? "ENOSYS and listed" : wrong;
}

// What is refused after a flood of numbers that nobody has is counted like anything else.
std::string after_a_flood(const Place& p) {
  Ran r = p.tries({{"numbers", "0x40000000", "1500"}, {"ptrace", "1"}});
  if (!p.inside()) return r.answers[0];
  int64_t all = 0, ptrace = 0;
  for (const Json& d : r.receipt["denials"].array()) {
    all += d["count"].integer();
    if (d["syscall"].string() == "ptrace") ptrace += d["count"].integer();
  }
  if (ptrace < 1) return "ptrace is not counted";
  return all >= 1501 ? "counted" : std::to_string(all) + " of 1501 counted";
}

std::string repeated(const Place& p) {
  Ran r = p.tries({{"repeat", "10000", "add_key"}});
  if (!p.inside()) return r.answers[0] == "did" ? "did" : r.answers[0];
  int64_t n = 0;
  for (const Json& d : r.receipt["denials"].array())
    if (d["syscall"].string() == "add_key") n = d["count"].integer();
  size_t lines = 0;
  std::string log = p.world->read(p.world->box_dir(p.box) + "/log.jsonl");
  std::string session = "\"session\":\"" + r.receipt["session"].string() + "\"";
  for (size_t at = 0; at < log.size();) {
    size_t end = std::min(log.find('\n', at), log.size());
    std::string line = log.substr(at, end - at);
    if (line.find("\"kind\":\"denial\"") != std::string::npos && line.find(session) != std::string::npos) lines++;
    at = end + 1;
  }
  if (n != 10000) return std::to_string(n) + " counted";
  return lines == 1 ? "one record, ten thousand counted" : std::to_string(lines) + " records";
}

// A filter of the box's own makes a call a silent success. That helps nobody, and no receipt says that we saw the call.
std::string own_filter(const Place& p) {
  Ran r = p.tries({{"own-filter", "getppid"}, {"own-filter", "add_key"}});
  if (r.answers[0] != "did") return r.answers[0];
  if (!p.inside()) return "did";
  for (const Json& d : r.receipt["denials"].array())
    if (d["syscall"].string() == "getppid" || d["syscall"].string() == "add_key") return "the receipt claims " + d["syscall"].string();
  return "not claimed";
}

// The first program of a run is the one that enters by the old gate.
std::string killed_for_architecture(const Place& p) {
  Ran r = p.command({"{attack}", "itself", "int80", "20"});
  if (!p.inside()) return r.status == 0 ? "did" : "status " + std::to_string(r.status);
  if (r.receipt["outcome"]["status"].string() != "signaled" || r.receipt["outcome"]["code"].integer() != 31)
    return "outcome " + json::canonical(r.receipt["outcome"]);
  return r.receipt["outcome"]["detail"].string().find("architecture") != std::string::npos ? "killed, and said why"
                                                                                          : "the receipt does not say why";
}

}  // namespace

std::vector<Case> cases_of_calls() {
  const std::string notified = "refused, counted";
  return {
      {.id = "A01",
       .what = "io_uring works without the calls that a filter watches",
       .must = "PS",
       .right = "ENOSYS, so that runtimes fall back",
       .tries = {refused("sys io_uring_setup 4 b:256", "ENOSYS"), reaches(refused("sys io_uring_enter -1 0 0 0 0", "ENOSYS"), {"EBADF"}),
                 reaches(refused("sys io_uring_register -1 0 0 0", "ENOSYS"), {"EBADF", "EINVAL"})}},
#if defined(__x86_64__)
      {.id = "A03",
       .what = "bit 30 of the number selects the x32 table",
       .must = "PS",
       .right = "ENOSYS by a test of that bit, whatever this kernel has",
       .tries = {reaches(refused("sys 0x40000029 1 1 0", "ENOSYS"), {"did"}), reaches(refused("sys 0x40000027", "ENOSYS"), {"did"}),
                 reaches(refused("sys 0x40000208 0 0 0", "ENOSYS"), {"EFAULT"}), reaches(refused("sys 0x40000010 0 0x5412 0", "ENOSYS"), {"ENOTTY", "EFAULT"})},
       .elsewhere = {{"tests/tiers/test_filter.cpp", "bit 30 selects another table and is refused by a test of its own (A03)"}}},
      {.id = "A04",
       .what = "int 0x80 enters with the numbers of another architecture",
       .must = "PS",
       .right = "the process is killed, and the receipt says why",
       .tries = {held("int80 20 0 0 0", {"killed 31"}), held("int80 359 1 1 0", {"killed 31"}),
                 answers_outside(held("int80 102 1 0 0", {"killed 31"}), {"EFAULT", "did"}),
                 watched("the first program, by int 0x80", {"killed, and said why"}, killed_for_architecture)},
       .elsewhere = {{"tests/tiers/test_filter.cpp", "another architecture's entry kills the process, whatever the number (A04)"}}},
#endif
      {.id = "A06",
       .what = "a nested user namespace, and every other namespace, by every call that makes one",
       .must = "PS",
       .right = "EPERM; ENOSYS by clone3, so that libraries use clone",
       .tries = namespaces()},
      {.id = "A07", .what = "mounting, by the old and the new calls", .must = "PS", .right = notified, .tries = mount_calls()},
      {.id = "A09",
       .what = "ptrace, process_vm and descriptors of a process beside or above",
       .must = "PS",
       .right = "EPERM or ESRCH, and nothing outside can be named",
       .tries = {refused("ptrace {victim}", "EPERM", "ptrace"), refused("ptrace all", "EPERM", "ptrace"),
                 refused("memory-of read {victim} 0x400000", "EPERM", "process_vm_readv"),
                 reaches(refused("memory-of write {victim} 0x400000", "EPERM", "process_vm_writev"), {"EFAULT", "did"}),
                 reaches(refused("sys pidfd_getfd -1 0 0", "EPERM"), {"EBADF"}), held("list /proc/{victim}", {"ENOENT"}),
                 held("sys pidfd_open {victim} 0", {"ESRCH"})},
       .elsewhere = {{"tests/spawn/test_requests.cpp", "the spawner cannot be read or traced by its own user"}}},
      {.id = "A10",
       .what = "an unfiltered helper in the same pid namespace: its memory, environment and maps",
       .must = "PS",
       .right = "none can be opened but the box's own",
       .tries = {held("proc-file all mem rw", {"EACCES", "EPERM", "ENOENT"}), held("proc-file all mem r", {"EACCES", "EPERM", "ENOENT"}),
                 held("proc-file all environ r", {"EACCES", "EPERM", "ENOENT"}), held("proc-file all maps r", {"EACCES", "EPERM", "ENOENT"}),
                 held("proc-file {victim} mem r", {"ENOENT"}), held("descriptors", {"EBADF"})},
       .elsewhere = {{"tests/spawn/test_confinement.cpp", "pid 1 cannot be read even by the first instruction of the workload"}}},
      {.id = "A12",
       .what = "a program in a nameless file",
       .must = "PS",
       .right = "runs, and proc.tools in not_enforced says that only the first program is limited",
       .tries = {may("run-copy memfd"), may("run-copy {work}")},
       .declared = "proc.tools"},
      {.id = "A13",
       .what = "ld.so maps a file that may not be executed",
       .must = "PS",
       .right = "refused on the noexec mount of /dev/shm, also by ld.so; elsewhere nothing is promised",
       .tries = {outside_by(held("run-copy /dev/shm", {"EACCES", "EPERM"}), "run-copy {work}"),
                 outside_by(held("run-copy /dev/shm ld", {"EACCES", "EPERM"}), "run-copy {work} ld")}},
      {.id = "A15",
       .what = "keyrings of the login that started the box",
       .must = "PS",
       .right = notified,
       .tries = keyring_calls(),
       .elsewhere = {{"tests/spawn/test_confinement.cpp", "the keyring of the login that started it is not the box's"}}},
      {.id = "A16",
       .what = "userfaultfd stops a copy at a chosen byte",
       .must = "PS",
       .right = notified,
       .tries = {refused("sys userfaultfd 1", "EPERM"), refused("sys userfaultfd 0", "EPERM")}},
      {.id = "A18", .what = "socket families and protocols beyond the few that programs need", .must = "PS", .claim = "net.unix", .right = notified, .tries = families()},
      {.id = "A21",
       .what = "vsock does not know network namespaces",
       .must = "PS",
       .claim = "net.mode",
       .right = "EPERM at socket()",
       .tries = {odd_socket(40, 1, 0), odd_socket(40, 2, 0), odd_socket(40, 5, 0)}},
      {.id = "A22",
       .what = "MPTCP passes rules that were made for TCP",
       .must = "PS",
       .claim = "net.mode",
       .right = "EPERM at socket(), under net.mode host, too",
       .tries = {odd_socket(2, 1, 262, "connect mptcp 127.0.0.1 {port}"), odd_socket(10, 1, 262, "connect mptcp ::1 {port6}")}},
      {.id = "A22",
       .what = "the same where the network is granted",
       .must = "P",
       .claim = "net.mode",
       .right = "EPERM at socket()",
       .profile = "host",
       .tries = {odd_socket(2, 1, 262, "connect mptcp 127.0.0.1 {port}")}},
      {.id = "A24", .what = "TCP Fast Open connects without connect()", .must = "PS", .claim = "net.mode", .right = notified, .tries = fast_open()},
      {.id = "A25",
       .what = "UDP, ping and raw sockets under \"no network\"",
       .must = "PS",
       .claim = "net.mode",
       .right = "nothing arrives at the host's loopback; kinds besides stream and datagram are EPERM",
       .tries = {held("connect tcp 127.0.0.1 {port}", {"ECONNREFUSED"}, "host"), held("connect tcp ::1 {port6}", {"ECONNREFUSED"}, "host"),
                 granted_by(watched("a datagram to the host's loopback", {"unheard"}, datagram, {"heard"}), "host"),
                 refused("socket 2 2 1", "EPERM", "socket"), refused("socket 2 3 1", "EPERM", "socket"),
                 refused("socket 10 3 58", "EPERM", "socket"), refused("socket 2 3 255", "EPERM", "socket")}},
      {.id = "A27",
       .what = "typing for the person at the terminal",
       .must = "KPS",
       .right = "the box has a pty of its own or none; EPERM",
       .tries = terminal_calls(),
       .elsewhere = {{"tests/cli/test_whole.cpp", "a shell has a terminal of its own, job control, and leaves one record"},
                     {"tests/spawn/test_pty.cpp", "raw mode ends on return, exit and every deadly signal, with the terminal clean and input dropped"}}},
      {.id = "A28",
       .what = "garbage above the bits that the kernel looks at hides a value from a filter",
       .must = "PS",
       .right = notified,
       .tries = {refused("terminal 0x100005412", "EPERM", "ioctl"),
                 odd_socket(40, 1, 0, "sys socket 0x100000028 1 0"),
                 refused("sys socket 0x10000000002 0x100000003 0x100000001", "EPERM"),
                 refused("fast-open option-high", "EPERM", "setsockopt"), refused("sys personality 0x700040000", "EPERM"),
                 refused("sys chmod s:{attack-copy} 0x100000dff", "EPERM")}},
      {.id = "A29",
       .what = "a filter of the box's own hides its calls",
       .must = "KPS",
       .right = "no listener; a call that its own filter answered is not claimed as observed",
       .tries = {refused("listener", "EPERM", "seccomp"), watched("a filter that lies", {"not claimed"}, own_filter)}},
      {.id = "A39",
       .what = "the supervisor of the filter dies",
       .must = "KPS",
       .right = "the whole box dies",
       .elsewhere = {{"tests/endurance/test_killed.cpp", "the spawner killed in the middle of a run: the run ends with 125 and no survivor"},
                     {"tests/spawn/test_lifetime.cpp", "kill -9 of the host process or of the spawner leaves no process of a confined box"}}},
      {.id = "A40",
       .what = "numbers that are newer than the filter, 0 to 1023",
       .must = "PS",
       .right = "what no list names answers ENOSYS and is listed",
       .tries = {watched("every number", {"ENOSYS and listed"}, whole_table)},
       .elsewhere = {{"tests/tiers/test_filter.cpp", "a number that no list names answers ENOSYS; nothing unlisted is allowed (A40)"}}},
      {.id = "A40",
       .what = "a flood of made-up numbers before the one that matters",
       .must = "KPS",
       .right = "all are counted, and the real one by its name",
       .tries = {watched("a call after a flood", {"counted"}, after_a_flood)}},
      {.id = "A42", .what = "calls that no tool chain needs", .must = "PS", .right = notified, .tries = odd_calls()},
      {.id = "E21",
       .what = "a flood of refused calls",
       .must = "KPS",
       .right = "one record and one count, whatever the number",
       .tries = {watched("ten thousand refusals", {"one record, ten thousand counted"}, repeated)},
       .elsewhere = {{"tests/spawn/test_notify.cpp", "ten thousand refused calls are all answered, counted and told once"}}},
  };
}

}  // namespace h5i::adversary
