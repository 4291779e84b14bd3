#include "core/os/seccomp.hpp"

#include <cstring>

#include "tests/support/catch.hpp"

using namespace h5i;

namespace {

std::string bytes(const std::vector<sock_filter>& f) {
  return {reinterpret_cast<const char*>(f.data()), f.size() * sizeof(sock_filter)};
}
uint32_t run(const std::vector<sock_filter>& f, seccomp_data d = {}) {
  auto p = os::seccomp::decode(bytes(f));
  REQUIRE(p);
  return os::seccomp::evaluate(*p, d);
}
sock_filter stmt(unsigned code, unsigned k) { return BPF_STMT(static_cast<uint16_t>(code), k); }
sock_filter jump(unsigned code, unsigned k, unsigned t, unsigned f) {
  return BPF_JUMP(static_cast<uint16_t>(code), k, static_cast<uint8_t>(t), static_cast<uint8_t>(f));
}
const sock_filter kRetA = stmt(BPF_RET | BPF_A, 0);

}  // namespace

TEST_CASE("the evaluator reads the call as the kernel does, little half of an argument first", "[os][seccomp]") {
  seccomp_data d{};
  d.nr = 41;
  d.arch = 0xC000003E;
  d.args[1] = 0x1122334455667788;
  auto load = [&](uint32_t at) { return run({stmt(BPF_LD | BPF_W | BPF_ABS, at), kRetA}, d); };
  CHECK(load(0) == 41);
  CHECK(load(4) == 0xC000003E);
  CHECK(load(24) == 0x55667788);
  CHECK(load(28) == 0x11223344);
  CHECK(run({stmt(BPF_LD | BPF_W | BPF_LEN, 0), kRetA}) == 64);
}

TEST_CASE("arithmetic, memory and branches", "[os][seccomp]") {
  auto alu = [&](unsigned op, uint32_t a, uint32_t b) {
    return run({stmt(BPF_LD | BPF_IMM, a), stmt(BPF_ALU | op | BPF_K, b), kRetA});
  };
  CHECK(alu(BPF_ADD, 0xffffffff, 2) == 1);
  CHECK(alu(BPF_SUB, 1, 2) == 0xffffffff);
  CHECK(alu(BPF_MUL, 6, 7) == 42);
  CHECK(alu(BPF_DIV, 42, 5) == 8);
  CHECK(alu(BPF_AND, 12, 10) == 8);
  CHECK(alu(BPF_OR, 12, 10) == 14);
  CHECK(alu(BPF_XOR, 12, 10) == 6);
  CHECK(alu(BPF_LSH, 1, 31) == 0x80000000);
  CHECK(alu(BPF_RSH, 0x80000000, 31) == 1);
  CHECK(run({stmt(BPF_LD | BPF_IMM, 5), stmt(BPF_ALU | BPF_NEG, 0), kRetA}) == static_cast<uint32_t>(-5));
  CHECK(run({stmt(BPF_LD | BPF_IMM, 7), stmt(BPF_ST, 3), stmt(BPF_LD | BPF_IMM, 0), stmt(BPF_LDX | BPF_MEM, 3),
             stmt(BPF_MISC | BPF_TXA, 0), kRetA}) == 7);
  auto branch = [&](unsigned op, uint32_t a, uint32_t b) {
    return run({stmt(BPF_LD | BPF_IMM, a), jump(BPF_JMP | op | BPF_K, b, 1, 0), stmt(BPF_RET | BPF_K, 0),
                stmt(BPF_RET | BPF_K, 1)});
  };
  CHECK(branch(BPF_JEQ, 3, 3) == 1);
  CHECK(branch(BPF_JEQ, 3, 4) == 0);
  CHECK(branch(BPF_JGT, 3, 3) == 0);
  CHECK(branch(BPF_JGE, 3, 3) == 1);
  CHECK(branch(BPF_JSET, 6, 2) == 1);
  CHECK(branch(BPF_JSET, 6, 8) == 0);
  CHECK(run({stmt(BPF_JMP | BPF_JA, 1), stmt(BPF_RET | BPF_K, 0), stmt(BPF_RET | BPF_K, 9)}) == 9);
}

TEST_CASE("what seccomp would not take is not taken", "[os][seccomp]") {
  auto refused = [](const std::vector<sock_filter>& f) { return !os::seccomp::decode(bytes(f)); };
  const sock_filter ret = stmt(BPF_RET | BPF_K, 0);
  CHECK_FALSE(refused({ret}));
  CHECK(!os::seccomp::decode(""));
  CHECK(!os::seccomp::decode("1234567"));
  CHECK(refused({stmt(BPF_LD | BPF_W | BPF_ABS, 64), ret}));          // past the end
  CHECK(refused({stmt(BPF_LD | BPF_W | BPF_ABS, 2), ret}));           // not aligned
  CHECK(refused({stmt(BPF_LD | BPF_W | BPF_ABS, 0xfffffffc), ret}));  // wraps
  CHECK(refused({stmt(BPF_LD | BPF_B | BPF_ABS, 0), ret}));           // bytes are for packets
  CHECK(refused({stmt(BPF_JMP | BPF_JA, 1), ret}));                   // jumps out
  CHECK(refused({jump(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), ret}));
  CHECK(refused({stmt(BPF_ST, 16), ret}));
  CHECK(refused({stmt(BPF_ALU | BPF_DIV | BPF_K, 0), ret}));
  CHECK(refused({stmt(BPF_ALU | BPF_LSH | BPF_K, 32), ret}));
  CHECK(refused({stmt(BPF_LD | BPF_IMM, 0)}));  // no return at the end
  CHECK(refused(std::vector<sock_filter>(4097, ret)));
  CHECK_FALSE(refused(std::vector<sock_filter>(4096, ret)));
}

TEST_CASE("this kernel's notification structures have the sizes that are compiled in, or the feature is absent",
          "[os][seccomp]") {
  auto sizes = os::seccomp::notify_sizes();
  if (sizes) {
    CHECK(sizes->request == sizeof(seccomp_notif));
    CHECK(sizes->response == sizeof(seccomp_notif_resp));
  }
}
