#include "core/os/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "core/base/text.hpp"
#include "core/base/unique_fd.hpp"
#include "core/os/fs.hpp"

namespace h5i::os {
namespace {

constexpr size_t kMaxMessage = 1 << 20;  // answers here are a few hundred bytes
constexpr int64_t kPatienceMs = 10000;   // a manager that is starting a session's units answers late

int64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

// The D-Bus specification's marshalling: each value is aligned to its size, counted from the start of the message.
class Bytes {
 public:
  void align(size_t to) {
    while (out_.size() % to != 0) out_ += '\0';
  }
  void byte(uint8_t v) { out_ += static_cast<char>(v); }
  void number(uint32_t v) {
    align(4);
    for (int i = 0; i < 4; i++) byte(static_cast<uint8_t>(v >> (8 * i)));
  }
  void text(std::string_view v) {
    number(static_cast<uint32_t>(v.size()));
    out_ += v;
    byte(0);
  }
  void signature(std::string_view v) {
    byte(static_cast<uint8_t>(v.size()));
    out_ += v;
    byte(0);
  }
  // An array's length does not count the padding before its first element.
  template <class Fill>
  void array(size_t element_align, Fill fill) {
    number(0);
    size_t at = out_.size() - 4;
    align(element_align);
    size_t begin = out_.size();
    fill();
    uint32_t length = static_cast<uint32_t>(out_.size() - begin);
    for (int i = 0; i < 4; i++) out_[at + static_cast<size_t>(i)] = static_cast<char>(length >> (8 * i));
  }
  void property(std::string_view name, std::string_view type) {
    align(8);
    text(name);
    signature(type);
  }
  std::string& str() { return out_; }

