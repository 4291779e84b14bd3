// The index of one session's log: which sends a question is about and where they stand in the log. Never trusted over the log: who shows a row reads
// it there, compares, and throws the index away when it differs.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/websec-http/budget/budget.hpp"
#include "plugins/websec-http/index/builder.hpp"
#include "plugins/websec-http/index/filter.hpp"

namespace h5i::websec {

// The whole lines of a log from an offset on, until `each` says false; sdk::Host::lines.
using LogLines = std::function<sdk::Status(uint64_t from, const std::function<bool(uint64_t at, std::string_view line)>& each)>;

// Where a send stands.
struct SendPlace {
  IndexRow row;
  uint64_t at = 0;
  std::optional<uint64_t> outcome_at, outcome_seq;
};
struct LinePlace {
  uint64_t seq = 0, at = 0;
};

class Index {
 public:
  // Of the log, up to its end: what the index lacks is taken over, and what is no index of this log is made anew. Nothing: there is none, and none can
  // be made now (the folder cannot be written, another process is making it): the log itself has to be read. A failure is the log's own.
  // Waits for others at most two seconds.
  static sdk::Result<std::unique_ptr<Index>> open(const std::string& folder, const LogLines& log);
  // Throws away what is in that folder, when it can.
  static void discard(const std::string& folder);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  uint64_t next() const { return reach_.next; }  // number of the line behind the last that it has

  // Each of the following: nothing when the file could not be read; it is to be thrown away then.
  // Of the last `most` sends for which the filters hold, the number of the first; UINT64_MAX when there is none. `cut`: there are more.
  std::optional<uint64_t> begin_of_last(const Filters& filters, uint64_t most, bool* cut);
  // Sends from number `from` to `until`, in the order of the log, at most `most`: all for which the filters hold in the log that ends with line `until`,
  // and perhaps some for which they hold only later.
  std::optional<std::vector<SendPlace>> sends(const Filters& filters, uint64_t from, uint64_t until, size_t most);
  // Of all sends.
  std::optional<Amounts> spent();
  // The engine's other lines of these kinds.
  std::optional<std::vector<LinePlace>> lines(const std::vector<std::string>& kinds, uint64_t from, uint64_t until, size_t most);
  // Those of one send.
  std::optional<std::vector<LinePlace>> lines_of(uint64_t send, const std::string& kind, uint64_t until);

 private:
  Index() = default;
  struct Files;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Database> db_;
  Extent reach_;
};

}  // namespace h5i::websec
