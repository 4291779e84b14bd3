// SQLite, opened so that whatever stands in the file it can only be refused. Every return code is looked at; the first that is not good ends the
// database: ok() is false from then on, and the file is to be thrown away.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/index/pages.hpp"

namespace h5i::websec {

class Statement;

class Database {
 public:
  // `fd`: borrowed. Empty file: the schema is made, without the indexes (make_indexes()). Otherwise the schema must be ours to the letter.
  Database(int fd, bool empty);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  bool ok() const { return ok_; }
  int error() const { return error_; }  // SQLite's, of the first failure
  bool run(const char* sql);
  bool make_indexes();
  int64_t changes() const { return sqlite3_changes64(db_); }
  bool fail(int error);

 private:
  friend class Statement;
  bool check_schema();
  Pages pages_;
  sqlite3* db_ = nullptr;
  bool ok_ = true;
  int error_ = SQLITE_OK;
};

// One statement. Text goes in and comes out as bytes (BLOB): what an origin wrote is in no encoding.
class Statement {
 public:
  Statement(Database& db, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // In the order of the question marks; begins anew.
  template <class... T>
  Statement& with(const T&... values) {
    begin();
    (bind(values), ...);
    return *this;
  }
  void begin();
  void bind(int64_t n);
  void bind(uint64_t n) { bind(static_cast<int64_t>(n)); }
  void bind(const std::string& bytes);
  void bind(const std::optional<std::string>& bytes);
  void bind(const std::optional<int64_t>& n);
  // A row is there. False: the end, or a failure (Database::ok()).
  bool next();
  bool run();  // to its end, without rows

  bool is_null(int column) const { return sqlite3_column_type(at_, column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(at_, column); }
  std::string bytes(int column) const;

 private:
  Database& db_;
  sqlite3_stmt* at_ = nullptr;
  int bound_ = 0;
};

}  // namespace h5i::websec
