// The systemd that manages this user's units (root's: the machine's), asked over D-Bus for a scope: a control group whose insides are ours.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::os {

// Moves `pids` into a new transient scope `unit` ("NAME.scope") with Delegate=yes and returns when they are there. The manager removes it when
// its last process has ended. NOT_FOUND when no manager can be asked, DENIED with its words when it refuses, TIMEOUT when they do not move.
Result<void> start_scope(const std::string& unit, const std::vector<pid_t>& pids);

// D-Bus messages as bytes, little endian. Pure.
std::string hello_message(uint32_t serial);
std::string start_scope_message(uint32_t serial, std::string_view unit, const std::vector<pid_t>& pids);
struct BusMessage {
  size_t size = 0;  // of the whole message; 0: it is not whole yet
  uint8_t type = 0;
  uint32_t reply_to = 0;
  std::string error_name;
};
constexpr uint8_t kBusAnswer = 2, kBusError = 3;
// What `bytes` begins with.
Result<BusMessage> parse_bus_message(std::string_view bytes);

}  // namespace h5i::os
