#include "core/nft/transaction.hpp"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

extern "C" {
#include <libnftnl/common.h>
#include <libnftnl/set.h>
}

#include <cstring>
#include <functional>
#include <memory>

#include "core/base/text.hpp"
#include "core/nft/attributes.hpp"

namespace h5i::nft {
namespace {

constexpr int kAnswerMs = 5000;
constexpr int kReadings = 16;
constexpr size_t kAnswer = 64 * 1024;
constexpr size_t kShown = 3;  // differences in an error

uint32_t fresh_sequence() {
  static uint32_t last = static_cast<uint32_t>(time(nullptr));
  return last += 4096;  // more than the messages of one batch
}

Error kernel_error(int err) {
  switch (err) {
    case EEXIST: return make_error(Errc::EXISTS, "the namespace has such packet rules already");
    case ENOENT: return make_error(Errc::NOT_FOUND, "the packet rules that were to be changed, or what they need of the kernel, are not there", "ENOENT");
    case EPERM: case EACCES: return make_error(Errc::DENIED, "packet rules may not be changed here", "CAP_NET_ADMIN over the network namespace is missing");
    case EOPNOTSUPP: case EAFNOSUPPORT: case EPROTONOSUPPORT: return make_error(Errc::UNSUPPORTED, "the kernel lacks a kind of packet rule", strerror(err));
    default: return sys_error("packet rules", err);
  }
}

Result<void> send_all(const UniqueFd& socket, const void* data, size_t size) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t n;
  do n = sendto(socket.get(), data, size, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel);
  while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EPERM ? kernel_error(EPERM) : sys_error("send packet rules");
  return {};
}

// The next datagram, from the kernel and nobody else. An answer that was lost (ENOBUFS) is an error: nothing is guessed.
Result<size_t> receive(const UniqueFd& socket, std::vector<char>& buffer) {
  for (;;) {
    pollfd p{socket.get(), POLLIN, 0};
    int ready = poll(&p, 1, kAnswerMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return sys_error("poll");
    if (ready == 0) return make_error(Errc::TIMEOUT, "the kernel does not answer about packet rules");
    sockaddr_nl from{};
    iovec io{buffer.data(), buffer.size()};
    msghdr m{};
    m.msg_name = &from, m.msg_namelen = sizeof from, m.msg_iov = &io, m.msg_iovlen = 1;
    ssize_t n = recvmsg(socket.get(), &m, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return sys_error("receive about packet rules");
    if (m.msg_flags & MSG_TRUNC) return make_error(Errc::TOO_LARGE, "an answer about packet rules is too large");
    if (from.nl_pid != 0) continue;
    return static_cast<size_t>(n);
  }
}

int error_of(const nlmsghdr* h) { return h->nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr)) ? EBADMSG : -static_cast<const nlmsgerr*>(NLMSG_DATA(h))->error; }

struct Answers {
  bool changed = false;  // meanwhile, by somebody else
};

// The answers to the request of `sequence`, until a dump ends, an acknowledgement comes or `each` has enough.
Result<Answers> answers(const UniqueFd& socket, uint32_t sequence, const std::function<Result<bool>(const nlmsghdr*)>& each) {
  Answers out;
  static thread_local std::vector<char> buffer(kAnswer);  // of all of them: a reading has dozens
  for (;;) {
    int left = static_cast<int>(H5I_TRY(receive(socket, buffer)));
    const auto* h = reinterpret_cast<const nlmsghdr*>(buffer.data());
    for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
      if (h->nlmsg_seq != sequence) continue;
      if (h->nlmsg_flags & NLM_F_DUMP_INTR) out.changed = true;
      if (h->nlmsg_type == NLMSG_DONE) return out;
      if (h->nlmsg_type == NLMSG_ERROR) {
        if (int err = error_of(h)) return kernel_error(err);
        return out;
      }
      if (H5I_TRY(each(h))) return out;
    }
  }
}

using Fill = std::function<void(nlmsghdr*)>;

Result<bool> dump(const UniqueFd& socket, uint16_t type, uint32_t family, const Fill& fill, Inventory& into) {
  std::vector<char> buffer(4096);
  uint32_t sequence = fresh_sequence();
  nlmsghdr* h = nftnl_nlmsg_build_hdr(buffer.data(), type, static_cast<uint16_t>(family), NLM_F_DUMP, sequence);
  if (fill) fill(h);
  H5I_TRY(send_all(socket, h, h->nlmsg_len));
  auto each = [&](const nlmsghdr* m) -> Result<bool> {
    H5I_TRY(into.add(m));
    return false;
  };
  Answers a = H5I_TRY(answers(socket, sequence, each));
  return !a.changed;
}

