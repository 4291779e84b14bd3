// The half on the host of an engine whose wire is in a box. It keeps scope, jar, rate and log, and has no socket that leads anywhere: what the box is
// about to send it gets as bytes, checks against what was asked, records, and answers with the number of the line.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "plugins/websec-http/engine/channel.hpp"
#include "plugins/websec-http/engine/send.hpp"

namespace h5i::websec {

// Where the wire of a session is.
struct Placement {
  std::string text = "not contained";  // or "in box fix (process)"
  std::string network;                 // of the box: "none", "host", "rules"; "" without one
};
Placement placement_of(const json::Value& session);

// What a half in a box is about to send, against what it was asked for: "" when it is that, or what is wrong. Pure. `asked`: the first hop.
std::string not_as_asked(const Scope& scope, const SendOptions& options, const Request& asked, const Intent& intent);

class Box {
 public:
  // `channel`: its descriptor, borrowed. The other half is told whom TLS trusts and whether a connection serves more than one send.
  Box(int channel, Placement placement, const Scope& scope, const TlsContext::Options& trust, bool reuse);
  ~Box();
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  // As websec::send(), by any thread; `recorder` writes on this side.
  sdk::Result<Sends> send(const sdk::Host& host, Recorder& recorder, const Scope& scope, const std::string& url, Request request, const SendOptions& options);
  // What the box said and may not: {"what","said"}. From the first on it is not listened to any more.
  json::Value forged() const;

 private:
  class One;
  void read();
  std::optional<Message> next(uint64_t id);
  void forge(const std::string& what, const json::Value& said);
  std::string why_over() const;

  Channel channel_;
  const Placement placement_;
  mutable std::mutex one_;
  std::condition_variable came_;
  std::map<uint64_t, std::deque<Message>> waiting_;
  uint64_t ids_ = 0;
  bool over_ = false;
  std::string broken_;
  json::Value forged_ = json::Array{};
  std::thread reader_;
};

}  // namespace h5i::websec