 private:
  std::string out_;
};

struct Call {
  std::string_view destination, path, interface, member, signature;
};

std::string method_call(uint32_t serial, const Call& call, const std::string& body) {
  Bytes m;
  for (uint8_t b : {uint8_t{'l'}, uint8_t{1}, uint8_t{0}, uint8_t{1}}) m.byte(b);  // little endian, a call, no flags, version 1
  m.number(static_cast<uint32_t>(body.size()));
  m.number(serial);
  m.array(8, [&] {
    auto field = [&](uint8_t code, std::string_view type, std::string_view value) {
      if (value.empty()) return;
      m.align(8);
      m.byte(code);
      m.signature(type);
      type == "g" ? m.signature(value) : m.text(value);
    };
    field(1, "o", call.path);
    field(2, "s", call.interface);
    field(3, "s", call.member);
    field(6, "s", call.destination);
    field(8, "g", call.signature);
  });
  m.align(8);
  return m.str() + body;
}

class Bus {
 public:
  Result<void> connect() {
    uid_t uid = geteuid();
    std::string path = uid == 0 ? "/run/dbus/system_bus_socket" : "/run/user/" + std::to_string(uid) + "/bus";
    fd_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (!fd_ || ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return make_error(Errc::NOT_FOUND, "no service manager can be asked", path + ": " + sys_error("connect").evidence);
    // Our process numbers mean something else to a manager beyond our pid namespace, and it would move a stranger.
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
      return make_error(Errc::NOT_FOUND, "no service manager can be asked", path + " is served from another pid namespace");
    timeval patience{kPatienceMs / 1000, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);

    std::string id = std::to_string(uid);
    H5I_TRY(send(std::string(1, '\0') + "AUTH EXTERNAL " + hex(reinterpret_cast<const unsigned char*>(id.data()), id.size()) + "\r\n"));
    while (read_.find("\r\n") == std::string::npos) H5I_TRY(receive());
    if (read_.rfind("OK ", 0) != 0) return make_error(Errc::DENIED, "the bus refuses this user", printable(read_.substr(0, 100)));
    read_.erase(0, read_.find("\r\n") + 2);
    H5I_TRY(send("BEGIN\r\n"));
    return call(1, hello_message(1));
  }
  Result<void> call(uint32_t serial, const std::string& message) {
    H5I_TRY(send(message));
    for (;;) {
      BusMessage m = H5I_TRY(parse_bus_message(read_));
      if (m.size == 0) {
        H5I_TRY(receive());
        continue;
      }
      read_.erase(0, m.size);
      if (m.reply_to != serial || (m.type != kBusAnswer && m.type != kBusError)) continue;  // a signal
      if (m.type == kBusError) return make_error(Errc::DENIED, "the service manager refuses", printable(m.error_name));
      return {};
    }
  }

 private:
  Result<void> send(std::string_view bytes) {
    if (::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) return sys_error("send to the bus");
    return {};
  }
  Result<void> receive() {
    if (now_ms() > give_up_) return make_error(Errc::TIMEOUT, "the service manager does not answer", "waited for " + std::to_string(kPatienceMs) + " ms");
    char bytes[4096];
    ssize_t n = recv(fd_.get(), bytes, sizeof bytes, 0);
    if (n < 0 && errno == EINTR) return {};
    if (n <= 0) return n == 0 ? make_error(Errc::NOT_FOUND, "the bus hung up") : sys_error("receive from the bus");
    read_.append(bytes, static_cast<size_t>(n));
    return {};
  }

  UniqueFd fd_;
  std::string read_;
  int64_t give_up_ = now_ms() + kPatienceMs;
};

bool in_unit(pid_t pid, const std::string& unit) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/cgroup", 1 << 16);
  return text && text->find("/" + unit + "\n") != std::string::npos;
}

}  // namespace

std::string hello_message(uint32_t serial) {
  return method_call(serial, {"org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", ""}, "");
}

std::string start_scope_message(uint32_t serial, std::string_view unit, const std::vector<pid_t>& pids) {
  Bytes b;
  b.text(unit);
  b.text("fail");
  b.array(8, [&] {
    b.property("Description", "s");
    b.text("h5i box");
    b.property("PIDs", "au");
    b.array(4, [&] {
      for (pid_t p : pids) b.number(static_cast<uint32_t>(p));
    });
    b.property("Delegate", "b");
    b.number(1);
    b.property("CollectMode", "s");
    b.text("inactive-or-failed");
  });
  b.array(8, [] {});  // no further units
  return method_call(serial,
                     {"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"},
                     b.str());
}

Result<BusMessage> parse_bus_message(std::string_view bytes) {
  BusMessage m;
  if (bytes.size() < 16) return m;
  auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  auto number = [&](size_t at) { return uint32_t{byte(at)} | uint32_t{byte(at + 1)} << 8 | uint32_t{byte(at + 2)} << 16 | uint32_t{byte(at + 3)} << 24; };
  auto bad = [](const char* what) { return make_error(Errc::INVALID, "not a message of the bus", what); };
  if (bytes[0] != 'l' || byte(3) != 1) return bad("another byte order or version");
  const size_t fields = number(12), body = number(4);
  if (fields > kMaxMessage || body > kMaxMessage) return bad("too large");
  const size_t end = 16 + fields, size = (end + 7) / 8 * 8 + body;
  if (bytes.size() < size) return m;
  m.type = byte(1);
  for (size_t at = 16; at < end;) {
    at = (at + 7) / 8 * 8;
    if (at + 4 > end) return bad("a field that is cut");
    uint8_t code = byte(at), type = byte(at + 2);
    if (byte(at + 1) != 1) return bad("a field of a composed type");
    at += 4;
    if (type == 'g') {
      if (at >= end) return bad("a field that is cut");
      at += size_t{byte(at)} + 2;
      continue;
    }
    at = (at + 3) / 4 * 4;
    if ((type != 'u' && type != 's' && type != 'o') || at + 4 > end) return bad("a field of another type, or cut");
    uint32_t value = number(at);
    at += 4;
    if (type == 'u') {
      if (code == 5) m.reply_to = value;
      continue;
    }
    if (value >= end - at) return bad("a text that is cut");
    if (code == 4) m.error_name = std::string(bytes.substr(at, value));
    at += size_t{value} + 1;
  }
  m.size = size;
  return m;
}

Result<void> start_scope(const std::string& unit, const std::vector<pid_t>& pids) {
  Bus bus;
  H5I_TRY(bus.connect());
  H5I_TRY(bus.call(2, start_scope_message(2, unit, pids)));
  // The answer names a job; the move is what we wait for.
  for (const int64_t until = now_ms() + kPatienceMs; now_ms() < until; usleep(500))
    if (std::all_of(pids.begin(), pids.end(), [&](pid_t p) { return in_unit(p, unit); })) return {};
  return make_error(Errc::TIMEOUT, "the service manager has not moved this process", unit);
}

}  // namespace h5i::os
