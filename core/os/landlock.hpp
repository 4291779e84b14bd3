// Landlock with constants of our own up to ABI 7, so that what is built on an old kernel's headers still uses a new
// kernel's rights, and the attribute has the size that the running kernel knows (E2BIG otherwise).
#pragma once
#include <cstddef>
#include <cstdint>

namespace h5i::os::landlock {

enum : uint64_t {
  kExecute = 1ull << 0,
  kWriteFile = 1ull << 1,
  kReadFile = 1ull << 2,
  kReadDir = 1ull << 3,
  kRemoveDir = 1ull << 4,
  kRemoveFile = 1ull << 5,
  kMakeChar = 1ull << 6,
  kMakeDir = 1ull << 7,
  kMakeReg = 1ull << 8,
  kMakeSock = 1ull << 9,
  kMakeFifo = 1ull << 10,
  kMakeBlock = 1ull << 11,
  kMakeSym = 1ull << 12,
  kRefer = 1ull << 13,     // ABI 2
  kTruncate = 1ull << 14,  // ABI 3
  kIoctlDev = 1ull << 15,  // ABI 5
};
// The rights that mean something on a file that is no directory; the kernel refuses the others there (EINVAL).
constexpr uint64_t kFileRights = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

enum : uint64_t { kBindTcp = 1, kConnectTcp = 2 };               // ABI 4
enum : uint64_t { kScopeAbstractSocket = 1, kScopeSignal = 2 };  // ABI 6
constexpr int kNewestAbi = 7;                                    // 7 adds flags for audit only

struct RulesetAttr {
  uint64_t handled_fs = 0;
  uint64_t handled_net = 0;
  uint64_t scoped = 0;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t access;
  int32_t parent_fd;
};
struct NetPort {
  uint64_t access;
  uint64_t port;
};
constexpr int kRulePathBeneath = 1;
constexpr int kRuleNetPort = 2;

// Everything that this ABI can handle. 0 for ABI 0.
constexpr uint64_t all_fs(int abi) {
  return abi <= 0 ? 0 : abi == 1 ? 0x1fff : abi == 2 ? 0x3fff : abi <= 4 ? 0x7fff : 0xffff;
}
constexpr uint64_t all_net(int abi) { return abi >= 4 ? 3 : 0; }
constexpr uint64_t all_scopes(int abi) { return abi >= 6 ? 3 : 0; }
constexpr size_t attr_size(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

// What the running kernel offers; 0 when Landlock is absent or switched off at boot.
int abi();

}  // namespace h5i::os::landlock
