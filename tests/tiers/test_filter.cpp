#include <linux/audit.h>
#include <seccomp.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "baked.hpp"
#include "filter.hpp"
#include "tests/support/catch.hpp"
#include "tests/tiers/bpf.hpp"

using namespace h5i::confined;

namespace {

constexpr int kAllow = 0, kKill = -1, kBroken = -2;  // and an errno above zero

uint32_t audit_of(Arch a) { return a == Arch::X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64; }
uint32_t scmp_of(Arch a) { return a == Arch::X86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64; }

struct Box {
  Arch arch;
  bool unix_sockets;
  Filter filter;

  Box(Arch a, bool u) : arch(a), unix_sockets(u) {
    auto built = build_filter({a, u});
    REQUIRE(built.ok());
    filter = *built;
  }
  // -1 where this architecture does not have the call.
  int number(const char* name) const { return seccomp_syscall_resolve_name_arch(scmp_of(arch), name); }

  int raw(uint32_t audit_arch, uint32_t nr, std::vector<uint64_t> args = {}) const {
    seccomp_data d{};
    d.nr = static_cast<int>(nr);
    d.arch = audit_arch;
    d.instruction_pointer = 0x400000;
    for (size_t i = 0; i < args.size(); i++) d.args[i] = args[i];
    auto action = h5i::tests::run_bpf(filter.program, d);
    if (!action) return kBroken;
    switch (*action) {
      case SECCOMP_RET_ALLOW:
        return kAllow;
      case SECCOMP_RET_KILL_PROCESS:
        return kKill;
      case SECCOMP_RET_USER_NOTIF: {
        auto at = filter.errnos.find(nr);
        return at == filter.errnos.end() ? kDefaultErrno : at->second;
      }
      default:
        return kBroken;
    }
  }
  int call(const char* name, std::vector<uint64_t> args = {}) const {
    return raw(audit_of(arch), static_cast<uint32_t>(number(name)), std::move(args));
  }
};

std::vector<Box> all_boxes() {
  std::vector<Box> out;
  for (Arch a : {Arch::X86_64, Arch::AARCH64})
    for (bool u : {false, true}) out.emplace_back(a, u);
  return out;
}

struct Case {
  const char* id;  // of the escape case, or the rule
  const char* name;
  std::vector<uint64_t> args;
  int expected;
};

constexpr uint64_t kHigh = 0xdead00000000;  // garbage where the kernel does not look
constexpr uint64_t kNewUser = 0x10000000;

// Same answer on both architectures, with and without unix sockets.
const std::vector<Case> kCases = {
    {"A01", "io_uring_setup", {4, 0}, ENOSYS},
    {"A01", "io_uring_enter", {}, ENOSYS},
    {"A01", "io_uring_register", {}, ENOSYS},
    {"A06", "unshare", {kNewUser}, EPERM},
    {"A06", "unshare", {0x80}, EPERM},
    {"A06", "unshare", {0x00020000}, EPERM},
    {"A06 control", "unshare", {0x400}, kAllow},  // CLONE_FILES
    {"A06", "clone", {kNewUser | 17}, EPERM},
    {"A06", "clone", {0x40000000 | 17}, EPERM},
    {"A06 control", "clone", {0x3d0f00}, kAllow},  // a thread
    {"A06 control", "clone", {kHigh | 17}, kAllow},
    {"A06", "clone3", {}, ENOSYS},
    {"A06", "setns", {3, 0}, EPERM},
    {"A07", "mount", {}, EPERM},
    {"A07", "umount2", {}, EPERM},
    {"A07", "pivot_root", {}, EPERM},
    {"A07", "chroot", {}, EPERM},
    {"A07", "fsopen", {}, ENOSYS},
    {"A07", "fsconfig", {}, ENOSYS},
    {"A07", "fsmount", {}, ENOSYS},
    {"A07", "fspick", {}, ENOSYS},
    {"A07", "open_tree", {}, ENOSYS},
    {"A07", "move_mount", {}, ENOSYS},
    {"A07", "mount_setattr", {}, ENOSYS},
    {"A09", "ptrace", {0x4206}, EPERM},
    {"A09", "process_vm_readv", {}, EPERM},
    {"A09", "process_vm_writev", {}, EPERM},
    {"A09", "pidfd_getfd", {}, EPERM},
    {"A09", "process_madvise", {}, ENOSYS},
    {"A12 allowed and said so", "memfd_create", {}, kAllow},
    {"A15", "keyctl", {0, static_cast<uint64_t>(-3), 1}, EPERM},
    {"A15", "add_key", {}, EPERM},
    {"A15", "request_key", {}, EPERM},
    {"A16", "userfaultfd", {1}, EPERM},
    {"A21", "socket", {40, 1, 0}, EPERM},
    {"A22", "socket", {2, 1, 262}, EPERM},
    {"A22", "socket", {10, 1, 262}, EPERM},
    {"A19", "socket", {17, 3, 0x300}, EPERM},
    {"A24", "sendto", {3, 0, 1, 0x20000000, 0, 16}, EPERM},
    {"A24", "sendmsg", {3, 0, 0x20000000}, EPERM},
    {"A24", "sendmmsg", {3, 0, 1, 0x20000000}, EPERM},
    {"A24 control", "sendto", {3, 0, 1, 0x4000, 0, 16}, kAllow},
    {"A24", "setsockopt", {3, 6, 30}, EPERM},
    {"A24", "setsockopt", {3, kHigh | 6, kHigh | 30}, EPERM},
    {"A24 control", "setsockopt", {3, 6, 1}, kAllow},
    {"A24 control", "setsockopt", {3, 1, 30}, kAllow},
    {"TCP_ULP", "setsockopt", {3, 6, 31}, EPERM},
    {"A25", "socket", {2, 2, 1}, EPERM},  // ping
    {"A25", "socket", {2, 3, 1}, EPERM},  // raw
    {"A25", "socket", {10, 2, 58}, EPERM},
    {"A25", "socket", {2, 3, 0}, EPERM},
    {"loopback", "socket", {2, 1, 0}, kAllow},
    {"loopback", "socket", {kHigh | 2, kHigh | 0x80801, kHigh | 6}, kAllow},  // close-on-exec, non-blocking
    {"loopback", "socket", {10, 2, 17}, kAllow},
    {"getifaddrs", "socket", {16, 3, 0}, kAllow},
    {"netlink", "socket", {16, 3, 9}, EPERM},   // audit
    {"netlink", "socket", {16, 3, 12}, EPERM},  // netfilter
    {"netlink", "socket", {16, 3, 15}, EPERM},  // uevents
    {"A27", "ioctl", {0, 0x5412}, EPERM},
    {"A27", "ioctl", {0, 0x541C}, EPERM},
    {"A28", "ioctl", {0, 0x100005412}, EPERM},
    {"A28", "ioctl", {0, kHigh | 0x541C}, EPERM},
    {"TIOCCONS", "ioctl", {0, 0x541D}, EPERM},
    {"TIOCSETD", "ioctl", {0, 0x5423}, EPERM},
    {"A27 control", "ioctl", {0, 0x5401}, kAllow},  // TCGETS
    {"A27 control", "ioctl", {0, 0x5413}, kAllow},  // TIOCGWINSZ
    {"A29", "seccomp", {1, 8}, EPERM},
    {"A29", "seccomp", {1, 8 | 1}, EPERM},
    {"A29 narrowing", "seccomp", {1, 0}, kAllow},
    {"A29 narrowing", "seccomp", {1, 1}, kAllow},
    {"A33", "openat2", {}, ENOSYS},
    {"A33", "fchmodat2", {}, ENOSYS},
    {"A42", "personality", {0x0400000}, EPERM},  // READ_IMPLIES_EXEC
    {"A42", "personality", {0x0040000}, EPERM},  // ADDR_NO_RANDOMIZE
    {"A42 query", "personality", {0xffffffff}, kAllow},
    {"A42", "quotactl", {}, EPERM},
    {"A42", "acct", {}, EPERM},
    {"A42", "kcmp", {}, EPERM},
    {"A42", "lookup_dcookie", {}, EPERM},
    {"A42", "swapon", {}, EPERM},
    {"A42", "swapoff", {}, EPERM},
    {"A42", "reboot", {}, EPERM},
    {"A42", "kexec_load", {}, EPERM},
    {"A42", "kexec_file_load", {}, EPERM},
    {"A42", "init_module", {}, EPERM},
    {"A42", "finit_module", {}, EPERM},
    {"A42", "delete_module", {}, EPERM},
    {"A42", "settimeofday", {}, EPERM},
    {"A42", "clock_settime", {}, EPERM},
    {"A42", "adjtimex", {}, EPERM},
    {"A42", "clock_adjtime", {}, EPERM},
    {"A42", "sethostname", {}, EPERM},
    {"A42", "setdomainname", {}, EPERM},
    {"A42", "syslog", {}, EPERM},
    {"A42", "bpf", {}, EPERM},
    {"A42", "perf_event_open", {}, EPERM},
    {"A42", "fanotify_init", {}, EPERM},
    {"A42", "open_by_handle_at", {}, EPERM},
    {"A42", "name_to_handle_at", {}, EPERM},
    {"A42", "vhangup", {}, EPERM},
    {"A42", "migrate_pages", {}, EPERM},
    {"A42", "move_pages", {}, EPERM},
    // set-id bits, by every call that takes a mode
    {"set-id", "fchmod", {3, 04755}, EPERM},
    {"set-id", "fchmod", {3, 02755}, EPERM},
    {"set-id control", "fchmod", {3, 01755}, kAllow},
    {"set-id", "fchmodat", {3, 0, 06000}, EPERM},
    {"set-id", "mkdirat", {3, 0, 02755}, EPERM},
    {"set-id control", "mkdirat", {3, 0, 0755}, kAllow},
    {"set-id", "openat", {3, 0, 0101, 04755}, EPERM},
    {"set-id", "openat", {3, 0, 020200002, 04755}, EPERM},  // O_TMPFILE
    {"set-id control", "openat", {3, 0, 0101, 0755}, kAllow},
    {"set-id control", "openat", {3, 0, 0, 04755}, kAllow},  // no file is made: the mode is garbage
    {"set-id", "mknodat", {3, 0, 0100000 | 04755}, EPERM},
    {"B19", "mknodat", {3, 0, 0060000 | 0644, 0x800}, EPERM},
    {"B19", "mknodat", {3, 0, 0020000 | 0666, 0x101}, EPERM},
    {"B19 control", "mknodat", {3, 0, 0010000 | 0644}, kAllow},
    {"control", "execve", {}, kAllow},
    {"control", "execveat", {}, kAllow},
    {"control", "futex", {}, kAllow},
    {"control", "socketpair", {1, 1, 0}, kAllow},
    {"socketpair", "socketpair", {2, 1, 0}, EPERM},
    {"control", "prctl", {15}, kAllow},
    {"prctl", "prctl", {35}, EPERM},  // PR_SET_MM
    {"prctl", "prctl", {62}, EPERM},  // PR_SCHED_CORE
};

// Calls that only x86_64 has.
const std::vector<Case> kOldCases = {
    {"set-id", "chmod", {0, 04755}, EPERM},
    {"set-id control", "chmod", {0, 0755}, kAllow},
    {"set-id", "mkdir", {0, 02755}, EPERM},
    {"set-id", "creat", {0, 04755}, EPERM},
    {"set-id", "open", {0, 0101, 04755}, EPERM},
    {"set-id control", "open", {0, 0, 04755}, kAllow},
    {"set-id control", "open", {0, 0101, 0644}, kAllow},
    {"B19", "mknod", {0, 0060000 | 0644}, EPERM},
    {"A42", "iopl", {3}, EPERM},
    {"A42", "ioperm", {}, EPERM},
    {"A42", "create_module", {}, ENOSYS},
    {"A42", "modify_ldt", {}, EPERM},
    {"control", "fork", {}, kAllow},
    {"control", "arch_prctl", {}, kAllow},
};

}  // namespace

