// A prefix that this test owns: the executables of the build copied in, plugins as the test wants them.
#pragma once
#include "tests/cli/program.hpp"
#include "tests/plugin/scratch.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/schema.hpp"

namespace h5i::test {

class Prefix {
 public:
  Prefix() {
    fs::path out = fs::path(getenv("H5I_BUILD_DIR")) / "out";
    fs::create_directories(root() / "bin");
    fs::create_directories(root() / "libexec/h5i");
    fs::create_directories(home());
    for (const char* file : {"bin/h5i", "libexec/h5i/h5i-host", "libexec/h5i/h5i-init", "libexec/h5i/h5i-canary",
                             "libexec/h5i/h5i-policy", "libexec/h5i/h5i-repo", "libexec/h5i/h5i-evidence"})
      if (fs::exists(out / file)) fs::copy_file(out / file, root() / file);
  }
  fs::path root() const { return scratch_.path(); }
  std::string home() const { return scratch_.path() + "/home"; }
  // Where `plugin install` puts things.
  std::string user_plugins() const { return home() + "/.local/state/h5i/plugins"; }
  const Scratch& scratch() const { return scratch_; }
  // A tier of the build, into the system directory.
  void add_tier(const std::string& name) const {
    fs::path from = fs::path(getenv("H5I_BUILD_DIR")) / "out/lib/h5i/plugins/1";
    for (const char* end : {".so", ".plugin.yaml"})
      fs::copy_file(from / (name + end), scratch_.plugins() + "/" + name + end);
  }

  Ended h5i(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    words.insert(words.begin(), (root() / "bin/h5i").string());
    env.emplace("HOME", home());
    return run(Program{.argv = std::move(words), .env = std::move(env), .cwd = root().string()});
  }
  // With --json: the document, after it was checked against the schema of the verb.
  Json json(std::vector<std::string> words, int status) const {
    std::string schema = words[0] + "-" + words[1];
    const std::vector<std::string> for_a_person = words;
    words.push_back("--json");
    Ended e = h5i(words);
    INFO(schema << ": " << e.out << e.err);
    CHECK(e.status == status);
    CHECK(schema_errors_of_text(schema, e.out) == std::vector<std::string>{});
    auto v = json::parse(e.out);
    REQUIRE(v);
    // A refusal is looked at twice, the second time as a person sees it: the same status and id, and three lines.
    if (const Json& id = (*v)["error"]["id"]; id.is_string()) {
      Ended text = h5i(for_a_person);
      INFO(text.status << ": " << text.err);
      CHECK(text.status == status);
      CHECK(is_refusal(text.err, id.string()));
    }
    return *v;
  }

 private:
  Scratch scratch_;
};

}  // namespace h5i::test
