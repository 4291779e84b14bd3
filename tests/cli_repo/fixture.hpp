// A user's home, a repository in it, and h5i.
#pragma once
#include "core/base/json.hpp"
#include "tests/cli/program.hpp"
#include "tests/git/scratch.hpp"
#include "tests/support/schema.hpp"

namespace h5i::test {

struct User {
  Scratch s;
  std::string home = s.path + "/home", repo = home + "/r", program;
  std::vector<std::string> more_env;
  User() {
    const char* build = getenv("H5I_BUILD_DIR");
    REQUIRE(build != nullptr);
    program = std::string(build) + "/out/bin/h5i";
    make_directories(home);
    write_file(home + "/.gitconfig", "[user]\n\tname = Tester\n\temail = t@example.org\n");
    make_repository(repo);
  }
  std::vector<std::string> environment() const {
    std::vector<std::string> env = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8"};
    env.insert(env.end(), more_env.begin(), more_env.end());
    return env;
  }
  Ran run(const std::vector<std::string>& args, const std::string& cwd = "", const std::string& input = "") const {
    return run_program(program, args, cwd.empty() ? repo : cwd, environment(), input);
  }
  // Runs with --json, validates the answer against the verb's schema, returns it.
  Json json(std::vector<std::string> args, int status = 0, const std::string& cwd = "") const {
    std::string verb = args[1];
    args.push_back("--json");
    Ran r = run(args, cwd);
    INFO("h5i " << args[0] << " " << args[1] << ": " << r.out << r.err);
    CHECK(r.status == status);
    auto errors = schema_errors_of_text("box-" + verb, r.out);
    INFO((errors.empty() ? "" : errors[0]));
    CHECK(errors.empty());
    auto v = parse_json(r.out, "output");
    REQUIRE(v);
    CHECK((*v)["error"].is_object() == (status != 0));
    return *v;
  }
  // Refused twice, once in JSON and once for a person: the same id and status, and three lines that end what is said.
  std::string refusal(const std::vector<std::string>& args, const std::string& cwd = "", int status = 1) const {
    std::string id = json(args, status, cwd)["error"]["id"].string();
    Ran text = run(args, cwd);
    INFO("h5i " << args[0] << " " << args[1] << ", " << id << ": " << text.status << ", " << text.err);
    CHECK(text.status == status);
    CHECK(is_refusal(text.err, id));
    return id;
  }
  Json create(const std::string& name, std::vector<std::string> more = {}, const std::string& cwd = "") const {
    std::vector<std::string> args = {"box", "create", "--name", name, "--isolation", "workspace"};
    args.insert(args.end(), more.begin(), more.end());
    return json(args, 0, cwd);
  }
  std::string box(const std::string& name) const { return repo + "/.git/h5i/boxes/human/" + name; }
  std::string work(const std::string& name) const { return box(name) + "/work"; }
};

}  // namespace h5i::test
