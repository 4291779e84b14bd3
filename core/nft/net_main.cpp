// h5i-net: the network of one box, from outside. It gives the rules to the box's network namespace, reads them back, listens to
// what they refuse, then starts the way out; at the end it says what went where. A process of its own, because `h5i-host` is
// on the way of every run and links none of the libraries that this takes.
//
// Descriptor 3 is the spawner's socket. One packet is one JSON object. Asked, with the user namespace that owns the box's network
// and that network as descriptors: {"do":"begin","egress":h5i.egress/1,"uplink":"none"|"observed"|"any"|"slirp4netns"|"pasta",
// "host_loopback":bool}, {"do":"replace","egress":...}, {"do":"end"}. Answered: {"error":id,"what":text,"evidence":text}, or what was
// asked for. With "replace" may come "hosts", and the user and mount namespaces whose /etc/hosts is to say that; "uncertain" in an
// error: it is not known which rules hold, and the way out was ended.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <optional>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/nft/far_end.hpp"
#include "core/nft/inside.hpp"
#include "core/nft/packet_log.hpp"
#include "core/nft/transaction.hpp"
#include "core/nft/uplink.hpp"
#include "core/os/pidfd.hpp"
#include "core/os/socket.hpp"

namespace {

using namespace h5i;
using namespace h5i::nft;

constexpr int kSpawner = 3;

bool any_v6(const Egress& e) {
  for (const Allow& a : e.allow)
    for (const AddressRange& r : a.addresses)
      if (r.from.v6) return true;
  return false;
}

class Network {
 public:
  Result<Json> begin(const Json& asked, std::vector<UniqueFd> namespaces) {
    if (user_) return make_error(Errc::INVALID, "the network was begun already");
    if (namespaces.size() != 2) return make_error(Errc::INVALID, "two namespaces are expected");
    user_ = std::move(namespaces[0]);
    net_ = std::move(namespaces[1]);
    namespaces_.user = user_.get();
    namespaces_.net = net_.get();
    egress_ = H5I_TRY(Egress::from_json(asked["egress"]));
    host_loopback_ = asked["host_loopback"].boolean();
    H5I_TRY(check_gateway(egress_, host_loopback_));
    std::string uplink = asked["uplink"].string();
    std::optional<UplinkSearch> search;
    if (uplink == "any" || uplink == "slirp4netns" || uplink == "pasta") search.emplace(uplink);
    else if (uplink != "none" && uplink != "observed") return make_error(Errc::INVALID, "no such uplink", uplink);
    Opened opened = H5I_TRY(open_inside(namespaces_, {.netfilter = 4, .tun = uplink == "observed"}));
    // Who hears comes before what counts: the kernel itself says things on a new interface, and one that is counted is told.
    log_.emplace(H5I_TRY(PacketLog::listen(std::move(opened.netfilter[2]), egress_.log_group)));
    H5I_TRY(apply(opened.netfilter[0], ruleset_of(egress_), Change::CREATE));
    H5I_TRY(confirm(opened.netfilter[1], ruleset_of(egress_)));
    last_ = std::move(opened.netfilter[3]);
    if (opened.tun) far_.emplace(std::move(opened.tun));
    ipv6_ = any_v6(egress_);
    if (search) {
      UplinkProgram program = H5I_TRY(search->found());
      uplink_.emplace(H5I_TRY(Uplink::start(program, namespaces_, {.ipv6 = ipv6_, .host_loopback = host_loopback_})));
    }
    if (uplink_ && ipv6_ && !uplink_->program().pasta) (void)H5I_TRY(open_inside(namespaces_, {.ipv6 = true}));
    // No rule names an IPv6 address, and nobody carries it. Where the box sees no way at all there is no packet either, and nothing to tell.
    if (uplink_ && !ipv6_) (void)open_inside(namespaces_, {.ipv6 = true});
    return Json(json::Object{{"begun", true}, {"rules", sha256_hex(ruleset_of(egress_).to_text())}, {"uplink", uplink_ ? Json(uplink_->program().path) : Json()}});
  }

