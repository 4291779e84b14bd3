#include "tests/bench/page.hpp"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace h5i::bench {

std::string number(double v, int digits) {
  char buffer[64];
  snprintf(buffer, sizeof buffer, "%.*f", digits, v);
  return buffer;
}

std::string milliseconds(double us) { return number(us / 1000, 2); }

std::string markdown(const Table& t) {
  std::string out = t.caption + "\n\n";
  auto line = [&](const std::vector<std::string>& cells) {
    out += "|";
    for (const std::string& c : cells) out += " " + c + " |";
    out += "\n";
  };
  line(t.head);
  line(std::vector<std::string>(t.head.size(), "---"));
  for (const auto& row : t.rows) line(row);
  if (!t.verdicts.empty()) out += "\n";
  for (const std::string& v : t.verdicts) out += "- " + v + "\n";
  return out;
}

bool put_into_page(const std::string& path, const std::string& name, const std::string& text) {
  std::ifstream in(path);
  std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string begin = "<!-- begin " + name + " -->\n", end = "<!-- end " + name + " -->";
  size_t from = page.find(begin), to = page.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) return false;
  from += begin.size();
  page.replace(from, to - from, text);
  std::string fresh = path + ".new";
  {
    std::ofstream out(fresh);
    out << page;
    if (!out.flush()) return false;
  }
  return rename(fresh.c_str(), path.c_str()) == 0;
}

// QEMU says so itself, in the leaf of the processor that hypervisors have.
bool emulated() {
#if defined(__x86_64__)
  unsigned a = 0, name[3] = {};
  __cpuid(0x40000000, a, name[0], name[1], name[2]);
  return std::string(reinterpret_cast<const char*>(name), sizeof name) == "TCGTCGTCGTCG";
#else
  return false;
#endif
}

std::string machine() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string l; std::getline(info, l);)
    if (l.rfind("model name", 0) == 0) {
      model = l.substr(l.find(':') + 2);
      break;
    }
  utsname u{};
  uname(&u);
  time_t now = time(nullptr);
  char day[32];
  strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
  return std::string(day) + ", " + model + (emulated() ? ", emulated instruction by instruction (figures compare within a table only), " : ", ") + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " processors, Linux " + u.release + ", gcc " +
         __VERSION__ + (geteuid() == 0 ? ", as root" : ", as an ordinary user");
}

}  // namespace h5i::bench
