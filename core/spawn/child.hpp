// What the child needs, as plain data: every pointer stays valid in the copy of the spawner's memory that it runs in.
// Compiled from a plan by program.cpp; executed by child.cpp, the one file that runs between clone and exec.
#pragma once
#include <linux/filter.h>

#include <cstddef>
#include <cstdint>

namespace h5i::spawn {

// Where set-up stopped. The numbers are shown (setup_step >> 16); append only.
enum Stage : uint16_t {
  kStageNone = 0,
  kStageIds = 1,
  kStageRoot = 2,
  kStageMount = 3,  // index: of the plan's list
  kStagePivot = 4,
  kStageHostname = 5,
  kStageLoopback = 6,
  kStageNested = 7,
  kStageCapabilities = 8,
  kStageNoNewPrivs = 9,
  kStageParent = 10,
  kStageFork = 11,
  kStageSession = 12,
  kStageStdio = 13,
  kStageRlimit = 14,  // index
  kStageCwd = 15,
  kStageLandlock = 16,
  kStageLandlockRule = 17,  // index
  kStageSeccomp = 18,
  kStageListener = 19,
  kStageReady = 20,
  kStageInit = 21,
};

// child -> spawner, on the report socket.
struct ChildReport {
  enum : uint32_t { kSetupFailed = 1, kExecFailed = 2, kListener = 3 };  // kListener carries the descriptor
  uint32_t what;
  uint16_t stage;
  uint16_t index;
  int32_t err;
};
static_assert(sizeof(ChildReport) == 12);

struct ChildMount {
  enum : uint8_t { kBind, kTmpfs, kProc, kDevpts, kMask, kDir, kFile, kSymlink } kind;
  bool recursive;
  bool optional;
  int tree;            // bind: a detached tree that the spawner prepared, or -1: open `source` here
  unsigned mode;       // dir, file
  uint64_t attr;       // MOUNT_ATTR_*
  const char* target;  // without the leading '/'
  const char* source;
  const char* size;  // tmpfs, as fsconfig takes them; null: not given
  const char* inodes;
  const char* mode_text;
  const char* content;
  size_t content_len;
  const char* to;
};

struct ChildRlimit {
  int resource;
  uint64_t soft, hard;
};

struct ChildLandlockRule {
  const char* path;  // null: a port
  uint64_t port;
  uint64_t access;
};

struct ChildProgram {
  // Descriptors of the spawner, all above 9 and close-on-exec. -1: absent.
  int report = -1;         // SEQPACKET to the spawner
  int gate = -1;           // SEQPACKET to the core
  int control = -1;        // SEQPACKET between h5i-init and the spawner
  int host_pidfd = -1;     // of the host process, for h5i-init
  int spawner_pidfd = -1;  // to see whether the parent still lives
  int init_exe = -1;
  int exec_fd = -1;  // the canary, executed by descriptor
  int stdio[3] = {-1, -1, -1};
  bool pty = false;

  bool wait_for_maps = false;
  bool set_ids = false;
  uint32_t uid = 0, gid = 0;

  bool has_root = false;
  const char* root_size = nullptr;
  const char* root_inodes = nullptr;
  const ChildMount* mounts = nullptr;
  size_t mount_count = 0;
  bool lasting_files = false;  // a file of the plan that is mounted keeps its name somewhere, so that another can be mounted over it
  const char* hostname = nullptr;
  size_t hostname_len = 0;
  bool loopback = false;

  bool nested_user = false;
  const char* nested_uid_map = nullptr;
  const char* nested_gid_map = nullptr;

  bool drop_capabilities = false;
  bool no_new_privs = false;
  bool init = false;

  unsigned umask = 022;
  const ChildRlimit* rlimits = nullptr;
  size_t rlimit_count = 0;
  const char* cwd = "/";

  bool landlock = false;
  uint64_t landlock_attr[3] = {0, 0, 0};
  size_t landlock_attr_size = 0;
  const ChildLandlockRule* landlock_rules = nullptr;
  size_t landlock_rule_count = 0;

  const sock_fprog* seccomp = nullptr;
  bool seccomp_notify = false;

  const char* const* exec = nullptr;  // null-terminated candidates
  const char* const* argv = nullptr;
  const char* const* envp = nullptr;
};

// Exit statuses of the child itself, as shells use them.
constexpr int kExitSetupFailed = 125, kExitNotExecutable = 126, kExitNotFound = 127;

[[noreturn]] void child_main(const ChildProgram* program);

}  // namespace h5i::spawn
