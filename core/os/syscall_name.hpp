// Names for numbers that the kernel reports, of this build's architecture.
#pragma once
#include <cstdint>
#include <string>

namespace h5i::os {

// Stands for every number that was not kept apart: no kernel has this one.
inline constexpr uint32_t kOtherNumbers = UINT32_MAX;

// "mount"; "other numbers"; "system call 999" when these headers know no such number.
std::string syscall_name(uint32_t number);
// "EPERM"; "error 999".
std::string errno_name(int err);

}  // namespace h5i::os
