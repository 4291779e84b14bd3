// Boots the image that build-image made, has it run command lines, passes on what they write and ends with the status of the first that
// fails. Nothing is left: the machine ends with this program, however that ends, and no file of it has a name.
//   boot_guest IMAGE CARRIED DEADLINE {root|u LINE}...
// CARRIED is a squashfs that the guest mounts on /h5i. Status 124: the deadline, in seconds, passed; 125: no guest.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/unique_fd.hpp"

using h5i::UniqueFd;

namespace {

constexpr int kFailed = 125, kLate = 124;
constexpr double kBootSeconds = 120;     // 10 s of an idle machine
constexpr double kKvmBootSeconds = 10;   // 2 s where it works
constexpr size_t kKeptConsole = 16384;   // shown when no guest comes up

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// An emulated processor counts as this one does, and a kernel that measures that by an emulated timer hangs now and then.
long tsc_khz() {
  double began = now();
  unsigned long long first = __rdtsc();
  usleep(100000);
  return static_cast<long>(static_cast<double>(__rdtsc() - first) / (now() - began) / 1000);
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

class Machine {
 public:
  Machine(const std::string& image, const std::string& carried, bool kvm) {
    std::vector<std::string> words = {
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-sandbox", "on", "-m", "768", "-nic", "none",
        "-M", "microvm,acpi=on,pit=on,pic=on,rtc=on", "-accel", kvm ? "kvm" : "tcg", "-cpu", kvm ? "host" : "Nehalem-v1", "-bios", "qboot.rom",
        "-kernel", image + "/vmlinuz", "-initrd", image + "/initial.cpio", "-device", "virtio-serial-device,id=ports",
        "-append",
        "console=ttyS0 panic=-1 quiet systemd.show_status=0 audit=0 nokaslr mitigations=off cryptomgr.notests" +
            (kvm ? "" : " no_timer_check tsc=reliable tsc_early_khz=" + std::to_string(tsc_khz()))};
    for (const std::string& file : {image + "/root.squashfs", carried}) {
      std::string id = "disk" + std::to_string(words.size());
      words.insert(words.end(), {"-drive", "format=raw,if=none,readonly=on,id=" + id + ",file=" + file, "-device", "virtio-blk-device,drive=" + id});
    }
    UniqueFd theirs[4];
    UniqueFd* ours[4] = {&control, &out, &err, &console_};
    static constexpr const char* kNames[] = {"control", "out", "err", "console"};
    for (int i = 0; i < 4; i++) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw errno;
      ours[i]->reset(pair[0]);
      theirs[i].reset(pair[1]);
      std::string name = kNames[i];
      words.insert(words.end(), {"-chardev", "socket,id=" + name + ",fd=" + std::to_string(pair[1])});
      if (i < 3) words.insert(words.end(), {"-device", "virtserialport,bus=ports.0,chardev=" + name + ",name=" + name});
    }
    words.insert(words.end(), {"-serial", "chardev:console"});
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ < 0) throw errno;
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(kFailed);
      for (UniqueFd& fd : theirs) fcntl(fd.get(), F_SETFD, 0);
      int null = open("/dev/null", O_RDONLY);
      dup2(null, 0);
      dup2(theirs[3].get(), 1);  // its own words are kept with the console's
      dup2(theirs[3].get(), 2);
      execvp(argv[0], argv.data());
      _exit(kFailed);
    }
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    ::kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  // The next line of the control port; empty after `deadline`, or when the machine is no more. Output is passed on meanwhile.
  std::string answer(double deadline) {
    for (;;) {
      if (size_t end = heard_.find('\n'); end != std::string::npos) {
        std::string line = heard_.substr(0, end);
        heard_.erase(0, end + 1);
        // A port's writer waits for the machine to take its bytes, so what was written before the answer is here by now.
        while (pass(out, 1)) {
        }
        while (pass(err, 2)) {
        }
        return line;
      }
      double left = deadline - now();
      if (left <= 0) return "";
      pollfd polled[] = {{control.get(), POLLIN, 0}, {out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {console_.get(), POLLIN, 0}};
      if (poll(polled, 4, static_cast<int>(std::min(left, 3600.0) * 1000) + 1) < 0 && errno != EINTR) return "";
      pass(out, 1);
      pass(err, 2);
      if (!keep(console_, &kept_) || !keep(control, &heard_)) return "";
      if (kept_.size() > 2 * kKeptConsole) kept_.erase(0, kept_.size() - kKeptConsole);
    }
  }

  bool ask(const std::string& who, const std::string& line) {
    std::string message = who + " " + std::to_string(line.size()) + "\n" + line;
    return send(control.get(), message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
  }
  const std::string& console() const { return kept_; }

  UniqueFd control, out, err;

 private:
  // False when there was nothing now.
  static bool pass(const UniqueFd& from, int to) {
    char bytes[65536];
    ssize_t n = recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t done = 0; done < n;) {
      ssize_t w = write(to, bytes + done, static_cast<size_t>(n - done));
      if (w < 0 && errno != EINTR) return false;
      done += std::max<ssize_t>(w, 0);
    }
    return n > 0;
  }
  // False when the other end is gone.
  static bool keep(const UniqueFd& from, std::string* into) {
    char bytes[65536];
    ssize_t n = recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) into->append(bytes, static_cast<size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }

  pid_t pid_ = -1;
  UniqueFd console_;
  std::string heard_, kept_;
};

struct Line {
  std::string who, text;
};

// The status of the first line that fails, 0 when none does; -1 when no guest came up.
int run(const std::string& image, const std::string& carried, bool kvm, const std::vector<Line>& lines, double deadline) {
  Machine machine(image, carried, kvm);
  const double began = now();
  if (machine.answer(std::min(deadline, began + (kvm ? kKvmBootSeconds : kBootSeconds))) != "ready") {
    if (kvm && now() < deadline) return -1;
    fprintf(stderr, "boot_guest: no guest came up in %.0f s; its console:\n%s\n", now() - began, machine.console().c_str());
    return now() < deadline ? -1 : kLate;
  }
  fprintf(stderr, "guest: up in %.1f s (%s)\n", now() - began, kvm ? "kvm" : "emulated");
  for (const Line& line : lines) {
    int status = -1;
    if (machine.ask(line.who, line.text)) {
      const std::string said = machine.answer(deadline);
      if (sscanf(said.c_str(), "exit %d", &status) != 1) status = -1;
    }
    if (status < 0) {
      bool late = now() >= deadline;
      fprintf(stderr, "boot_guest: %s: %s\n%s\n", late ? "the deadline passed" : "the guest ended", line.text.c_str(), machine.console().c_str());
      return late ? kLate : kFailed;
    }
    if (status != 0) return status;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || argc % 2 != 0) {
    fputs("usage: boot_guest IMAGE CARRIED DEADLINE {root|u LINE}...\n", stderr);
    return kFailed;
  }
  const std::string image = argv[1], carried = argv[2];
  const double deadline = now() + atof(argv[3]);
  std::vector<Line> lines;
  for (int i = 4; i + 1 < argc; i += 2) lines.push_back({argv[i], argv[i + 1]});

  // A /dev/kvm that opens is no proof that a kernel runs there: the boot itself is, and what came of it is kept until this machine boots anew.
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id"), verdict = image + "/no-kvm";
  if (access("/dev/kvm", R_OK | W_OK) == 0 && first_line(verdict) != boot) {
    int status = run(image, carried, true, lines, deadline);
    if (status >= 0) return status;
    std::ofstream(verdict) << boot << "\n";
  }
  int status = run(image, carried, false, lines, deadline);
  return status < 0 ? kFailed : status;
}
