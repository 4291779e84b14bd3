// Runs a fuzz target over a corpus without libFuzzer: each file, every prefix of it, and it with each byte changed. Of a long run of one byte
// (a bomb's filler, of which each byte may stand for a thousand) only what lies near its ends.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {
constexpr size_t kMutate = 4096;  // bytes of an input that are cut and changed; the whole is always run
constexpr size_t kEnds = 4;       // of a run of one byte, this many at each end

void run(const std::string& s) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(s.data()), s.size()); }

void run_around(const std::string& s) {
  run(s);
  size_t n = s.size() < kMutate ? s.size() : kMutate;
  size_t from = 0, to = 0;  // the run of one byte that i lies in
  for (size_t i = 0; i < n; i++) {
    if (i == to) {
      from = i;
      to = std::min(s.find_first_not_of(s[i], i), s.size());
    }
    if (i - from >= kEnds && to - i > kEnds) continue;
    run(s.substr(0, i));
    std::string t = s;
    for (char flip : {'\x01', '\x80', '\xff'}) {
      t[i] = static_cast<char>(s[i] ^ flip);
      run(t);
    }
  }
}
}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; i++)
    for (const auto& e : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(e.path(), std::ios::binary);
      run_around(std::string(std::istreambuf_iterator<char>(in), {}));
      files++;
    }
  printf("%zu inputs\n", files);
  return files == 0 ? 1 : 0;
}
