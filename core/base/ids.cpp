#include "core/base/ids.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/text.hpp"

namespace h5i {

Result<void> random_bytes(void* out, size_t n) {
  auto* p = static_cast<unsigned char*>(out);
  while (n > 0) {
    ssize_t r = getrandom(p, n, 0);
    if (r < 0) {
      if (errno == EINTR) continue;
      return make_error(Errc::NO_ENTROPY, "random bytes", "getrandom failed");
    }
    p += r;
    n -= static_cast<size_t>(r);
  }
  return {};
}

int64_t realtime_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

Result<SessionId> new_session_id() {
  static const char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  unsigned char b[16];
  auto ms = static_cast<uint64_t>(realtime_ns() / 1000000);
  for (int i = 0; i < 6; i++) b[i] = static_cast<unsigned char>(ms >> (8 * (5 - i)));
  H5I_TRY(random_bytes(b + 6, 10));
  std::string out;
  // 128 bits, most significant first, 26 digits of 5 bits (the first carries 3).
  unsigned acc = 0;
  int bits = 2;  // pad to 130
  for (unsigned char c : b) {
    acc = (acc << 8) | c;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += kDigits[(acc >> bits) & 31];
    }
    acc &= 0xff;
  }
  return SessionId(out);
}

std::string rfc3339(int64_t ns) {
  time_t s = ns / 1000000000;
  auto ms = static_cast<int>(ns / 1000000 % 1000);
  tm t{};
  gmtime_r(&s, &t);
  char buf[80];
  snprintf(buf, sizeof buf, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
           t.tm_hour, t.tm_min, t.tm_sec, ms);
  return buf;
}

std::string boot_id() {
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char buf[64];
  ssize_t n = read(fd, buf, sizeof buf);
  close(fd);
  if (n <= 0) return {};
  std::string s(buf, static_cast<size_t>(n));
  while (!s.empty() && s.back() == '\n') s.pop_back();
  return s;
}

bool valid_slug(std::string_view p, bool upper_ok) {
  if (p.empty() || p.size() > 64) return false;
  auto alnum = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper_ok && c >= 'A' && c <= 'Z');
  };
  if (!alnum(p[0])) return false;
  for (char c : p)
    if (!alnum(c) && c != '.' && c != '_' && c != '-') return false;
  if (p.find("..") != std::string_view::npos) return false;
  if (p.size() >= 5 && p.substr(p.size() - 5) == ".lock") return false;
  if (p.back() == '.') return false;  // git refuses a ref component that ends in a dot
  return true;
}

Result<BoxName> BoxName::parse(std::string_view text, std::string_view default_agent) {
  BoxName n;
  auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    n.agent = std::string(default_agent);
    n.slug = std::string(text);
  } else {
    n.agent = std::string(text.substr(0, slash));
    n.slug = std::string(text.substr(slash + 1));
  }
  if (!valid_slug(n.agent, true) || !valid_slug(n.slug, false))
    return make_error(Errc::BOX_NAME, "box name refused: " + printable(text),
                      "both parts are [a-z0-9][a-z0-9._-]{0,63}, no '..', no trailing '.', no '.lock'");
  return n;
}

}  // namespace h5i