  // Counters of rules that stay begin anew: what they counted is kept here. Rules first: a name that the box is told leads somewhere.
  Result<Json> replace(const Json& asked, const std::vector<UniqueFd>& box, bool* uncertain) {
    Egress next = H5I_TRY(Egress::from_json(asked["egress"]));
    if (!log_ || next.log_group != egress_.log_group) return make_error(Errc::INVALID, "another network than the one that was begun");
    if (asked["hosts"].is_string() != (box.size() == 2)) return make_error(Errc::INVALID, "a hosts file without the mounts that it is for");
    if (any_v6(next) && uplink_ && !ipv6_) return make_error(Errc::INVALID, "the box was started without IPv6");
    H5I_TRY(check_gateway(next, host_loopback_));
    const std::string was = sha256_hex(ruleset_of(egress_).to_text());
    Egress before = H5I_TRY(hold(std::move(next), uncertain));
    if (asked["hosts"].is_string()) {
      if (auto told = replace_hosts({.user = box[0].get(), .mnt = box[1].get()}, asked["hosts"].string()); !told) {
        // What holds now is not what the answer will say, unless the rules before are put back and seen to be.
        bool back = false;
        auto undone = hold(std::move(before), &back);
        *uncertain = !undone;
        if (undone) return told.error();
        const Error& e = undone.error();
        return make_error(e.code, "the rules before a change could not be put back: " + e.what,
                          e.evidence + " (after: " + told.error().what + ": " + told.error().evidence + ")");
      }
    }
    return Json(json::Object{{"replaced", true}, {"before", was}, {"rules", sha256_hex(ruleset_of(egress_).to_text())}});
  }

  Result<Json> end() {
    if (!log_) return make_error(Errc::INVALID, "the network was not begun");
    heard();
    seen();
    auto state = read_state(last_);
    heard();
    if (state) keep(state->counts);
    Json out = json::Object{{"schema", "h5i.network/1"}, {"rules", sha256_hex(ruleset_of(egress_).to_text())}};
    out["changed"] = state ? Json(state->inventory != inventory(ruleset_of(egress_))) : Json();
    out["allowed"] = allowed();
    out["refused_packets"] = counts_[kRefusedRule].packets;
    out["refused"] = told(refused_);
    out["refused_others"] = refused_.others();
    out["truncated"] = refused_.truncated();
    out["lost"] = refused_.lost() || failed_log_;
    out["unreadable"] = refused_.unreadable();
    if (far_) out["arrived"] = told(far_->seen());
    if (uplink_) out["uplink"] = json::Object{{"path", uplink_->program().path}, {"version", uplink_->program().version}, {"ended", uplink_ended_}};
    return out;
  }

  void poll_entries(pollfd* log, pollfd* far, pollfd* uplink) const {
    *log = {log_ && !failed_log_ ? log_->fd() : -1, POLLIN, 0};
    *far = {far_ ? far_->fd() : -1, POLLIN, 0};
    *uplink = {uplink_ && !uplink_ended_ ? uplink_->pidfd() : -1, POLLIN, 0};
  }
  void heard() {
    if (!log_ || failed_log_) return;
    auto read = log_->read();
    if (read) refused_.add(*read, realtime_ns());
    else failed_log_ = true;
  }
  void seen() {
    if (far_) far_->read(realtime_ns());
  }
  // Nobody knows which rules hold: without a way out none of the box's packets goes anywhere, whatever becomes of the box.
  void shut() {
    if (!uplink_) return;
    uplink_->end();
    uplink_ended_ = true;
  }
  void uplink_left() {
    uplink_ended_ = true;
    uplink_->left();
  }

