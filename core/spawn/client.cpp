#include "core/spawn/client.hpp"

#include "core/base/ids.hpp"
#include "core/os/fs.hpp"

namespace h5i::spawn {
namespace {

// A message with the descriptors that its kind asks for, no more and no fewer.
struct Received {
  Message message;
  std::vector<UniqueFd> fds;
};
Result<std::optional<Received>> receive(int channel, int64_t timeout_ms) {
  if (!H5I_TRY(os::wait_readable(channel, timeout_ms))) return make_error(Errc::TIMEOUT, "the spawner said nothing");
  auto packet = H5I_TRY(os::receive_packet(channel));
  if (!packet) return std::optional<Received>();
  Received r{H5I_TRY(decode(packet->bytes)), std::move(packet->fds)};
  FdCount n = fds_of(r.message.kind);
  if (r.fds.size() < n.min || r.fds.size() > n.max)
    return make_error(Errc::INVALID, "bad message on a spawner's channel", "unexpected number of descriptors");
  return std::optional<Received>(std::move(r));
}

Error gone() { return make_error(Errc::PLUGIN_CRASHED, "the spawner is gone"); }

// The kernel's word for a spawner that died is a broken pipe.
Result<void> send(int channel, const Message& m, std::vector<int> fds = {}) {
  auto sent = os::send_packet(channel, encode(m), fds);
  if (!sent && (sent.error().sys_errno == EPIPE || sent.error().sys_errno == ECONNRESET)) return gone();
  return sent;
}

int64_t left_ms(int64_t until_ns) {
  int64_t left = (until_ns - monotonic_ns()) / 1000000;
  return left < 0 ? 0 : left;
}

}  // namespace

Result<void> SpawnClient::receive_one(int64_t timeout_ms) {
  auto r = H5I_TRY(receive(channel_.get(), timeout_ms));
  if (!r) return gone();
  if (r->message.kind != Kind::done) {
    answers_.push_back(std::move(r->message));
    return {};
  }
  Finished f;
  f.result = std::move(r->message.result);
  if (!r->fds.empty()) f.output = H5I_TRY(os::read_fd(r->fds[0].get(), kMaxCanaryOutput, "output of the test program"));
  finished_[r->message.handle] = std::move(f);
  return {};
}

Result<uint64_t> SpawnClient::start(std::string_view plan, uint32_t kind) {
  if (plan.empty() || plan.size() > kMaxPlan) return make_error(Errc::TOO_LARGE, "plan is empty or too large");
  auto memfd = H5I_TRY(os::sealed_memfd("h5i-plan", plan));
  Message m;
  m.kind = Kind::start;
  m.what = kind;
  H5I_TRY(send(channel_.get(), m, {memfd.get()}));
  while (answers_.empty()) H5I_TRY(receive_one(-1));
  Message answer = std::move(answers_.front());
  answers_.pop_front();
  if (answer.kind == Kind::started) return answer.handle;
  if (answer.kind == Kind::refused) return make_error(errc_from_number(static_cast<int>(answer.what)), answer.text);
  return make_error(Errc::INVALID, "bad message on a spawner's channel", "not an answer to start");
}

Result<SpawnClient::Finished> SpawnClient::wait(uint64_t handle, int64_t timeout_ms) {
  int64_t until = monotonic_ns() + (timeout_ms < 0 ? 0 : timeout_ms) * 1000000;
  for (;;) {
    auto at = finished_.find(handle);
    if (at != finished_.end()) {
      Finished f = std::move(at->second);
      finished_.erase(at);
      return f;
    }
    H5I_TRY(receive_one(timeout_ms < 0 ? -1 : left_ms(until)));
  }
}

Result<void> SpawnClient::kill(uint64_t handle) {
  Message m;
  m.kind = Kind::kill;
  m.handle = handle;
  return send(channel_.get(), m);
}

Result<std::optional<os::PeerIds>> Gate::wait_ready(int64_t timeout_ms) {
  if (!H5I_TRY(os::wait_readable(socket_.get(), timeout_ms)))
    return make_error(Errc::TIMEOUT, "the workload did not become ready");
  auto p = H5I_TRY(os::receive_packet(socket_.get()));
  if (!p) return std::optional<os::PeerIds>();
  if (p->bytes != "ready" || !p->peer || p->peer->pid <= 0)
    return make_error(Errc::TIER_ATTEST, "the workload's ready message is not genuine");
  return std::optional<os::PeerIds>(*p->peer);
}

Result<void> Gate::go() { return os::send_packet(socket_.get(), "go"); }

Result<int> Gate::exec_errno(int64_t timeout_ms) {
  if (!H5I_TRY(os::wait_readable(socket_.get(), timeout_ms)))
    return make_error(Errc::TIMEOUT, "the workload did not start its program");
  auto p = H5I_TRY(os::receive_packet(socket_.get()));
  if (!p) return 0;  // closed by the exec
  if (p->bytes.size() != 1) return make_error(Errc::INVALID, "bad message from the workload");
  return static_cast<int>(static_cast<unsigned char>(p->bytes[0]));
}

Result<void> SpawnWatch::give_stdio(int in, int out, int err, bool pty) {
  Message m;
  m.kind = Kind::stdio;
  m.what = pty ? 1 : 0;
  return send(channel_.get(), m, {in, out, err});
}

Result<void> SpawnWatch::kill_all(uint32_t outcome) {
  Message m;
  m.kind = Kind::kill_all;
  m.what = outcome;
  return send(channel_.get(), m);
}

Result<void> SpawnWatch::set_deadline(int64_t until_ns) {
  Message m;
  m.kind = Kind::deadline;
  m.until_ns = until_ns;
  return send(channel_.get(), m);
}

Result<void> SpawnWatch::signal(int number) {
  Message m;
  m.kind = Kind::signal;
  m.what = static_cast<uint32_t>(number);
  return send(channel_.get(), m);
}

Result<void> SpawnWatch::change_network(const Json& request, int user, int mnt) {
  std::string text = json::canonical(request);
  if (text.size() > kMaxNetworkRequest) return make_error(Errc::TOO_LARGE, "the change of rules", std::to_string(text.size()) + " bytes");
  auto memfd = H5I_TRY(os::sealed_memfd("h5i-network", text));
  Message m;
  m.kind = Kind::network;
  std::vector<int> fds{memfd.get()};
  if (user >= 0) fds.insert(fds.end(), {user, mnt});
  return send(channel_.get(), m, fds);
}

Result<SpawnWatch::Event> SpawnWatch::next(int64_t timeout_ms) {
  auto r = H5I_TRY(receive(channel_.get(), timeout_ms));
  Event e;
  if (!r) return e;
  e.handle = r->message.handle;
  switch (r->message.kind) {
    case Kind::workload:
      e.what = Event::What::workload;
      e.init_pid = static_cast<pid_t>(r->message.what);
      e.has_init = r->message.extra == 1;
      e.plan_digest = std::move(r->message.text);
      e.pidfd = std::move(r->fds[0]);
      e.gate = std::move(r->fds[1]);
      if (r->fds.size() > 2) e.init_exe = std::move(r->fds[2]);
      return e;
    case Kind::denial:
      e.what = Event::What::denial;
      e.denial = r->message.result.denials[0];
      return e;
    case Kind::ended:
      e.what = Event::What::ended;
      e.result = std::move(r->message.result);
      return e;
    case Kind::network_said:
      e.what = Event::What::network_said;
      e.said = H5I_TRY(parse_json(r->message.text, "answer about the box's network"));
      e.certain = r->message.extra == 0;
      return e;
    default:
      return make_error(Errc::INVALID, "bad message on a spawner's channel", "not for the core");
  }
}

}  // namespace h5i::spawn
