// A project with a box that has the host's network, and web sessions in it.
#pragma once
#include "tests/cli/project.hpp"
#include "tests/support/schema.hpp"
#include "tests/websec_send/site.hpp"

namespace h5i::test {

// The engine is the box's program here: a build with AddressSanitizer maps terabytes for its shadow, which a limit of private memory counts.
#ifdef __SANITIZE_ADDRESS__
inline constexpr const char* kRoom = "    resources: {mem: 100T}\n";
#else
inline constexpr const char* kRoom = "";
#endif

struct Boxed {
  Project p;
  explicit Boxed(uid_t uid) : p(uid) {
    std::filesystem::create_directories(p / "r/.h5i");
    write_file(p / "r/.h5i/env.yaml", "profiles:\n  out:\n    net:\n      mode: host\n" + std::string(kRoom));
    give(p / "r/.h5i", uid);
    p.git("add -f . && git commit -qm policy");
    p.ok({"box", "create", "--name", "out", "--isolation", "process", "--profile", "out"});
  }
  Ended web(std::vector<std::string> words, int status = 0) const {
    words.insert(words.begin(), "websec");
    return p.ok(std::move(words), status);
  }
  Json json_of(std::vector<std::string> words, int status = 0) const {
    const std::string verb = words[0];
    words.push_back("--json");
    Ended e = web(std::move(words), status);
    CAPTURE(verb, e.out, e.err);
    for (const std::string& error : schema_errors_of_text("websec-" + verb, e.out)) FAIL_CHECK(error);
    auto v = json::parse(e.out);
    return v ? *v : Json();
  }
  std::string log(const std::string& session) const { return p / (".local/state/h5i/websec/" + session + "/log.jsonl"); }
  std::vector<Json> records(const std::string& file, const std::string& kind = "") const {
    std::vector<Json> out;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      if (auto v = json::parse(line); v && (kind.empty() || (*v)["kind"].string() == kind)) out.push_back(*v);
    return out;
  }
  std::vector<Json> of(const std::string& session, const std::string& kind) const { return records(log(session), kind); }
};

inline constexpr const char* kIn = "in box human/out (process)";

}  // namespace h5i::test
