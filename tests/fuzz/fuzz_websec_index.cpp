// Changes to a good index: a place in its file and what is put there, any number of them; checksums are right afterwards, so that what is changed is
// looked at. Whatever stands there, a question is answered, and with nothing that the log does not say: who makes checksums can leave a send out, and
// cannot put one in.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/engine/scan.hpp"
#include "plugins/websec-http/index/pages.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i;
using namespace h5i::websec;
using namespace h5i::test;

namespace {

constexpr const char* kRows = "state/index/rows";

// A host that has a log in memory.
struct Log {
  std::string text;
  uint64_t next = 0;

  void add(const char* kind, json::Value body) {
    text += json::canonical(json::Object{{"log", "aaaa"}, {"seq", next}, {"lane", "engine-claimed"}, {"kind", kind}, {"time", "2026-01-01T00:00:00.000Z"}, {"body", std::move(body)}}) + "\n";
    next++;
  }
  static h5i_status lines(void* context, uint64_t offset, h5i_sink_fn sink, void* sink_context, h5i_error*) {
    auto& self = *static_cast<Log*>(context);
    if (offset > self.text.size() || (offset > 0 && self.text[offset - 1] != '\n')) return H5I_E_INVALID;
    for (size_t end; (end = self.text.find('\n', offset)) != std::string::npos; offset = end + 1)
      if (h5i_status said = sink(sink_context, {self.text.data() + offset, end - offset}); said != H5I_OK) return said;
    return H5I_OK;
  }
  static const void* interface_of(void* context, h5i_str id) { return sdk::to_view(id) == H5I_HOST_SESSION ? &static_cast<Log*>(context)->session : nullptr; }
  h5i_host_session session{sizeof(h5i_host_session), 2, nullptr, nullptr, nullptr, nullptr, nullptr, lines};
  h5i_host table{sizeof(h5i_host), 0, nullptr, interface_of};
};

std::string read(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

using Each = sdk::Status (*)(const sdk::Host&, const Wanted&, const std::function<sdk::Result<bool>(Told&)>&);

struct World {
  Log log;
  std::string good;  // bytes of the index
  std::string folder = std::filesystem::temp_directory_path().string() + "/h5i-fuzz-index-XXXXXX";

  World() {
    log.table.context = &log;
    for (int i = 0; i < 40; i++) {
      const uint64_t sent = log.next;
      log.add("send", json::Object{{"url", "http://" + std::string(1, static_cast<char>('a' + i % 3)) + ".test/x" + std::to_string(i)}, {"method", i % 2 ? "GET" : "POST"}});
      if (i % 5) log.add("outcome", json::Object{{"of", sent}, {"status", i % 4 ? 200 : 404}, {"body_bytes", i}, {"ended", "complete"}, {"content_type", "text/html"}, {"times", json::Object{{"total_us", i}}}});
      if (i % 7 == 0) log.add("finding", json::Object{{"title", "f"}});
    }
    want(mkdtemp(folder.data()) && chdir(folder.c_str()) == 0);
    std::filesystem::create_directories("state/index");
    (void)answers(each_send);
    good = read(kRows);
    want(good.size() >= 2 * kPageBytes && good.size() % kPageBytes == 0);
  }
  ~World() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  // The sends that an index, or the log alone, gives to each question.
  std::vector<std::vector<std::string>> answers(Each each) {
    sdk::Host host(&log.table);
    std::vector<std::vector<std::string>> out;
    for (const char* word : {"", "host:a.test", "status:404", "ended:unknown-outcome", "size>10"}) {
      Filters filters;
      if (*word) filters.push_back(*parse_filter(word));
      out.emplace_back();
      want(each(host, {.filters = filters}, [&](Told& t) -> sdk::Result<bool> {
        out.back().push_back(std::to_string(1000 + t.send.seq) + json::canonical(t.send.body) + json::canonical(t.send.outcome));
        return true;
      }).ok());
    }
    return out;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  static const auto all = world.answers(scan_sends);
  std::string bytes = world.good;
  // Three bytes say where, one how many, then what; a last byte alone cuts the file.
  while (size >= 4) {
    const size_t at = (size_t{data[0]} << 16 | size_t{data[1]} << 8 | data[2]) % bytes.size();
    const size_t n = std::min({size_t{data[3]} % 32, size - 4, bytes.size() - at});
    memcpy(bytes.data() + at, data + 4, n);
    data += 4 + n;
    size -= 4 + n;
  }
  if (size > 0) bytes.resize(bytes.size() - size_t{data[0]} * 16 % bytes.size());
  for (size_t page = 0; page + kPageBytes <= bytes.size(); page += kPageBytes) {
    const uint64_t sum = page_checksum(reinterpret_cast<const unsigned char*>(bytes.data()) + page, page);
    memcpy(bytes.data() + page + kPageBytes - kChecksumBytes, &sum, sizeof sum);
  }
  std::ofstream(kRows, std::ios::binary | std::ios::trunc) << bytes;
  const auto found = world.answers(each_send);
  for (size_t i = 0; i < all.size(); i++) want(std::includes(all[i].begin(), all[i].end(), found[i].begin(), found[i].end()));  // both in the order of the log
  for (uint64_t most : {0, 3}) want(last_sends(sdk::Host(&world.log.table), {}, most).ok());
  return 0;
}
