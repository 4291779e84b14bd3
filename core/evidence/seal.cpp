#include "core/evidence/seal.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "core/base/text.hpp"
#include "core/evidence/files.hpp"
#include "core/evidence/log.hpp"

namespace h5i::evidence {
namespace {

constexpr size_t kMaxSeal = 4096;

Json members(const Seal& s) {
  return json::Object{{"schema", "h5i.seal/1"}, {"log", s.log_id}, {"count", s.count}, {"head", s.head},
                      {"bytes", s.bytes},       {"time", s.time},  {"key", s.key_id}};
}

bool hex_of(const Json& v, size_t digits) {
  std::string raw;
  return v.string().size() == digits && unhex(v.string(), &raw) && hex(raw.data(), raw.size()) == v.string();
}

Error bad_seal(std::string why) { return make_error(Errc::LOG_SEAL, "the seal is not valid", std::move(why)); }

}  // namespace

std::string Seal::signed_bytes() const { return json::canonical(members(*this)); }

std::string Seal::to_bytes() const {
  Json v = members(*this);
  v["signature"] = base64(signature);
  return json::canonical(v) + "\n";
}

Result<Seal> Seal::from_bytes(std::string_view bytes) {
  auto parsed = parse_json(bytes, "the seal", kMaxSeal);
  if (!parsed) return bad_seal(parsed.error().evidence);
  const Json& v = *parsed;
  if (v["schema"].string() != "h5i.seal/1") return bad_seal("its schema is not h5i.seal/1");
  // Nothing unsigned may ride along: these members and no other.
  if (v.object().size() != 8) return bad_seal("it has other members than a seal");
  if (!hex_of(v["log"], 32) || !hex_of(v["head"], 64) || !hex_of(v["key"], 64))
    return bad_seal("log, head or key is not a digest");
  if (v["count"].integer() <= 0 || v["bytes"].integer() <= 0)
    return bad_seal("count or bytes is not a positive number");
  if (v["time"].string().empty()) return bad_seal("time is missing");
  Seal s;
  s.log_id = v["log"].string();
  s.count = static_cast<uint64_t>(v["count"].integer());
  s.head = v["head"].string();
  s.bytes = static_cast<uint64_t>(v["bytes"].integer());
  s.time = v["time"].string();
  s.key_id = v["key"].string();
  if (!unbase64(v["signature"].string(), &s.signature) || s.signature.size() != 64)
    return bad_seal("signature is not 64 bytes of base64");
  return s;
}

std::string seal_path(const std::string& log_path) { return log_path + ".seal"; }

std::string kept_seal_path(const std::string& state_dir, const std::string& log_id) {
  return state_dir + "/seals/" + log_id + ".json";
}

Result<Seal> read_seal(const std::string& path) {
  std::string bytes = H5I_TRY(read_small_file(path, kMaxSeal));
  auto s = Seal::from_bytes(bytes);
  if (!s) s.error().what = "the seal " + printable(path) + " is not valid";
  return s;
}

Result<SealState> seal_state(const std::string& log_path) {
  SealState out;
  Head head = H5I_TRY(read_head(log_path));
  out.records = head.count;
  auto seal = read_seal(seal_path(log_path));
  if (!seal && seal.error().code != Errc::NOT_FOUND && seal.error().code != Errc::LOG_SEAL)
    return std::move(seal).error();
  if (seal && seal->log_id == head.log_id && (seal->count < head.count || seal->head == head.digest))
    out.sealed = seal->count;
  return out;
}

Result<void> start_sealing(const std::string& executable, const std::string& log_path) {
  std::vector<std::string> kept;
  for (const char* name : {"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"})
    if (const char* value = getenv(name)) kept.push_back(std::string(name) + "=" + value);
  std::vector<char*> env;
  for (std::string& e : kept) env.push_back(e.data());
  env.push_back(nullptr);
  std::string name = "h5i-evidence", verb = "seal-head", log = log_path;
  char* argv[] = {name.data(), verb.data(), log.data(), nullptr};

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return sys_error("pipe2");
  UniqueFd from(report[0]), to(report[1]);
  pid_t pid = fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) {
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
    int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++) dup2(null, fd);
    // A pipe of the caller's caller must not stay open until the signature is written.
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    execve(executable.c_str(), argv, env.data());
    int err = errno;
    (void)!write(to.get(), &err, sizeof err);
    _exit(127);
  }
  to.reset();
  int err = 0;
  ssize_t n;
  do n = read(from.get(), &err, sizeof err);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof err)) return {};
  waitpid(pid, nullptr, 0);
  return sys_error("cannot start " + printable(executable), err);
}

}  // namespace h5i::evidence
