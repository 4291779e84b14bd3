// One output stream of a box: read from its pipe, redacted, captured up to a limit, shown to whoever runs h5i. Memory stays
// flat however much the box writes, and a reader that is slow or gone never holds up the caller's poll loop.
#pragma once
#include <poll.h>

#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/unique_fd.hpp"
#include "core/evidence/log.hpp"
#include "core/evidence/redact.hpp"

namespace h5i::session {

// Bytes that may still be captured, shared by stdout and stderr of one run (resources.output).
struct CaptureBudget {
  uint64_t left = 0;
};

// An unlinked file: a capture may be as large as resources.output, which is no business of our memory.
class Capture {
 public:
  static Result<Capture> create(const std::string& dir);
  Result<void> append(std::string_view bytes);
  uint64_t size() const { return size_; }
  Result<evidence::BlobRef> store(const std::string& blobs_dir) const;
  // SHA-256 of what was captured, for audit.capture none.
  Result<std::string> digest() const;

 private:
  UniqueFd file_;
  uint64_t size_ = 0;
};

// Where bytes are shown: a terminal, pipe, socket or file of the invoking user. Writes never block.
class ShowTarget {
 public:
  // `fd`: the caller's 1 or 2 (borrowed). A closed one gives a target that discards.
  explicit ShowTarget(int fd);
  bool terminal() const { return terminal_; }
  bool open() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  // Bytes taken, 0 when it has no room now, -1 when nobody will ever read (it is closed then).
  ssize_t write(std::string_view bytes);
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  bool terminal_ = false, socket_ = false, nonblocking_ = false;
};

class OutputStream {
 public:
  // `source`: read end of the box's pipe. `raw`: the master of an interactive shell's pty, whose bytes are shown as they
  // are (a filter or a redactor that waits for the rest of a word would make typing impossible); what is captured of it
  // is redacted all the same.
  OutputStream(UniqueFd source, ShowTarget target, Capture capture, CaptureBudget* budget, bool capture_on, bool raw = false);

  // What to poll for now; fd -1 entries are ignored by poll. `in` is the pipe, `out` the target.
  void poll_entries(pollfd* in, pollfd* out) const;
  Result<void> handle(const pollfd& in, const pollfd& out);
  bool source_open() const { return source_.valid(); }
  bool pending() const { return target_.open() && !pending_.empty(); }
  // After the box is gone: reads what is still in the pipe (bounded by the pipe's size), ends redaction, closes the pipe.
  Result<void> drain();
  void drop_pending() { pending_.clear(); }

  uint64_t bytes() const { return bytes_; }
  bool truncated() const { return truncated_; }
  // Why capturing ended before the stream did (a full disk): what came after it was shown and is not kept.
  const std::optional<Error>& lost() const { return lost_; }
  const Capture& capture() const { return capture_; }
  const std::map<std::string, uint64_t>& redactions() const { return redactor_.counts(); }
  bool discarded() const { return discarded_; }  // the reader went away

 private:
  Result<bool> read_once();  // false: nothing more now
  Result<void> take(std::string_view bytes, bool end);
  void show();

  UniqueFd source_;
  ShowTarget target_;
  Capture capture_;
  CaptureBudget* budget_;
  bool capture_on_, raw_, truncated_ = false, discarded_ = false;
  evidence::Redactor redactor_;
  TextFilter filter_{TextRules{.newlines = true, .colour = true}};
  std::string pending_;
  uint64_t bytes_ = 0;
  std::optional<Error> lost_;
};

// Where h5i's own standard input goes: through a pipe of ours, always. What the box would be given itself it could write
// into: /proc/self/fd/0 of a pipe opens for writing, and the text is read by whoever reads that pipe next, a shell on the
// host for one; of a terminal the same (CVE-2005-4890 and its kind). So it never gets a descriptor of the caller's.
//
// From a pipe only what the box reads is taken: the bytes are mirrored (tee(2)) into a pipe that holds one page, and taken
// off the caller's when the box has read them. `while read x; do h5i box run ...; done` works as with any command.
class InputPump {
 public:
  // The descriptor for the box is in take_box_end(); `fd` is the caller's 0 (borrowed).
  static Result<InputPump> create(int fd);
  // For a shell: to the master of its pty (a duplicate). The end of input becomes the terminal's end-of-file character.
  static Result<InputPump> to_pty(int fd, const UniqueFd& master);
  UniqueFd take_box_end() { return std::move(box_end_); }
  void poll_entries(pollfd* in, pollfd* out) const;
  void handle(const pollfd& in, const pollfd& out);
  // After the box is gone, too: what it read of a mirrored pipe is taken off the caller's.
  void close();

 private:
  void mirror();  // the next page, when the box has read the last
  void settle();  // takes off what the box has read
  bool widened() const;

  int from_ = -1;       // borrowed
  UniqueFd to_, box_end_, null_;
  bool terminal_ = false, pty_ = false, at_end_ = false;
  bool mirror_ = false, full_ = false;
  size_t held_ = 0;     // bytes in the box's pipe that are still in the caller's
  std::string pending_;
};

}  // namespace h5i::session
