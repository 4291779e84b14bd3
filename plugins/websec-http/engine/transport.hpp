// What the sends of one act share: connections that may be used again, and whom TLS trusts. May be used by several threads.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/websec-http/engine/wire.hpp"

namespace h5i::websec {

class Transport {
 public:
  // `reuse`: a connection may serve more than one send. A peer that closes one without saying so loses the send that it got meanwhile, and
  // nothing is sent twice: so only for who asks for it.
  Transport(const sdk::Host& host, TlsContext::Options trust, bool reuse = false) : host_(host), trust_(std::move(trust)), reuse_(reuse) {}

  // A connection to the peer, name and proxy of that intent on which nothing goes on, or one that is not dialled yet.
  std::unique_ptr<Wire> take(const Intent& to, bool h2);
  // One whose answer ended where it should.
  void give(const Intent& to, bool h2, std::unique_ptr<Wire> wire);
  // Made when it is first needed: it reads every authority of the system.
  sdk::Result<const TlsContext*> trust();

 private:
  const sdk::Host& host_;
  const TlsContext::Options trust_;
  const bool reuse_;
  std::mutex one_;
  std::multimap<std::string, std::unique_ptr<Wire>> idle_;
  std::optional<TlsContext> context_;
};

}  // namespace h5i::websec
