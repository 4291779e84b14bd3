#include "plugins/websec-http/index/database.hpp"

#include <algorithm>

namespace h5i::websec {
namespace {

constexpr const char* kTables[] = {
    "CREATE TABLE meta(version INTEGER NOT NULL, log BLOB NOT NULL, next INTEGER NOT NULL, last INTEGER NOT NULL, digest BLOB NOT NULL, end INTEGER NOT NULL)",
    "CREATE TABLE host(id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)",
    "CREATE TABLE word(id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)",
    ("CREATE TABLE sent(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, outcome INTEGER, outcome_seq INTEGER, refused INTEGER NOT NULL, host INTEGER, method INTEGER NOT NULL, "
     "status INTEGER NOT NULL, ended INTEGER NOT NULL, type INTEGER NOT NULL, size INTEGER NOT NULL, time INTEGER NOT NULL, wire INTEGER NOT NULL, decoded INTEGER NOT NULL, experiment INTEGER NOT NULL, path BLOB)"),
    "CREATE TABLE line(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, of INTEGER)",
};
// Word 1 is the empty one: most sends are of no experiment.
constexpr const char* kIndexes[] = {
    "CREATE INDEX sent_host ON sent(host, status)",
    "CREATE INDEX sent_status ON sent(status)",
    "CREATE INDEX sent_experiment ON sent(experiment) WHERE experiment > 1",
    "CREATE INDEX line_kind ON line(kind)",
    "CREATE INDEX line_of ON line(of) WHERE of IS NOT NULL",
};
constexpr int64_t kMadeBySqlite = 2;  // indexes behind the two UNIQUE

constexpr sqlite3_int64 kHeap = 80 << 20;
constexpr uint64_t kLargestFile = uint64_t{8} << 30;
constexpr uint64_t kCheckedWhole = 1 << 20;  // up to here a look at every page costs nothing that is felt

}  // namespace

Database::Database(int fd, bool empty) : pages_(fd, kLargestFile) {
  (void)sqlite3_hard_heap_limit64(kHeap);
  auto set = [&](int option, int value) {
    int now = -1;
    return sqlite3_db_config(db_, option, value, &now) == SQLITE_OK && now == value;
  };
  if (!pages_.registered() || sqlite3_open_v2("index", &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, pages_.vfs_name()) != SQLITE_OK) {
    (void)fail(SQLITE_CANTOPEN);
    return;
  }
  (void)sqlite3_extended_result_codes(db_, 1);
  if (!set(SQLITE_DBCONFIG_DEFENSIVE, 1) || !set(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0) || !set(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0) || !set(SQLITE_DBCONFIG_ENABLE_VIEW, 0)) {
    (void)fail(SQLITE_MISUSE);
    return;
  }
  for (const auto& [what, most] : {std::pair{SQLITE_LIMIT_LENGTH, 2 << 20}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 16}, {SQLITE_LIMIT_ATTACHED, 0}, {SQLITE_LIMIT_COLUMN, 32}, {SQLITE_LIMIT_VDBE_OP, 25'000},
                                  {SQLITE_LIMIT_TRIGGER_DEPTH, 1}, {SQLITE_LIMIT_EXPR_DEPTH, 200}, {SQLITE_LIMIT_WORKER_THREADS, 0}})
    (void)sqlite3_limit(db_, what, most);
  int reserved = kChecksumBytes;
  if (empty && sqlite3_file_control(db_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) != SQLITE_OK) {
    (void)fail(SQLITE_MISUSE);
    return;
  }
  for (const char* pragma : {"PRAGMA page_size=4096", "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=MEMORY", "PRAGMA synchronous=OFF", "PRAGMA temp_store=MEMORY", "PRAGMA mmap_size=0",
                             "PRAGMA cell_size_check=ON", "PRAGMA cache_size=-12288", "PRAGMA foreign_keys=OFF"})
    if (!run(pragma)) return;
  if (empty) {
    for (const char* table : kTables)
      if (!run(table)) return;
    return;
  }
  reserved = -1;
  if (sqlite3_file_control(db_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) != SQLITE_OK || reserved != kChecksumBytes) (void)fail(SQLITE_CORRUPT);
  else (void)check_schema();
}

Database::~Database() {
  if (db_) (void)sqlite3_close_v2(db_);
}

bool Database::fail(int error) {
  if (ok_) error_ = error;
  ok_ = false;
  return false;
}

bool Database::run(const char* sql) {
  if (!ok_) return false;
  const int error = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  return error == SQLITE_OK || fail(error);
}

bool Database::make_indexes() {
  for (const char* index : kIndexes)
    if (!run(index)) return false;
  return true;
}

// A view, a trigger, a column that is computed, an index that sorts in another way: none of it is ours.
bool Database::check_schema() {
  std::vector<std::string> expected(std::begin(kTables), std::end(kTables)), found;
  expected.insert(expected.end(), std::begin(kIndexes), std::end(kIndexes));
  int64_t others = 0;
  Statement all(*this, "SELECT CAST(sql AS BLOB) FROM sqlite_schema LIMIT 100");
  while (all.next()) {
    if (all.is_null(0)) others++;
    else found.push_back(all.bytes(0));
  }
  if (!ok_) return false;
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (expected != found || others != kMadeBySqlite) return fail(SQLITE_SCHEMA);
  Statement size(*this, "SELECT page_count FROM pragma_page_count");
  if (!size.next()) return fail(SQLITE_CORRUPT);
  if (static_cast<uint64_t>(size.integer(0)) * kPageBytes > kCheckedWhole) return true;
  Statement check(*this, "PRAGMA quick_check(1)");
  return (check.next() && check.bytes(0) == "ok") || fail(SQLITE_CORRUPT);
}

Statement::Statement(Database& db, const std::string& sql) : db_(db) {
  if (!db_.ok()) return;
  if (int error = sqlite3_prepare_v2(db_.db_, sql.c_str(), -1, &at_, nullptr); error != SQLITE_OK) (void)db_.fail(error);
}

Statement::~Statement() { (void)sqlite3_finalize(at_); }

void Statement::begin() {
  if (!at_) return;
  (void)sqlite3_reset(at_);
  bound_ = 0;
}

void Statement::bind(int64_t n) {
  if (at_ && sqlite3_bind_int64(at_, ++bound_, n) != SQLITE_OK) (void)db_.fail(SQLITE_MISUSE);
}
void Statement::bind(const std::string& bytes) {
  if (at_ && sqlite3_bind_blob64(at_, ++bound_, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_TRANSIENT) != SQLITE_OK) (void)db_.fail(SQLITE_TOOBIG);
}
void Statement::bind(const std::optional<std::string>& bytes) {
  if (bytes) return bind(*bytes);
  if (at_ && sqlite3_bind_null(at_, ++bound_) != SQLITE_OK) (void)db_.fail(SQLITE_MISUSE);
}
void Statement::bind(const std::optional<int64_t>& n) {
  if (n) return bind(*n);
  if (at_ && sqlite3_bind_null(at_, ++bound_) != SQLITE_OK) (void)db_.fail(SQLITE_MISUSE);
}

bool Statement::next() {
  if (!db_.ok() || !at_) return false;
  const int error = sqlite3_step(at_);
  if (error == SQLITE_ROW) return true;
  if (error != SQLITE_DONE) (void)db_.fail(error);
  return false;
}

bool Statement::run() {
  while (next()) {
  }
  if (at_) (void)sqlite3_reset(at_);
  return db_.ok();
}

std::string Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(at_, column);
  const int size = sqlite3_column_bytes(at_, column);
  return data && size > 0 ? std::string(static_cast<const char*>(data), static_cast<size_t>(size)) : std::string();
}

}  // namespace h5i::websec
