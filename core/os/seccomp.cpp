#include "core/os/seccomp.hpp"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace h5i::os::seccomp {
namespace {

uint32_t load_word(const seccomp_data& d, uint32_t offset) {
  uint32_t v;
  memcpy(&v, reinterpret_cast<const char*>(&d) + offset, sizeof v);
  return v;
}

// The instructions that the kernel's seccomp_check_filter() lets through, and where they may jump.
bool known(const sock_filter& f, size_t at, size_t n) {
  size_t left = n - at - 1;
  switch (f.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      return f.k % 4 == 0 && f.k + 4 <= sizeof(seccomp_data) && f.k < sizeof(seccomp_data);
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_ALU | BPF_ADD | BPF_K:
    case BPF_ALU | BPF_ADD | BPF_X:
    case BPF_ALU | BPF_SUB | BPF_K:
    case BPF_ALU | BPF_SUB | BPF_X:
    case BPF_ALU | BPF_MUL | BPF_K:
    case BPF_ALU | BPF_MUL | BPF_X:
    case BPF_ALU | BPF_DIV | BPF_X:
    case BPF_ALU | BPF_AND | BPF_K:
    case BPF_ALU | BPF_AND | BPF_X:
    case BPF_ALU | BPF_OR | BPF_K:
    case BPF_ALU | BPF_OR | BPF_X:
    case BPF_ALU | BPF_XOR | BPF_K:
    case BPF_ALU | BPF_XOR | BPF_X:
    case BPF_ALU | BPF_LSH | BPF_X:
    case BPF_ALU | BPF_RSH | BPF_X:
    case BPF_ALU | BPF_NEG:
      return true;
    case BPF_ALU | BPF_DIV | BPF_K:
      return f.k != 0;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
      return f.k < 32;
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
      return f.k < BPF_MEMWORDS;
    case BPF_JMP | BPF_JA:
      return f.k < left;
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JEQ | BPF_X:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_X:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_X:
    case BPF_JMP | BPF_JSET | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_X:
      return f.jt < left && f.jf < left;
    default:
      return false;
  }
}

uint32_t alu(uint16_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b ? a / b : 0;
    case BPF_AND:
      return a & b;
    case BPF_OR:
      return a | b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return b < 32 ? a << b : 0;
    case BPF_RSH:
      return b < 32 ? a >> b : 0;
    default:
      return 0u - a;  // BPF_NEG
  }
}

bool test(uint16_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGE:
      return a >= b;
    case BPF_JGT:
      return a > b;
    default:
      return (a & b) != 0;  // BPF_JSET
  }
}

}  // namespace

Result<Program> decode(std::string_view bytes) {
  auto bad = [](std::string why) { return make_error(Errc::INVALID, "not a system-call filter", std::move(why)); };
  if (bytes.empty() || bytes.size() % sizeof(sock_filter) != 0) return bad("its length is no multiple of 8");
  size_t n = bytes.size() / sizeof(sock_filter);
  if (n > kMaxInstructions) return bad(std::to_string(n) + " instructions, the kernel takes 4096");
  Program p(n);
  memcpy(p.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < n; i++)
    if (!known(p[i], i, n)) return bad("instruction " + std::to_string(i) + " is not one that seccomp takes");
  if ((p[n - 1].code & 7) != BPF_RET) return bad("it does not end in a return");
  return p;
}

uint32_t evaluate(const Program& program, const seccomp_data& data) {
  uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = {};
  for (size_t pc = 0; pc < program.size(); pc++) {
    const sock_filter& f = program[pc];
    switch (f.code & 7) {
      case BPF_LD:
        switch (f.code & 0xe0) {
          case BPF_ABS:
            a = load_word(data, f.k);
            break;
          case BPF_IMM:
            a = f.k;
            break;
          case BPF_MEM:
            a = mem[f.k];
            break;
          default:
            a = sizeof(seccomp_data);  // BPF_LEN
        }
        break;
      case BPF_LDX:
        switch (f.code & 0xe0) {
          case BPF_IMM:
            x = f.k;
            break;
          case BPF_MEM:
            x = mem[f.k];
            break;
          default:
            x = sizeof(seccomp_data);
        }
        break;
      case BPF_ST:
        mem[f.k] = a;
        break;
      case BPF_STX:
        mem[f.k] = x;
        break;
      case BPF_ALU: {
        uint16_t op = f.code & 0xf0;
        uint32_t operand = f.code & BPF_X ? x : f.k;
        if (op == BPF_DIV && operand == 0) return SECCOMP_RET_KILL_THREAD;  // as the kernel's: a division by zero is 0
        a = alu(op, a, operand);
        break;
      }
      case BPF_JMP: {
        uint16_t op = f.code & 0xf0;
        if (op == BPF_JA)
          pc += f.k;
        else
          pc += test(op, a, f.code & BPF_X ? x : f.k) ? f.jt : f.jf;
        break;
      }
      case BPF_RET:
        return f.code & BPF_A ? a : f.k;
      default:
        f.code& BPF_TXA ? a = x : x = a;  // BPF_MISC
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

std::optional<NotifySizes> notify_sizes() {
  seccomp_notif_sizes s{};
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &s) != 0) return std::nullopt;
  // A kernel that reads or writes more than our structures hold would write past them: refuse rather than guess.
  if (s.seccomp_notif != sizeof(seccomp_notif) || s.seccomp_notif_resp != sizeof(seccomp_notif_resp))
    return std::nullopt;
  return NotifySizes{s.seccomp_notif, s.seccomp_notif_resp, s.seccomp_data};
}

Result<std::optional<seccomp_notif>> receive(int listener) {
  seccomp_notif n{};  // must be zero on entry
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) == 0) return std::optional<seccomp_notif>(n);
  if (errno == ENOENT || errno == EINTR) return std::optional<seccomp_notif>();
  return sys_error("receive a notification");
}

Result<bool> answer_errno(int listener, uint64_t id, int err) {
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) {
    if (errno == ENOENT) return false;
    return sys_error("check a notification");
  }
  seccomp_notif_resp r{};
  r.id = id;
  r.error = -err;
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r) == 0) return true;
  if (errno == ENOENT) return false;
  return sys_error("answer a notification");
}

}  // namespace h5i::os::seccomp