 private:
  struct Counted {
    uint64_t packets = 0, bytes = 0;
  };
  // These rules instead of those that are held; gives those. What the kernel did not take, as far as it says, is read too.
  Result<Egress> hold(Egress next, bool* uncertain) {
    Opened opened = H5I_TRY(open_inside(namespaces_, {.netfilter = 3}));
    *uncertain = true;
    State before = H5I_TRY(confirm(opened.netfilter[0], ruleset_of(egress_)));
    if (auto taken = apply(opened.netfilter[1], ruleset_of(next), Change::REPLACE); !taken) {
      *uncertain = !confirm(opened.netfilter[2], ruleset_of(egress_));
      return taken.error();
    }
    keep(before.counts);
    std::swap(egress_, next);
    H5I_TRY(confirm(opened.netfilter[2], ruleset_of(egress_)));
    *uncertain = false;
    return next;
  }
  void keep(const std::vector<Count>& counts) {
    for (const Count& c : counts) {
      counts_[c.rule].packets += c.packets;
      counts_[c.rule].bytes += c.bytes;
    }
    for (const Allow& a : egress_.allow) about_[a.id] = a;
  }
  // Of every destination that was ever allowed in this run.
  Json allowed() {
    Json out = json::Array{};
    for (const auto& [id, a] : about_) {
      Counted sum;
      for (bool v6 : {false, true}) {
        auto it = counts_.find(allow_rule_name(a, v6));
        if (it == counts_.end()) continue;
        sum.packets += it->second.packets;
        sum.bytes += it->second.bytes;
      }
      out.push(json::Object{{"id", id}, {"about", a.about}, {"packets", sum.packets}, {"bytes", sum.bytes}});
    }
    return out;
  }
  static Json told(const Refusals& r) {
    Json out = json::Array{};
    for (const Refusals::Entry& e : r.entries()) out.push(json::Object{{"to", to_text(e.to)}, {"packets", e.packets}, {"first", rfc3339(e.first_ns)}});
    return out;
  }

  UniqueFd user_, net_;
  UniqueFd last_;  // a netfilter socket for the end, so that nobody has to enter the network once more
  Namespaces namespaces_;
  Egress egress_;
  std::optional<PacketLog> log_;
  std::optional<FarEnd> far_;
  std::optional<Uplink> uplink_;
  Refusals refused_;
  std::map<std::string, Counted> counts_;
  std::map<std::string, Allow> about_;
  bool host_loopback_ = false, ipv6_ = false, failed_log_ = false, uplink_ended_ = false;
};

Result<Json> answer(Network& network, os::Packet packet, bool* uncertain) {
  Json asked = H5I_TRY(parse_json(packet.bytes, "request to h5i-net", os::kMaxPacket));
  std::string verb = asked["do"].string();
  if (verb == "begin") return network.begin(asked, std::move(packet.fds));
  if (verb == "replace") {
    auto said = network.replace(asked, packet.fds, uncertain);
    if (*uncertain) network.shut();
    return said;
  }
  if (verb == "end") return network.end();
  return make_error(Errc::INVALID, "no such request", verb);
}

}  // namespace

int main() {
  if (fcntl(kSpawner, F_SETFD, FD_CLOEXEC) != 0) return 64;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  signal(SIGPIPE, SIG_IGN);
  Network network;
  for (;;) {
    pollfd q[4] = {{kSpawner, POLLIN, 0}};
    network.poll_entries(&q[1], &q[2], &q[3]);
    if (poll(q, 4, -1) < 0 && errno != EINTR) return 1;
    if (q[1].revents) network.heard();
    if (q[2].revents) network.seen();
    if (q[3].revents) network.uplink_left();
    if (!q[0].revents) continue;
    auto packet = os::receive_packet(kSpawner, true);
    if (!packet && packet.error().code == Errc::BUSY) continue;
    if (!packet || !*packet) return 0;  // the spawner is gone, and with it the box
    bool uncertain = false;
    auto said = answer(network, std::move(**packet), &uncertain);
    Json out = said ? std::move(*said) : Json(json::Object{{"error", errc_id(said.error().code)}, {"what", said.error().what}, {"evidence", said.error().evidence}, {"uncertain", uncertain}});
    if (!os::send_packet(kSpawner, json::canonical(out))) return 1;
  }
}
