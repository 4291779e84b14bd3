#include "core/evidence/findings.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

namespace {

Json record(const char* kind, const char* lane, const char* boundary, Json body, const char* session = "s") {
  Json r = json::Object{{"kind", kind}, {"lane", lane}, {"session", session}, {"body", std::move(body)}};
  if (*boundary) r["boundary"] = boundary;
  return r;
}

}  // namespace

TEST_CASE("denials are counted for each boundary and lane, and lanes are never added") {
  FindingsBuilder b;
  b.add(record("denial", "host-observed", "NET", json::Object{{"what", "egress"}, {"count", 3}}));
  b.add(record("denial", "host-observed", "NET", json::Object{{"what", "egress"}}));
  b.add(record("denial", "engine-claimed", "NET", json::Object{{"what", "egress"}, {"count", 5}}));
  b.add(
      record("box-claimed", "box-claimed", "",
             json::Object{
                 {"name", "a"},
                 {"body", json::Object{{"kind", "denial"}, {"boundary", "NET"}, {"what", "egress"}, {"count", 100}}}}));
  b.add(record("box-claimed", "box-claimed", "",
               json::Object{{"name", "b"}, {"body", json::Object{{"kind", "receipt"}, {"count", 7}}}}));
  b.add(record("violation", "host-observed", "PROVENANCE",
               json::Object{{"rule", "gate.dotgit"}, {"path", ".git/hooks/x"}}));
  b.add(record("note", "host-observed", "NET", json::Object{{"count", 1000}}));
  Findings f = b.take();
  CHECK(f.host_observed.at[Boundary::NET].denials == 4);
  CHECK(f.host_observed.at[Boundary::NET].records == 2);
  CHECK(f.engine_claimed.at[Boundary::NET].denials == 5);
  CHECK(f.box_claimed.at[Boundary::NET].denials == 100);
  CHECK(f.claims == 2);
  CHECK(f.host_observed.at[Boundary::PROVENANCE].by_what.at("gate.dotgit") == 1);
  CHECK(f.host_observed.at.size() == 2);
}

TEST_CASE("a receipt's sums replace the single denials of its run") {
  FindingsBuilder b;
  auto denial = [](const char* session, const char* call) {
    return record("denial", "host-observed", "", json::Object{{"syscall", call}, {"count", 2}, {"errno", "EPERM"}},
                  session);
  };
  b.add(denial("a", "socket"));
  b.add(denial("b", "mount"));
  b.add(record(
      "receipt", "host-observed", "",
      json::Object{
          {"denials", json::Array{json::Object{{"syscall", "socket"}, {"count", 7}, {"errno", "EPERM"}},
                                  json::Object{{"syscall", "setrlimit"}, {"count", 1}, {"errno", "EPERM"}}}},
          {"unobserved", json::Array{json::Object{{"what", "egress"}, {"reason", "this tier does not see it"}}}}},
      "a"));
  b.add(denial("a", "socket"));
  Findings f = b.take();
  CHECK(f.host_observed.at[Boundary::NET].denials == 7);
  CHECK(f.host_observed.at[Boundary::RESOURCE].denials == 1);
  CHECK(f.host_observed.at[Boundary::FS].denials == 2);  // of run b, which has no receipt
  CHECK(f.unobserved.at("egress") == "this tier does not see it");
}

TEST_CASE("a log cannot claim another lane, overflow a sum or flood the list") {
  FindingsBuilder b;
  for (int i = 0; i < 3; i++) b.add(record("denial", "host-observed", "FS", json::Object{{"count", INT64_MAX}}));
  b.add(record("denial", "HOST-OBSERVED", "NET", json::Object{}));
  b.add(record("receipt", "box-claimed", "",
               json::Object{{"denials", json::Array{json::Object{{"syscall", "ptrace"}, {"count", 9}}}}}));
  b.add(record("denial", "host-observed", "PROC", json::Object{{"count", -5}, {"what", "\x1b[2J"}}));
  for (int i = 0; i < 3000; i++)
    b.add(record("denial", "host-observed", "NET", json::Object{{"what", "w" + std::to_string(i)}}));
  b.add(record("unobserved", "host-observed", "", json::Object{{"what", "file accesses"}, {"reason", "no audit"}}));
  b.add(record("unobserved", "box-claimed", "", json::Object{{"what", "everything"}, {"reason", "trust me"}}));
  b.add(json::Object{});
  b.add("text");
  Findings f = b.take();
  CHECK(f.host_observed.at[Boundary::FS].denials == UINT64_MAX);
  CHECK(f.host_observed.at[Boundary::NET].denials == 3000);
  CHECK(f.host_observed.at[Boundary::NET].by_what.size() == 1000);
  CHECK(f.host_observed.at[Boundary::PROC].denials == 1);
  CHECK(f.host_observed.at[Boundary::PROC].by_what.begin()->first == "\\x1b[2J");
  CHECK(f.box_claimed.at.empty());
  CHECK(f.unobserved == std::map<std::string, std::string>{{"file accesses", "no audit"}});
}

TEST_CASE("system calls have their boundary") {
  CHECK(boundary_of_syscall("connect") == Boundary::NET);
  CHECK(boundary_of_syscall("socketpair") == Boundary::NET);
  CHECK(boundary_of_syscall("accept") == Boundary::NET);
  CHECK(boundary_of_syscall("openat2") == Boundary::FS);
  CHECK(boundary_of_syscall("chmod") == Boundary::FS);
  CHECK(boundary_of_syscall("unlinkat") == Boundary::FS);
  CHECK(boundary_of_syscall("prlimit64") == Boundary::RESOURCE);
  CHECK(boundary_of_syscall("setrlimit") == Boundary::RESOURCE);
  CHECK(boundary_of_syscall("bpf") == Boundary::PROC);
  CHECK(boundary_of_syscall("no such call") == Boundary::PROC);
}

