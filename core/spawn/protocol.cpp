#include "core/spawn/protocol.hpp"

#include <cstring>

#include "core/base/text.hpp"

namespace h5i::spawn {
namespace {

constexpr uint32_t kMagic = 0x73356833;  // "3h5s": bumped with every change of the layout
constexpr size_t kMaxText = 1024, kMaxSaid = 8192, kSetupText = 127;

struct Header {
  uint32_t magic;
  uint16_t kind;
  uint16_t zero;
  uint64_t handle;
  uint32_t what;
  uint32_t extra;
  uint32_t body;
  uint32_t zero2;
};
static_assert(sizeof(Header) == 32);

struct ResultBody {
  uint32_t status;
  int32_t code, exec_errno, setup_errno;
  uint32_t setup_step, flags;  // flags: 1 cgroup, 2 incomplete, 4 cpu spent
  uint64_t wall_us, user_us, system_us, max_rss_kib, survivors, oom_kills, tasks_refused;
  uint32_t text_len, denials, network_len, sockets;
};
static_assert(sizeof(ResultBody) == 96);

struct DenialBody {
  uint32_t syscall;
  int32_t err;
  uint64_t count;
};
static_assert(sizeof(DenialBody) == 16);

struct SocketBody {
  uint32_t family, type, protocol, zero;
  uint64_t count;
};
static_assert(sizeof(SocketBody) == 24);

constexpr size_t kDigestText = 64;

bool has_result(Kind k) { return k == Kind::done || k == Kind::ended; }

bool known(uint16_t k) {
  switch (static_cast<Kind>(k)) {
    case Kind::start:
    case Kind::kill:
    case Kind::stdio:
    case Kind::kill_all:
    case Kind::signal:
    case Kind::deadline:
    case Kind::network:
    case Kind::started:
    case Kind::refused:
    case Kind::done:
    case Kind::workload:
    case Kind::denial:
    case Kind::ended:
    case Kind::network_said:
      return true;
  }
  return false;
}

template <class T>
void put(std::string& out, const T& v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
template <class T>
bool take(std::string_view& in, T* v) {
  if (in.size() < sizeof *v) return false;
  memcpy(v, in.data(), sizeof *v);
  in.remove_prefix(sizeof *v);
  return true;
}

std::string result_bytes(const SpawnResult& r) {
  ResultBody b{};
  b.status = r.status;
  b.code = r.code;
  b.exec_errno = r.exec_errno;
  b.setup_errno = r.setup_errno;
  b.setup_step = r.setup_step;
  b.flags = (r.usage_cgroup ? 1u : 0u) | (r.incomplete ? 2u : 0u) | (r.cpu_spent ? 4u : 0u);
  b.wall_us = r.wall_us;
  b.user_us = r.user_us;
  b.system_us = r.system_us;
  b.max_rss_kib = r.max_rss_kib;
  b.survivors = r.survivors;
  b.oom_kills = r.oom_kills;
  b.tasks_refused = r.tasks_refused;
  std::string_view text = r.setup_text;
  text = text.substr(0, kSetupText);
  b.text_len = static_cast<uint32_t>(text.size());
  b.denials = static_cast<uint32_t>(r.denials.size() < kMaxDenials ? r.denials.size() : kMaxDenials);
  std::string_view network = r.network.size() > kMaxNetwork ? std::string_view{} : std::string_view(r.network);
  b.network_len = static_cast<uint32_t>(network.size());
  b.sockets = static_cast<uint32_t>(std::min(r.sockets.size(), kMaxSocketKinds));
  std::string out;
  put(out, b);
  out.append(text);
  out.append(network);
  for (uint32_t i = 0; i < b.denials; i++)
    put(out, DenialBody{r.denials[i].syscall, r.denials[i].err, r.denials[i].count});
  for (uint32_t i = 0; i < b.sockets; i++) {
    const SocketDenial& s = r.sockets[i];
    put(out, SocketBody{s.kind.family, s.kind.type, s.kind.protocol, 0, s.count});
  }
  return out;
}

bool parse_result(std::string_view in, SpawnResult* r) {
  ResultBody b;
  if (!take(in, &b) || b.text_len > kSetupText || b.denials > kMaxDenials || b.network_len > kMaxNetwork || b.sockets > kMaxSocketKinds || (b.flags & ~7u)) return false;
  if (in.size() != b.text_len + b.network_len + b.denials * sizeof(DenialBody) + b.sockets * sizeof(SocketBody)) return false;
  r->status = b.status;
  r->code = b.code;
  r->exec_errno = b.exec_errno;
  r->setup_errno = b.setup_errno;
  r->setup_step = b.setup_step;
  r->usage_cgroup = b.flags & 1;
  r->incomplete = b.flags & 2;
  r->cpu_spent = b.flags & 4;
  r->oom_kills = b.oom_kills;
  r->tasks_refused = b.tasks_refused;
  r->wall_us = b.wall_us;
  r->user_us = b.user_us;
  r->system_us = b.system_us;
  r->max_rss_kib = b.max_rss_kib;
  r->survivors = b.survivors;
  r->setup_text = std::string(in.substr(0, b.text_len));
  in.remove_prefix(b.text_len);
  r->network = std::string(in.substr(0, b.network_len));
  in.remove_prefix(b.network_len);
  DenialBody d;
  for (uint32_t i = 0; i < b.denials && take(in, &d); i++) r->denials.push_back({d.syscall, d.err, d.count});
  for (SocketBody s; take(in, &s);) {
    if (s.zero != 0) return false;
    r->sockets.push_back({{s.family, s.type, s.protocol}, s.count});
  }
  return true;
}

}  // namespace

std::string encode(const Message& m) {
  std::string body;
  if (has_result(m.kind)) body = result_bytes(m.result);
  if (m.kind == Kind::refused) body = m.text.substr(0, kMaxText);
  if (m.kind == Kind::network_said) body = m.text.substr(0, kMaxSaid);
  if (m.kind == Kind::workload) body = m.text;
  if (m.kind == Kind::deadline) put(body, m.until_ns);
  if (m.kind == Kind::denial) {
    Denial d = m.result.denials.empty() ? Denial{} : m.result.denials[0];
    put(body, DenialBody{d.syscall, d.err, d.count});
  }
  std::string out;
  put(out, Header{kMagic, static_cast<uint16_t>(m.kind), 0, m.handle, m.what, m.extra,
                  static_cast<uint32_t>(body.size()), 0});
  return out + body;
}

Result<Message> decode(std::string_view packet) {
  auto bad = [](const char* why) { return make_error(Errc::INVALID, "bad message on a spawner's channel", why); };
  Header h;
  if (!take(packet, &h)) return bad("shorter than its header");
  if (h.magic != kMagic) return bad("another version");
  if (h.zero != 0 || h.zero2 != 0) return bad("padding is not zero");
  if (!known(h.kind)) return bad("unknown kind");
  if (h.body != packet.size()) return bad("length differs from what it says");
  Message m;
  m.kind = static_cast<Kind>(h.kind);
  m.handle = h.handle;
  m.what = h.what;
  m.extra = h.extra;
  if (has_result(m.kind)) {
    if (!parse_result(packet, &m.result)) return bad("malformed result");
  } else if (m.kind == Kind::refused || m.kind == Kind::network_said) {
    if (packet.size() > (m.kind == Kind::refused ? kMaxText : kMaxSaid)) return bad("text is too long");
    m.text = std::string(packet);
  } else if (m.kind == Kind::workload) {
    if (packet.size() != kDigestText || packet.find_first_not_of("0123456789abcdef") != std::string_view::npos)
      return bad("no digest of the plan");
    m.text = std::string(packet);
  } else if (m.kind == Kind::denial) {
    DenialBody d;
    if (packet.size() != sizeof d || !take(packet, &d)) return bad("malformed denial");
    m.result.denials.push_back({d.syscall, d.err, d.count});
  } else if (m.kind == Kind::deadline) {
    if (packet.size() != sizeof m.until_ns || !take(packet, &m.until_ns) || m.until_ns <= 0) return bad("malformed deadline");
  } else if (!packet.empty()) {
    return bad("a body where none belongs");
  }
  return m;
}

FdCount fds_of(Kind kind) {
  switch (kind) {
    case Kind::start:
      return {1, 1};
    case Kind::stdio:
      return {3, 3};
    case Kind::network:
      return {1, 3};
    case Kind::done:
      return {0, 1};
    case Kind::workload:
      return {2, 3};
    default:
      return {0, 0};
  }
}

}  // namespace h5i::spawn