TEST_CASE("every call of the table is answered as the table says, on both architectures") {
  for (const Box& box : all_boxes()) {
    auto check = [&](const Case& c) {
      INFO(arch_name(box.arch) << " " << c.id << " " << c.name);
      REQUIRE(box.number(c.name) >= 0);
      CHECK(box.call(c.name, c.args) == c.expected);
    };
    for (const Case& c : kCases) check(c);
    if (box.arch == Arch::X86_64)
      for (const Case& c : kOldCases) check(c);
  }
}

TEST_CASE("socket families: only the list, whatever the type (A18)") {
  for (const Box& box : all_boxes())
    for (uint64_t family = 0; family <= 64; family++)
      for (uint64_t type = 0; type <= 10; type++) {
        bool allowed = ((family == 2 || family == 10) && (type == 1 || type == 2)) ||
                       (family == 16 && (type == 2 || type == 3)) ||
                       (family == 1 && box.unix_sockets && (type == 1 || type == 2 || type == 5));
        INFO(arch_name(box.arch) << " socket(" << family << ", " << type << ", 0)");
        CHECK(box.call("socket", {family, type, 0}) == (allowed ? kAllow : EPERM));
      }
}

TEST_CASE("unix sockets are made only when the profile grants them; a pair always is") {
  Box without(native_arch(), false), with(native_arch(), true);
  CHECK(without.call("socket", {1, 1, 0}) == EPERM);
  CHECK(with.call("socket", {1, 1, 0}) == kAllow);
  CHECK(with.call("socket", {1, 0x80001, 0}) == kAllow);
  CHECK(without.call("socketpair", {1, 1, 0}) == kAllow);
}

