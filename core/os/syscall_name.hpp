// Names for numbers that the kernel reports, of this build's architecture.
#pragma once
#include <cstdint>
#include <string>

namespace h5i::os {

// Stands for every number that was not kept apart: no kernel has this one.
inline constexpr uint32_t kOtherNumbers = UINT32_MAX;

// "mount"; "other numbers"; "system call 999" when these headers know no such number.
std::string syscall_name(uint32_t number);
// What socket(2) was asked for: "inet dgram icmp", "netlink raw netfilter", "packet raw protocol 768", "family 300 type 9 protocol 2". A protocol of 0 is left out.
std::string socket_name(uint32_t family, uint32_t type, uint32_t protocol);
// "EPERM"; "error 999".
std::string errno_name(int err);

}  // namespace h5i::os
