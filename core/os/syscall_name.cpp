#include "core/os/syscall_name.hpp"

#include <sys/syscall.h>

#include <cstring>

namespace h5i::os {
namespace {

struct Name {
  uint32_t number;
  const char* text;
};
constexpr Name kNames[] = {
#include "syscall_names.inc"  // written by CMake from <sys/syscall.h>
};

}  // namespace

std::string syscall_name(uint32_t number) {
  for (const Name& n : kNames)
    if (n.number == number) return n.text;
  if (number == kOtherNumbers) return "other numbers";
  return "system call " + std::to_string(number);
}

std::string errno_name(int err) {
  const char* name = strerrorname_np(err);
  return name ? name : "error " + std::to_string(err);
}

}  // namespace h5i::os