TEST_CASE("another architecture's entry kills the process, whatever the number (A04)") {
  for (const Box& box : all_boxes()) {
    for (uint32_t other : {static_cast<uint32_t>(AUDIT_ARCH_I386), static_cast<uint32_t>(AUDIT_ARCH_ARM),
                           audit_of(box.arch == Arch::X86_64 ? Arch::AARCH64 : Arch::X86_64), 0u})
      for (uint32_t nr : {0u, 1u, 102u, 359u, 400u, 0xffffffffu}) CHECK(box.raw(other, nr) == kKill);
    CHECK(box.call("read") == kAllow);  // control
  }
}

TEST_CASE("bit 30 selects another table and is refused by a test of its own (A03)") {
  Box box(Arch::X86_64, true);
  for (uint32_t nr = 0; nr < 1024; nr++) {
    int answer = box.raw(AUDIT_ARCH_X86_64, 0x40000000u | nr, {1, 1, 0});
    INFO(nr);
    CHECK(answer == ENOSYS);
  }
  CHECK(box.raw(AUDIT_ARCH_X86_64, 41, {1, 1, 0}) == kAllow);  // control: socket without the bit
}

TEST_CASE("a number that no list names answers ENOSYS; nothing unlisted is allowed (A40)") {
  std::set<std::string> listed;
  for (std::string_view n : listed_names()) listed.emplace(n);
  for (const Box& box : all_boxes()) {
    int unknown = 0, allowed = 0;
    for (uint32_t nr = 0; nr < 1024; nr++) {
      char* name = seccomp_syscall_resolve_num_arch(scmp_of(box.arch), static_cast<int>(nr));
      int answer = box.raw(audit_of(box.arch), nr);
      INFO(arch_name(box.arch) << " " << nr << " " << (name ? name : "?"));
      CHECK(answer != kBroken);
      CHECK(answer != kKill);
      if (name == nullptr) {
        unknown++;
        CHECK(answer == ENOSYS);
      } else if (answer == kAllow) {
        allowed++;
        CHECK(listed.count(name) == 1);
      } else if (nr >= 424 && listed.count(name) == 0) {
        CHECK((answer == ENOSYS || nr == 438));
      }
      free(name);
    }
    CHECK(unknown > 500);
    CHECK(allowed > 200);
  }
}

