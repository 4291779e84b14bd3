// Lines of a log become rows.
#pragma once
#include <map>
#include <string_view>
#include <unordered_map>

#include "plugins/websec-http/index/database.hpp"
#include "plugins/websec-http/index/row.hpp"

namespace h5i::websec {

constexpr int64_t kIndexVersion = 2;

// How far an index goes: its log, and the last line that is in it.
struct Extent {
  std::string log;
  uint64_t next = 0;   // number of the line that comes next
  uint64_t last = 0;   // offset of the last line, whose digest is
  std::string digest;  // SHA-256, hexadecimal
  uint64_t end = 0;    // offset of the line that comes next
};

class IndexBuilder {
 public:
  // Goes on behind `reach`; an empty one begins the log. In a transaction.
  IndexBuilder(Database& db, Extent reach);
  // False: the line cannot be in an index of this log (failure() when it is none), or the database failed.
  bool take(uint64_t at, std::string_view line);
  // What is held goes in, and how far it goes now; the transaction ends. `digest`: of the last line.
  bool finish(const std::string& digest);
  const Extent& reach() const { return reach_; }
  const std::optional<sdk::Failure>& failure() const { return failure_; }

 private:
  // Ids of texts; 1 is the empty one of `word`.
  class Names {
   public:
    Names(Database& db, const char* table);
    int64_t id(const std::string& name);

   private:
    Database& db_;
    Statement find_, add_;
    std::unordered_map<std::string, int64_t> known_;
  };
  struct Waiting {
    IndexRow row;
    uint64_t at = 0;
    std::optional<int64_t> outcome, outcome_seq;
  };
  bool put(const Waiting& w);
  bool put_oldest(size_t most);

  Database& db_;
  Extent reach_;
  Statement sent_, ended_, line_;
  Names hosts_, words_;
  std::map<uint64_t, Waiting> waiting_;  // sends whose outcome will soon come: a row that is whole is written once
  std::optional<sdk::Failure> failure_;
};

}  // namespace h5i::websec
