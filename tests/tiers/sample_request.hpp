// A run request like the ones that the core makes: an ordinary user, the default profile.
#pragma once
#include "h5i/json.hpp"
#include "request.hpp"
#include "tests/support/catch.hpp"

namespace h5i::tests {

inline const std::string kBox = "/home/u/r/.git/h5i/boxes/a/b";
inline const std::string kWork = kBox + "/work";

inline json::Value sample_request() {
  auto v = json::parse(R"({"schema":"h5i.run/1","session":"01JTEST","box":"a/b","boxid":"0123456789abcdef",
    "policy":{"schema":"h5i.policy/1","tier":"process","audit":{"capture":"all"},"profile":{"name":"default",
      "fs":{"read":["/usr","/etc","/bin","/lib","/lib64","/sbin","/opt/none"],"write":["$WORK"],"deny":[],"private":{},
            "optional":["/opt/none","/lib64"]},
      "net":{"mode":"deny","unix":false},
      "resources":{"mem":4294967296,"procs":256,"wall":1800,"output":67108864,"explicit":[]},
      "env":{"pass":["PATH"],"set":{}}}},
    "paths":{"work":"BOX/work","git":"BOX/git","objects":["/home/u/r/.git/objects"],"spool":"BOX/spool",
      "private":"BOX/private","repo_git":"/home/u/r/.git","home":"/home/u","libexec":"/usr/libexec/h5i"},
    "deny_always":["/home/u/.config/h5i","/home/u/.bashrc"],
    "command":{"argv":["make","test"],"exec":["/usr/local/bin/make","/usr/bin/make"],"cwd":"BOX/work","tty":false,"readonly":false},
    "env":{"PATH":"/usr/bin:/bin","HOME":"/home/u"},
    "ids":{"uid":1000,"gid":1000,"box_uid":1000,"box_gid":1000}})");
  REQUIRE(v);
  std::string text = json::canonical(*v);
  for (size_t at; (at = text.find("BOX/")) != std::string::npos;) text.replace(at, 3, kBox);
  return *json::parse(text);
}

inline json::Value& profile_of(json::Value& request) { return request["policy"]["profile"]; }

inline confined::Request read(const json::Value& request) {
  auto r = confined::read_request(request);
  INFO((r.ok() ? std::string() : r.error().text));
  REQUIRE(r.ok());
  return *r;
}

}  // namespace h5i::tests