TEST_CASE("every listed name is a system call, named once in one list") {
  std::set<std::string_view> seen;
  for (std::string_view name : listed_names()) {
    INFO(name);
    CHECK(seccomp_syscall_resolve_name(std::string(name).c_str()) != __NR_SCMP_ERROR);
    if (treatment_of(name) == Treatment::ALLOWED) CHECK(seen.insert(name).second);
  }
  CHECK(treatment_of("mount") == Treatment::REFUSED);
  CHECK(treatment_of("socket") == Treatment::BY_ARGUMENT);
}

TEST_CASE("the filters that the plugin carries are those that the compiler gives") {
  auto decoded = [](std::string_view text) {
    auto value = [](char c) {
      return c >= 'A' && c <= 'Z'   ? c - 'A'
             : c >= 'a' && c <= 'z' ? c - 'a' + 26
             : c >= '0' && c <= '9' ? c - '0' + 52
             : c == '+'             ? 62
                                    : 63;
    };
    std::string out;
    for (size_t i = 0; i + 4 <= text.size(); i += 4) {
      uint32_t w = 0;
      int pad = 0;
      for (size_t k = 0; k < 4; k++) {
        pad += text[i + k] == '=';
        w = w << 6 | static_cast<uint32_t>(text[i + k] == '=' ? 0 : value(text[i + k]));
      }
      for (int k = 0; k < 3 - pad; k++) out += static_cast<char>(w >> (16 - 8 * k) & 0xff);
    }
    return out;
  };
  for (const Box& box : all_boxes()) {
    const BakedFilter& baked = baked_filter(box.arch, box.unix_sockets);
    CHECK(baked.arch == box.arch);
    CHECK(baked.unix_sockets == box.unix_sockets);
    CHECK(decoded(baked.program_base64) == box.filter.bytes());
    CHECK(baked.sha256.size() == 64);
    REQUIRE(baked.errno_count == box.filter.errnos.size());
    for (uint32_t i = 0; i < baked.errno_count; i++)
      CHECK(box.filter.errnos.at(baked.errnos[i].number) == baked.errnos[i].value);
  }
}

TEST_CASE("the interpreter refuses what seccomp refuses") {
  seccomp_data d{};
  CHECK_FALSE(h5i::tests::run_bpf({{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0}}, d));
  CHECK_FALSE(h5i::tests::run_bpf({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 62}}, d));
  CHECK_FALSE(h5i::tests::run_bpf({}, d));
  CHECK(h5i::tests::run_bpf({{BPF_RET | BPF_K, 0, 0, 7}}, d) == 7u);
}
