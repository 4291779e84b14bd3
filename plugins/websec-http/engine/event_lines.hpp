// Server-sent events as lines of the log, each as it is whole.
#pragma once
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/http/server_events.hpp"

namespace h5i::websec {

class EventLines : public BodySink, private EventSink {
 public:
  EventLines(Recorder& recorder, const Recorded& sent, bool capture) : recorder_(recorder), sent_(sent), capture_(capture), events_({}, *this) {}
  bool take(std::string_view bytes) override { return failed_.ok() && events_.take(bytes); }
  uint64_t count() const { return count_; }
  const sdk::Status& failed() const { return failed_; }  // the log could not be written

 private:
  bool event(const ServerEvent& e) override;
  Recorder& recorder_;
  const Recorded& sent_;
  bool capture_;
  ServerEvents events_;
  uint64_t count_ = 0;
  sdk::Status failed_;
};

}  // namespace h5i::websec
