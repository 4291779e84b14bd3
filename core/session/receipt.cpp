#include "core/session/receipt.hpp"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace h5i::session {

std::string_view status_name(Outcome::Status s) {
  switch (s) {
    case Outcome::Status::EXITED: return "exited";
    case Outcome::Status::SIGNALED: return "signaled";
    case Outcome::Status::TIMEOUT: return "timeout";
    case Outcome::Status::VIOLATION: return "violation";
    case Outcome::Status::SETUP_FAILED: return "setup-failed";
    case Outcome::Status::CANCELLED: return "cancelled";
    case Outcome::Status::HOST_LOST: return "host-lost";
  }
  return "setup-failed";
}

int exit_status_of(const Error& e) {
  switch (errc_class(e.code)) {
    case ExitClass::USAGE: return 2;
    case ExitClass::NOTFOUND: return 127;
    case ExitClass::NOEXEC: return 126;
    case ExitClass::DEADLINE: return 124;
    case ExitClass::REFUSED:
    case ExitClass::FAILED: break;
  }
  return 125;
}

int exit_status_of(const Outcome& o) {
  switch (o.status) {
    case Outcome::Status::EXITED: return o.code & 0xff;
    case Outcome::Status::SIGNALED: return 128 + o.code;
    case Outcome::Status::TIMEOUT: return 124;
    case Outcome::Status::CANCELLED: return o.code > 0 ? 128 + o.code : 125;  // code: the signal that asked for it
    case Outcome::Status::SETUP_FAILED:
      if (o.reason == Errc::EXEC_NOT_FOUND) return 127;
      if (o.reason == Errc::EXEC_NOT_EXECUTABLE) return 126;
      return 125;
    case Outcome::Status::VIOLATION:
    case Outcome::Status::HOST_LOST: return 125;
  }
  return 125;
}

Json kernel_facts() {
  utsname u{};
  uname(&u);
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return json::Object{{"release", u.release}, {"arch", u.machine}, {"boot_id", boot_id()}, {"landlock_abi", abi < 0 ? 0 : abi}};
}

namespace {
Json stream_json(const StreamReceipt& s) {
  return json::Object{{"bytes", s.bytes}, {"captured", s.captured}, {"sha256", s.sha256}, {"blob", s.blob}, {"truncated", s.truncated}};
}
Json strings(const std::vector<std::string>& list) {
  Json out = json::Array{};
  for (const std::string& s : list) out.push(s);
  return out;
}
}  // namespace

Json receipt_json(const ReceiptInput& in) {
  Json redactions = json::Object{};
  for (const auto& [rule, n] : in.redactions) redactions[rule] = n;
  Json outcome = json::Object{{"status", status_name(in.outcome.status)},
                              {"code", in.outcome.code},
                              {"reason", in.outcome.reason == Errc::OK ? "" : errc_id(in.outcome.reason)},
                              {"detail", in.outcome.detail}};
  Json r = json::Object{
      {"schema", "h5i.receipt/1"},
      {"session", in.session.value},
      {"box", in.box},
      {"command", strings(in.command)},
      {"cwd", in.cwd},
      {"shell", in.shell},
      {"policy_digest", in.policy_digest.value},
      {"effective_digest", in.effective_digest.value},
      {"not_enforced", in.not_enforced},
      {"plugin", json::Object{{"id", in.plugin_id}, {"version", in.plugin_version}, {"digest", in.plugin_digest.value}}},
      {"tier", in.tier},
      {"kernel", kernel_facts()},
      {"attested", in.attested},
      {"self_reported", in.self_reported},
      {"outcome", std::move(outcome)},
      {"exit_status", exit_status_of(in.outcome)},
      {"usage", json::Object{{"wall_us", in.usage.wall_us},
                             {"user_us", in.usage.user_us},
                             {"system_us", in.usage.system_us},
                             {"max_rss_kib", in.usage.max_rss_kib},
                             {"source", in.usage.source}}},
      {"limits_reached", in.limits_reached},
      {"denials", in.denials},
      {"unobserved", in.unobserved},
      {"output", json::Object{{"stdout", stream_json(in.out)}, {"stderr", stream_json(in.err)}}},
      {"redactions", std::move(redactions)},
      {"survivors", in.survivors},
      {"env_not_passed", strings(in.env_not_passed)},
      {"started", rfc3339(in.started_ns)},
      {"ended", rfc3339(in.ended_ns)}};
  if (in.network.is_object()) r["network"] = in.network;
  return r;
}

}  // namespace h5i::session
