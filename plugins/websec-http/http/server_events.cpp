#include "plugins/websec-http/http/server_events.hpp"

#include <algorithm>

#include "plugins/websec-http/http/syntax.hpp"
#include "plugins/websec-http/http/utf8_check.hpp"

namespace h5i::websec {

bool ServerEvents::take(std::string_view bytes) {
  if (oddities_.refused()) return false;
  size_t at = 0;
  while (at < bytes.size()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[at] == '\n') {
        at++;
        line_offset_ = offset_ + at;
        continue;
      }
    }
    size_t end = std::min(bytes.find_first_of("\r\n", at), bytes.size());
    std::string_view piece = bytes.substr(at, end - at);
    if (held_.size() + piece.size() > limits_.line_bytes) {
      oddities_.add(OddityId::EVENT_TOO_LARGE, line_offset_);
      return false;
    }
    bool ended = end < bytes.size();
    if (!ended) {
      held_.append(piece);
      break;
    }
    bool on;
    if (held_.empty()) {
      on = line(piece);
    } else {
      held_.append(piece);
      on = line(held_);
      held_.clear();
    }
    if (!on) return false;
    after_cr_ = bytes[end] == '\r';
    at = end + 1;
    line_offset_ = offset_ + at;
  }
  offset_ += bytes.size();
  return true;
}

bool ServerEvents::line(std::string_view l) {
  if (first_line_) {
    first_line_ = false;
    if (l.starts_with("\xef\xbb\xbf")) l.remove_prefix(3);
  }
  if (l.empty()) return dispatch();
  if (!started_) {
    started_ = true;
    event_offset_ = line_offset_;
  }
  if (!is_utf8(l)) oddities_.add(OddityId::EVENT_NOT_UTF8, line_offset_);
  size_t colon = std::min(l.find(':'), l.size());
  std::string_view field = l.substr(0, colon), value = colon < l.size() ? l.substr(colon + 1) : std::string_view();
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    type_ = value;
  } else if (field == "data") {
    if (data_.size() + value.size() + 1 > limits_.data_bytes) return oddities_.add(OddityId::EVENT_TOO_LARGE, line_offset_);
    if (has_data_) data_ += '\n';
    data_.append(value);
    has_data_ = true;
  } else if (field == "id") {
    if (value.find('\0') == std::string_view::npos) next_id_ = value;
  } else if (field == "retry" && !value.empty() && value.size() <= 18 && syntax::all(value, syntax::kDigit)) {
    uint64_t n = 0;
    for (char c : value) n = n * 10 + static_cast<uint64_t>(c - '0');
    retry_ = n;
  }
  return true;
}

bool ServerEvents::dispatch() {
  bool on = true;
  id_ = next_id_;  // an event that is cut sets none
  if (has_data_ && !(on = to_.event({type_.empty() ? "message" : std::string_view(type_), data_, id_, event_offset_})))
    oddities_.add(OddityId::READER_STOPPED, line_offset_);
  type_.clear();
  data_.clear();
  has_data_ = started_ = false;
  return on;
}

void ServerEvents::end() {
  if (started_ || !held_.empty()) oddities_.add(OddityId::EVENT_CUT, started_ ? event_offset_ : line_offset_);
}

}  // namespace h5i::websec
