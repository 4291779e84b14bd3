// A real repository with boxes made by `box create`, at any tier, for a user of choice.
#pragma once
#include "tests/cli/made_box.hpp"

namespace h5i::test {

// A repository that git made, and a user whose home it lies in.
class Project {
 public:
  explicit Project(uid_t uid) : uid_(uid) {
    std::filesystem::create_directories(s_ / "home/r");
    chmod(s_.path().c_str(), 0755);
    write_file(s_ / "home/.gitconfig", "[user]\n\tname = Tester\n\temail = t@example.org\n[init]\n\tdefaultBranch = main\n");
    write_file(s_ / "home/r/hello.c", "int main(void) { return 0; }\n");
    write_file(s_ / "home/r/Makefile", "all:\n\tcc -o hello hello.c\n");
    give(s_.path(), uid);
    git("init -q . && git add . && git commit -qm first");
  }
  Ended git(const std::string& words) const {
    Program p{.argv = {"/bin/sh", "-c", "git " + words}, .env = {{"HOME", s_ / "home"}}, .cwd = s_ / "home/r", .uid = uid_};
    Ended e = run(p);
    CAPTURE(words, e.err);
    CHECK(e.status == 0);
    return e;
  }
  Program h5i(std::vector<std::string> words) const {
    words.insert(words.begin(), "h5i");
    return Program{.argv = std::move(words), .env = {{"HOME", s_ / "home"}}, .cwd = s_ / "home/r", .uid = uid_};
  }
  Ended ok(std::vector<std::string> words, int status = 0) const {
    Ended e = run(h5i(words));
    CAPTURE(words, e.out, e.err);
    CHECK(e.status == status);
    return e;
  }
  void create(const std::string& name, const std::string& tier = "process") const { ok({"box", "create", "--name", name, "--isolation", tier}); }
  session::BoxPaths paths(const std::string& name) const { return {s_ / ("home/r/.git/h5i/boxes/human/" + name)}; }
  std::string operator/(const std::string& below) const { return s_ / ("home/" + below); }
  uid_t uid() const { return uid_; }

 private:
  Scratch s_;
  uid_t uid_;
};

}  // namespace h5i::test
