#include "core/base/text.hpp"
#include "core/evidence/render.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;

namespace {

Json receipt() {
  return json::Object{
      {"schema", "h5i.receipt/1"},
      {"session", "01abcdefghjkmnpqrstvwxyz01"},
      {"box", "human/fix"},
      {"command", json::Array{"make", "-j2", "all tests", "it's"}},
      {"policy_digest", std::string(64, 'a')},
      {"effective_digest", std::string(64, 'b')},
      {"not_enforced",
       json::Array{
           json::Object{{"field", "resources.disk"}, {"reason", "no-quota"}, {"detail", "the file system has none"}}}},
      {"plugin", json::Object{{"id", "process"}, {"version", "0.1.0"}, {"digest", std::string(64, 'c')}}},
      {"tier", "process"},
      {"kernel", json::Object{{"release", "6.18"}, {"arch", "x86_64"}, {"boot_id", "x"}, {"landlock_abi", 7}}},
      {"attested", json::Object{{"no_new_privs", true}}},
      {"self_reported", json::Object{{"landlock", "on"}}},
      {"outcome", json::Object{{"status", "exited"}, {"code", 3}, {"reason", ""}, {"detail", ""}}},
      {"exit_status", 3},
      {"usage", json::Object{{"wall_us", 1234567},
                             {"user_us", 1000000},
                             {"system_us", 200000},
                             {"max_rss_kib", 4096},
                             {"source", "wait4"}}},
      {"denials", json::Array{json::Object{{"syscall", "mount"}, {"count", 3}, {"errno", "EPERM"}}}},
      {"unobserved", json::Array{json::Object{{"what", "egress"}, {"reason", "the box has no network"}}}},
      {"output",
       json::Object{
           {"stdout",
            json::Object{{"bytes", 10}, {"captured", 10}, {"sha256", std::string(64, 'd')}, {"truncated", false}}},
           {"stderr", json::Object{{"bytes", 0}, {"captured", 0}, {"sha256", ""}, {"truncated", false}}}}},
      {"redactions", json::Object{{"GITHUB_PAT", 2}}},
      {"survivors", json::Array{}},
      {"started", "2026-01-02T03:04:05.678Z"},
      {"ended", "2026-01-02T03:04:06.912Z"}};
}

}  // namespace

TEST_CASE(
    "a receipt says what ran, under which digests, by which plugin, what was not enforced or denied, and what it "
    "cost") {
  std::string text = receipt_text(receipt());
  INFO(text);
  for (std::string part :
       {std::string("human/fix"), std::string(64, 'a'), std::string(64, 'b'), std::string(64, 'c'),
        std::string("no-quota"), std::string("3 times, EPERM"), std::string("the box has no network"),
        std::string("1.234 s"), std::string("4096 KiB"), std::string("exited 3"),
        std::string("2026-01-02T03:04:05.678Z"), std::string("h5i log verify")})
    CHECK(text.find(part) != std::string::npos);
  CHECK(receipt_text(receipt()).find("command          make -j2 'all tests' 'it'\\''s'\n") != std::string::npos);
  CHECK(receipt_text(receipt()).find("  - resources.disk: no-quota: the file system has none\n") != std::string::npos);
  CHECK(receipt_text(receipt()).find("redacted: GITHUB_PAT: 2") != std::string::npos);
}

TEST_CASE("a refused call that a person can do something about is said with what to do, others with their name alone") {
  Json r = receipt();
  r["denials"] = json::Array{json::Object{{"syscall", "ptrace"}, {"count", 1}, {"errno", "EPERM"}},
                             json::Object{{"syscall", "io_uring_setup"}, {"count", 2}, {"errno", "ENOSYS"}}};
  std::string text = receipt_text(r);
  INFO(text);
  CHECK(text.find("ptrace: 1 times, EPERM; debuggers and tracers") != std::string::npos);
  CHECK(text.find("run them outside") != std::string::npos);
  CHECK(text.find("io_uring_setup: 2 times, ENOSYS\n") != std::string::npos);
}

TEST_CASE("what a receipt lacks is said to be missing, and never reads as clean") {
  for (Json broken :
       {Json(json::Object{}), Json("text"),
        Json(json::Object{{"not_enforced", 3}, {"denials", "x"}, {"usage", json::Array{}}, {"command", 1}})}) {
    std::string text = receipt_text(broken);
    CHECK(text.find("not recorded") != std::string::npos);
    CHECK(text.find("every field of the policy was enforced") == std::string::npos);
    CHECK(text.find("nothing that the tier can see") == std::string::npos);
  }
  Json none = receipt();
  none["not_enforced"] = json::Array{};
  CHECK(receipt_text(none).find("every field of the policy was enforced") != std::string::npos);
}

TEST_CASE("nothing in a receipt reaches a terminal or a Markdown page as more than text") {
  std::string evil =
      "\x1b]52;c;aGk=\a\x1b[2K\rOK\x9b\xe2\x80\xae\n# heading | cell <img src=x> [a](javascript:x) `code` **bold**";
  Json r = receipt();
  r["command"] = json::Array{evil};
  r["box"] = evil;
  r["tier"] = evil;
  r["plugin"]["id"] = evil;
  r["outcome"]["status"] = evil;
  r["not_enforced"] = json::Array{json::Object{{"field", evil}, {"reason", evil}}};
  r["denials"] = json::Array{json::Object{{"syscall", evil}, {"count", 1}, {"errno", evil}}};
  r["attested"] = json::Object{{evil, evil}};
  r["redactions"] = json::Object{{evil, 1}};
  std::string text = receipt_text(r);
  CHECK(printable(text, {.newlines = true}) == text);
  CHECK(text.find("\n# heading") == std::string::npos);
  r["command"] = json::Array{std::string(1'000'000, 'x')};
  CHECK(receipt_text(r).size() < 40'000);
}