// Counts up with each change of rules in the namespace.
Result<uint32_t> generation(const UniqueFd& socket) {
  std::vector<char> buffer(4096);
  uint32_t sequence = fresh_sequence(), out = 0;
  nlmsghdr* h = nftnl_nlmsg_build_hdr(buffer.data(), NFT_MSG_GETGEN, 0, 0, sequence);
  H5I_TRY(send_all(socket, h, h->nlmsg_len));
  auto each = [&](const nlmsghdr* m) -> Result<bool> {
    for_each_attribute(m, [&](const nlattr* a) {
      if (mnl_attr_get_type(a) == NFTA_GEN_ID && mnl_attr_get_payload_len(a) == sizeof out) out = ntohl(mnl_attr_get_u32(a));
    });
    return true;
  };
  H5I_TRY(answers(socket, sequence, each));
  return out;
}

// Nothing when it changed under the reader.
Result<std::optional<State>> read_once(const UniqueFd& socket) {
  uint32_t before = H5I_TRY(generation(socket));
  Inventory all;
  for (uint16_t type : {NFT_MSG_GETTABLE, NFT_MSG_GETCHAIN, NFT_MSG_GETSET, NFT_MSG_GETRULE, NFT_MSG_GETOBJ, NFT_MSG_GETFLOWTABLE})
    if (!H5I_TRY(dump(socket, type, 0, {}, all))) return std::optional<State>();
  for (const Inventory::SetName& s : all.sets()) {
    std::unique_ptr<nftnl_set, void (*)(const nftnl_set*)> set(nftnl_set_alloc(), nftnl_set_free);
    nftnl_set_set_str(set.get(), NFTNL_SET_TABLE, s.table.c_str());
    nftnl_set_set_str(set.get(), NFTNL_SET_NAME, s.name.c_str());
    auto fill = [&](nlmsghdr* h) { nftnl_set_elems_nlmsg_build_payload(h, set.get()); };
    auto asked = dump(socket, NFT_MSG_GETSETELEM, s.family, fill, all);
    if (!asked && asked.error().code == Errc::NOT_FOUND) return std::optional<State>();  // the set is gone
    if (!H5I_TRY(std::move(asked))) return std::optional<State>();
  }
  if (H5I_TRY(generation(socket)) != before) return std::optional<State>();
  return std::optional<State>({all.text(), all.counts()});
}

}  // namespace

Result<UniqueFd> open_netfilter_socket() {
  UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd) return errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT ? make_error(Errc::UNSUPPORTED, "this kernel has no netfilter sockets", strerror(errno)) : sys_error("open a netfilter socket");
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&self), sizeof self) != 0) return sys_error("bind a netfilter socket");
  return fd;
}

Result<void> apply(const UniqueFd& socket, const Ruleset& ruleset, Change change) {
  Batch batch = H5I_TRY(to_batch(ruleset, change, fresh_sequence()));
  H5I_TRY(send_all(socket, batch.bytes.data(), batch.bytes.size()));
  std::vector<char> buffer(kAnswer);
  for (;;) {
    int left = static_cast<int>(H5I_TRY(receive(socket, buffer)));
    const auto* h = reinterpret_cast<const nlmsghdr*>(buffer.data());
    for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
      if (h->nlmsg_type != NLMSG_ERROR) continue;
      if (int err = error_of(h)) return kernel_error(err);
      if (h->nlmsg_seq == batch.last_sequence) return {};
    }
  }
}

Result<State> read_state(const UniqueFd& socket) {
  for (int i = 0; i < kReadings; i++)
    if (auto state = H5I_TRY(read_once(socket))) return std::move(*state);
  return make_error(Errc::BUSY, "the packet rules change all the while", "read " + std::to_string(kReadings) + " times");
}

Result<State> confirm(const UniqueFd& socket, const Ruleset& ruleset) {
  State state = H5I_TRY(read_state(socket));
  std::vector<std::string> lines = difference(inventory(ruleset), state.inventory);
  if (lines.empty()) return state;
  std::string evidence;
  for (size_t i = 0; i < std::min(lines.size(), kShown); i++) evidence += (i ? "; " : "") + lines[i];
  if (lines.size() > kShown) evidence += "; and " + std::to_string(lines.size() - kShown) + " more";
  return make_error(Errc::TIER_SETUP, "the kernel does not hold the packet rules that were given to it", printable(evidence, {.limit = 2000}));
}

}  // namespace h5i::nft
