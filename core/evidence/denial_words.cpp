#include "core/evidence/denial_words.hpp"

#include <algorithm>
#include <iterator>

namespace h5i::evidence {
namespace {

constexpr std::string_view kTracers =
    "debuggers and tracers (gdb, strace, the leak check of sanitizers) do not work in a box: run them outside, on what the box built; "
    "sanitizers work with detect_leaks=0 in ASAN_OPTIONS";
constexpr std::string_view kSandboxes =
    "a program's own sandbox or container cannot be made inside a box: turn it off there, the box is around it";
constexpr std::string_view kSetId = "set-user-id and set-group-id bits and device nodes are not made in a box: use a mode without them";

struct Words {
  std::string_view syscall, words;
};
constexpr Words kWords[] = {
    {"ptrace", kTracers},      {"process_vm_readv", kTracers}, {"process_vm_writev", kTracers}, {"kcmp", kTracers},
    {"clone", kSandboxes},     {"unshare", kSandboxes},        {"setns", kSandboxes},           {"mount", kSandboxes},
    {"umount2", kSandboxes},   {"pivot_root", kSandboxes},     {"chroot", kSandboxes},          {"chmod", kSetId},
    {"fchmod", kSetId},        {"fchmodat", kSetId},           {"mkdir", kSetId},               {"mkdirat", kSetId},
    {"mknod", kSetId},         {"mknodat", kSetId},            {"creat", kSetId},               {"open", kSetId},
    {"openat", kSetId},
};

}  // namespace

std::string_view denial_words(std::string_view syscall) {
  const Words* at = std::find_if(std::begin(kWords), std::end(kWords), [&](const Words& w) { return w.syscall == syscall; });
  return at == std::end(kWords) ? std::string_view() : at->words;
}

}  // namespace h5i::evidence
