// What an engine may have done to the log it was given, seen when it has ended.
#include "core/session/engine_lines.hpp"
#include "tests/session/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

constexpr const char* kEngine = "http@0123";

evidence::Record line_of(evidence::Lane lane, const std::string& who) {
  evidence::Record r;
  r.observer = {lane, who};
  r.kind = "send";
  return r;
}

}  // namespace

TEST_CASE("an engine's lines continue the log and are its own, or it is found out") {
  struct Row {
    const char* what;
    std::function<void(const std::string& log)> engine;
    Errc expected;
  };
  auto append = [](evidence::Lane lane, const char* who) {
    return [=](const std::string& path) {
      auto log = evidence::Log::open(path);
      REQUIRE(log);
      REQUIRE(log->append(line_of(evidence::Lane::ENGINE_CLAIMED, kEngine)));
      REQUIRE(log->append(line_of(lane, who)));
    };
  };
  auto edit = [](size_t line, const std::string& from, const std::string& to) {
    return [=](const std::string& path) {
      std::string text = read_file(path);
      size_t at = 0;
      for (size_t i = 0; i < line; i++) at = text.find('\n', at) + 1;
      at = text.find(from, at);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
      write_file(path, text);
    };
  };
  const Row rows[] = {{"its own lines", append(evidence::Lane::ENGINE_CLAIMED, kEngine), Errc::OK},
                      {"nothing", [](const std::string&) {}, Errc::OK},
                      {"the core's lane", append(evidence::Lane::HOST_OBSERVED, kEngine), Errc::LOG_CHAIN},
                      {"the core's name", append(evidence::Lane::HOST_OBSERVED, "core"), Errc::LOG_CHAIN},
                      {"another engine's name", append(evidence::Lane::ENGINE_CLAIMED, "http@4567"), Errc::LOG_CHAIN},
                      {"the last line before it", edit(2, "\"act\"", "\"nap\""), Errc::LOG_CHAIN},
                      {"a shorter log", [](const std::string& path) { std::filesystem::resize_file(path, 100); }, Errc::LOG_TRUNCATED},
                      {"a line that a kill cut", [](const std::string& path) { std::ofstream(path, std::ios::app) << "{\"body\":"; }, Errc::OK},
                      {"a line that follows another", [](const std::string& path) { std::ofstream(path, std::ios::app) << read_file(path).substr(0, read_file(path).find('\n') + 1); }, Errc::LOG_CHAIN},
                      {"a line that is none", [](const std::string& path) { std::ofstream(path, std::ios::app) << "{}\n"; }, Errc::LOG_CHAIN}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Scratch s;
    const std::string path = s / "log.jsonl";
    evidence::Head head;
    {
      auto log = evidence::Log::open(path);
      REQUIRE(log);
      for (const char* kind : {"websec-opened", "noise", "act"}) {
        evidence::Record r;
        r.kind = kind;
        REQUIRE(log->append(r));
      }
      head = log->head();
    }
    const uint64_t bytes = std::filesystem::file_size(path);
    row.engine(path);
    auto checked = session::check_engine_lines(path, head, bytes, kEngine);
    CHECK((checked ? Errc::OK : checked.error().code) == row.expected);
  }
}
