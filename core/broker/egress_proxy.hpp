// The only way out of a box that has no other: an HTTP proxy that judges each connection by the rules of the policy, looks names up
// itself and dials what it looked up. CONNECT and plain HTTP. One thread, and bounded in everything that a box could ask more of.
#pragma once
#include <poll.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/broker/client_hello.hpp"
#include "core/broker/head.hpp"
#include "core/broker/resolver.hpp"
#include "core/broker/target.hpp"
#include "core/broker/verdicts.hpp"

namespace h5i::broker {

// Milliseconds, and for the whole of what they name: a byte now and then prolongs none but `idle`.
struct ProxyLimits {
  size_t connections = 256;  // with 64 KiB each, 16 MiB; a browser opens a few dozen
  int64_t head_ms = 10'000;
  int64_t lookup_ms = 10'000;
  int64_t dial_ms = 10'000;
  int64_t hello_ms = 10'000;
  int64_t idle_ms = 300'000;
  int64_t half_open_ms = 30'000;  // one side has said all that it will
  int64_t linger_ms = 2'000;      // for the last answer to arrive
};

class EgressProxy {
 public:
  // `listener`: a listening TCP socket; it may belong to another network namespace than the one this process dials from.
  static Result<EgressProxy> make(UniqueFd listener, std::vector<policy::EgressRule> rules, Lookup lookup, ProxyLimits limits = {});
  EgressProxy(EgressProxy&&) = default;

  // Serves until `control` is readable or closed.
  Result<void> serve(int control);
  // Other rules from now on. A connection that they would not have let through is cut.
  void replace(std::vector<policy::EgressRule> rules);
  // What went where until now: h5i.proxy/1.
  Json report();

 private:
  enum class State { HEAD, LOOKUP, DIAL, RELAY, REPLY, LINGER, DEAD };
  enum class Gate { OPEN, TLS, FIRST_BYTES };  // what must be seen before the client's bytes may pass
  struct Connection {
    UniqueFd client, origin;
    State state = State::HEAD;
    Gate gate = Gate::OPEN;
    RequestHead head;
    std::vector<policy::EgressRule> by;  // that let it through
    std::vector<Address> addresses;      // to dial
    size_t tried = 0;
    std::string in, up, down;  // from the client and not judged; for the origin; for the client
    std::optional<HelloWatch> watch;
    ChunkWatch chunks;
    uint64_t body_left = 0;
    uint64_t sent = 0, received = 0;
    size_t drained = 0;  // after the last answer
    bool client_over = false, origin_over = false, told_origin = false, told_client = false, counted = false;
    int64_t until_ns = 0;  // of the state
    int64_t last_ns = 0;   // a byte moved
    const Target& to() const { return head.target; }
  };

  EgressProxy() = default;
  void accept_some();
  void client_readable(Connection& c);
  void origin_readable(Connection& c);
  void flush(Connection& c);
  void advance(Connection& c);
  void judge(Connection& c);
  void resolved(Connection& c);
  void dial(Connection& c);
  void dialled(Connection& c);
  void connected(Connection& c);
  void pump(Connection& c);
  bool pass_gate(Connection& c);
  bool body_over(const Connection& c) const;
  void count(Connection& c);
  void refuse(Connection& c, int status, const std::string& reason);
  void reply(Connection& c, int status, const std::string& text);
  void cut(Connection& c, const std::string& reason);
  void late(Connection& c);
  int64_t deadline(const Connection& c) const;
  bool itself(const Address& a, uint16_t port) const;

  UniqueFd listener_;
  std::optional<Address> own_address_;
  uint16_t own_port_ = 0;
  std::vector<policy::EgressRule> rules_;
  std::optional<Resolver> resolver_;
  ProxyLimits limits_;
  Verdicts verdicts_;
  std::list<Connection> connections_;
  int64_t accept_after_ns_ = 0;
};

}  // namespace h5i::broker
