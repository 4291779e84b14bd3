// Acts of h5i-canary by name, with what came of each.
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "tests/spawn/session.hpp"

namespace h5i::test {

using ActList = std::vector<std::vector<std::string>>;

struct Answers {
  Outcome outcome;
  std::vector<Json> lines;
  // "ok", an errno's name, or "none" when the line is missing.
  std::string operator[](size_t i) const {
    if (i >= lines.size()) return "none";
    return lines[i]["ok"].boolean() ? "ok" : lines[i]["errno"].string();
  }
  const Json& value(size_t i) const {
    static const Json kNull;
    return i < lines.size() ? lines[i]["value"] : kNull;
  }
};

inline Answers answers_of(Outcome o) {
  Answers a;
  std::istringstream in(o.output);
  for (std::string line; std::getline(in, line);)
    if (auto v = json::parse(line)) a.lines.push_back(*v);
  a.outcome = std::move(o);
  return a;
}
inline Answers act(Json plan, const ActList& acts) {
  set_acts(plan, acts);
  return answers_of(Session().canary(plan));
}
// The control: the same acts outside of any box, by the same program.
inline Answers act_outside(const ActList& acts) {
  std::vector<std::string> words{build_dir() + "/out/libexec/h5i/h5i-canary"};
  for (const auto& a : acts) {
    words.push_back(std::to_string(a.size()));
    words.insert(words.end(), a.begin(), a.end());
  }
  Outcome o;
  int p[2];
  if (pipe2(p, O_CLOEXEC) != 0) return {};
  pid_t pid = fork();
  if (pid == 0) {
    dup2(p[1], 1);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(p[1]);
  UniqueFd read_end(p[0]);
  if (auto text = os::read_fd(read_end.get(), 1 << 20, "output")) o.output = *text;
  waitpid(pid, nullptr, 0);
  return answers_of(std::move(o));
}

inline Json& add_mount(Json& plan, const char* kind, const std::string& target) {
  Json m;
  m["kind"] = kind;
  m["target"] = target;
  plan["mounts"].push(m);
  return plan["mounts"].make_array().back();
}
// A directory of the host, writable in the box; with mapped owners when root runs it.
inline Json& bind_writable(Json& plan, const Checks& k, const std::string& path) {
  Json& m = add_mount(plan, "bind", path);
  m["source"] = path;
  m["recursive"] = true;
  if (k.root()) m["idmap"] = true;
  for (const char* f : {"nosuid", "nodev"}) m["flags"].push(f);
  return m;
}

}  // namespace h5i::test
