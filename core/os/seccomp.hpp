// System-call filters: an evaluator of the instructions that seccomp accepts (for checks before a filter is used, and
// for tests of filters of another architecture), and the ioctls of user notification.
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::os::seccomp {

#if defined(__x86_64__)
constexpr uint32_t kNativeArch = 0xC000003E;  // AUDIT_ARCH_X86_64
#else
constexpr uint32_t kNativeArch = 0xC00000B7;  // AUDIT_ARCH_AARCH64
#endif

using Program = std::vector<sock_filter>;
constexpr size_t kMaxInstructions = 4096;  // BPF_MAXINSNS

// Little-endian struct sock_filter[], as libseccomp exports it. INVALID when it is no program that seccomp would take.
Result<Program> decode(std::string_view bytes);
// SECCOMP_RET_* | data. The program must come from decode(): jumps stay inside and only go forward.
uint32_t evaluate(const Program& program, const seccomp_data& data);

struct NotifySizes {
  uint16_t request, response, data;
};
// What this kernel reads and writes; nothing when user notification is absent or its sizes are not those we know.
std::optional<NotifySizes> notify_sizes();

// One notification, received. Nothing: it vanished meanwhile (its process died or was interrupted).
Result<std::optional<seccomp_notif>> receive(int listener);
// Answers with an errno after checking that the call still waits; never lets the call continue. False: it vanished.
Result<bool> answer_errno(int listener, uint64_t id, int err);

}  // namespace h5i::os::seccomp
