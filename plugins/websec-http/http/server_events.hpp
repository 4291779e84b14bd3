// A stream of server-sent events (HTML, section 9.2.6), fed with any split of bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/http/oddity.hpp"
#include "plugins/websec-http/http/sink.hpp"

namespace h5i::websec {

struct ServerEvent {
  std::string_view type;  // "message" when the stream names none
  std::string_view data;  // its lines joined by LF
  std::string_view id;    // the last one that was set, by this event or before
  uint64_t offset = 0;    // of the event's first line in the stream
};
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual bool event(const ServerEvent& e) = 0;  // false: no more
};

struct EventLimits {
  size_t line_bytes = 1024 * 1024;
  size_t data_bytes = 4 * 1024 * 1024;
};

class ServerEvents : public BodySink {
 public:
  ServerEvents(const EventLimits& limits, EventSink& to) : limits_(limits), to_(to) {}
  bool take(std::string_view bytes) override;
  void end();  // what was not ended by an empty line is no event
  const std::string& last_id() const { return id_; }
  std::optional<uint64_t> retry_ms() const { return retry_; }
  const Oddities& oddities() const { return oddities_; }

 private:
  bool line(std::string_view l);
  bool dispatch();

  EventLimits limits_;
  EventSink& to_;
  Oddities oddities_{false};
  std::string held_;  // a line that is not whole yet
  std::string type_, data_, id_, next_id_;
  bool has_data_ = false, after_cr_ = false, first_line_ = true, started_ = false;
  std::optional<uint64_t> retry_;
  uint64_t offset_ = 0, line_offset_ = 0, event_offset_ = 0;
};

}  // namespace h5i::websec
