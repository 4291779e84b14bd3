// Runs a seccomp filter the way the kernel does: the instructions that seccomp allows (seccomp_check_filter), nothing
// more; an instruction that it does not know is a failure, not a guess.
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstring>
#include <optional>
#include <vector>

namespace h5i::tests {

inline std::optional<uint32_t> run_bpf(const std::vector<sock_filter>& program, const seccomp_data& data) {
  uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {};
  for (size_t pc = 0; pc < program.size(); pc++) {
    const sock_filter& i = program[pc];
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (i.k % 4 != 0 || i.k + 4 > sizeof data) return std::nullopt;
        memcpy(&a, reinterpret_cast<const char*>(&data) + i.k, 4);
        break;
      case BPF_LD | BPF_W | BPF_LEN:
        a = sizeof data;
        break;
      case BPF_LD | BPF_IMM:
        a = i.k;
        break;
      case BPF_LDX | BPF_IMM:
        x = i.k;
        break;
      case BPF_LD | BPF_MEM:
        a = memory[i.k % BPF_MEMWORDS];
        break;
      case BPF_LDX | BPF_MEM:
        x = memory[i.k % BPF_MEMWORDS];
        break;
      case BPF_ST:
        memory[i.k % BPF_MEMWORDS] = a;
        break;
      case BPF_STX:
        memory[i.k % BPF_MEMWORDS] = x;
        break;
      case BPF_MISC | BPF_TAX:
        x = a;
        break;
      case BPF_MISC | BPF_TXA:
        a = x;
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= i.k;
        break;
      case BPF_ALU | BPF_AND | BPF_X:
        a &= x;
        break;
      case BPF_ALU | BPF_OR | BPF_K:
        a |= i.k;
        break;
      case BPF_ALU | BPF_RSH | BPF_K:
        a >>= i.k;
        break;
      case BPF_ALU | BPF_LSH | BPF_K:
        a <<= i.k;
        break;
      case BPF_ALU | BPF_ADD | BPF_K:
        a += i.k;
        break;
      case BPF_ALU | BPF_SUB | BPF_K:
        a -= i.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += i.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += a == i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        pc += a > i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        pc += a >= i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        pc += (a & i.k) != 0 ? i.jt : i.jf;
        break;
      case BPF_RET | BPF_K:
        return i.k;
      case BPF_RET | BPF_A:
        return a;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;  // the kernel refuses a program that can run off its end
}

}  // namespace h5i::tests
