#include "plugins/websec-http/index/index.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "plugins/websec-http/digest/sha256.hpp"

namespace h5i::websec {
namespace {

constexpr const char* kLock = "lock";  // held by who reads or writes; holds a mark while somebody writes
constexpr const char* kRows = "rows";
constexpr int64_t kWaitMs = 1000;  // for a lock; then the log is read
constexpr uint64_t kFew = 20'000;  // rows up to which an index of a column is the better way

int open_file(int folder, const char* name, int flags) {
  int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  struct stat st {};
  if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
    ::close(fd);
    errno = EINVAL;
    return -1;
  }
  return fd;
}

bool take_lock(int fd, int how) {
  for (int64_t waited = 0; flock(fd, how | LOCK_NB) != 0;) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || waited >= kWaitMs) return false;
    timespec nap{0, 5'000'000};
    nanosleep(&nap, nullptr);
    waited += 5;
  }
  return true;
}

uint64_t size_of(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 && st.st_size > 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

int64_t clamp(uint64_t n) { return n > INT64_MAX ? INT64_MAX : static_cast<int64_t>(n); }

}  // namespace

struct Index::Files {
  int folder = -1, lock = -1, rows = -1;
  bool may_write = true;

  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() {
    for (int fd : {rows, lock, folder})
      if (fd >= 0) ::close(fd);
  }
  bool open(const std::string& path) {
    folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return false;
    lock = open_file(folder, kLock, O_RDWR | O_CREAT);
    if (lock < 0) {
      lock = open_file(folder, kLock, O_RDONLY);
      may_write = false;
    }
    return lock >= 0;
  }
  void close_rows() {
    if (rows >= 0) ::close(rows);
    rows = -1;
  }
  // Once this has returned true, a mark is on the disk: whoever dies before it is taken off leaves what nobody will read.
  bool mark() { return pwrite(lock, "w", 1, 0) == 1 && fdatasync(lock) == 0; }
  bool unmark() { return ftruncate(lock, 0) == 0; }
  bool marked() const { return size_of(lock) > 0; }
};

Index::~Index() {
  db_.reset();
  files_.reset();
}

void Index::discard(const std::string& folder) {
  Files files;
  if (files.open(folder) && files.may_write && take_lock(files.lock, LOCK_EX)) {
    (void)unlinkat(files.folder, kRows, 0);
    (void)files.unmark();
  }
}

namespace {

// How far the index goes, when it is one of this log.
std::optional<Extent> reach_of(Database& db) {
  Statement meta(db, "SELECT version, log, next, last, digest, end FROM meta LIMIT 2");
  if (!meta.next() || meta.integer(0) != kIndexVersion) return std::nullopt;
  Extent r{meta.bytes(1), static_cast<uint64_t>(meta.integer(2)), static_cast<uint64_t>(meta.integer(3)), meta.bytes(4), static_cast<uint64_t>(meta.integer(5))};
  if (meta.next() || !db.ok() || r.log.empty() || r.next == 0 || r.end <= r.last) return std::nullopt;
  return r;
}

}  // namespace

sdk::Result<std::unique_ptr<Index>> Index::open(const std::string& folder, const LogLines& log) {
  std::unique_ptr<Index> none;
  auto files = std::make_unique<Files>();
  if (!files->open(folder)) return none;

  enum class State { GOOD, BEHIND, USELESS };
  std::unique_ptr<Database> db;
  Extent reach;
  auto close = [&] {
    db.reset();
    files->close_rows();
  };
  auto look = [&]() -> sdk::Result<State> {
    if (files->marked()) return State::USELESS;
    files->rows = open_file(files->folder, kRows, files->may_write ? O_RDWR : O_RDONLY);
    if (files->rows < 0 || size_of(files->rows) == 0) return State::USELESS;
    db = std::make_unique<Database>(files->rows, false);
    auto found = db->ok() ? reach_of(*db) : std::nullopt;
    if (!found) return State::USELESS;
    reach = *std::move(found);
    State state = State::USELESS;
    auto read = log(reach.last, [&](uint64_t at, std::string_view line) {
      if (at != reach.last) {
        state = State::BEHIND;
        return false;
      }
      if (at + line.size() + 1 != reach.end || sha256_hex(line) != reach.digest) return false;
      state = State::GOOD;
      return true;
    });
    if (!read.ok() && read.error().code != H5I_E_INVALID) return read.error();  // INVALID: the log is shorter, or another one
    return state;
  };
  auto done = [&] {
    std::unique_ptr<Index> out(new Index);
    out->files_ = std::move(files);
    out->db_ = std::move(db);
    out->reach_ = std::move(reach);
    return out;
  };

  if (!take_lock(files->lock, LOCK_SH)) return none;
  State state = H5I_SDK_TRY(look());
  if (state == State::GOOD) return done();
  close();
  if (!files->may_write || flock(files->lock, LOCK_UN) != 0 || !take_lock(files->lock, LOCK_EX)) return none;
  state = H5I_SDK_TRY(look());  // another may have been faster
  if (state == State::GOOD) return done();

  const bool anew = state == State::USELESS;
  if (anew) {
    close();
    (void)unlinkat(files->folder, kRows, 0);
    reach = Extent{};
    files->rows = open_file(files->folder, kRows, O_RDWR | O_CREAT | O_EXCL);
    if (files->rows < 0) return none;
  }
  if (!files->mark()) return none;
  if (anew) db = std::make_unique<Database>(files->rows, true);
  std::string last;
  bool good = db->ok();
  std::optional<sdk::Failure> unreadable;
  if (good) {
    IndexBuilder builder(*db, reach);
    auto read = log(reach.end, [&](uint64_t at, std::string_view line) {
      good = builder.take(at, line);
      last.assign(line);
      return good;
    });
    unreadable = read.ok() ? builder.failure() : std::optional<sdk::Failure>(read.error());
    if (good && !unreadable && builder.reach().next > reach.next) {
      reach = builder.reach();
      reach.digest = sha256_hex(last);
      good = builder.finish(reach.digest);
    } else {
      good = false;
    }
  }
  if (good && anew) good = db->make_indexes();
  if (good && db->ok() && fdatasync(files->rows) == 0 && files->unmark()) return done();
  close();
  (void)unlinkat(files->folder, kRows, 0);
  (void)files->unmark();
  if (unreadable) return *unreadable;
  return none;
}

namespace {

std::string condition_of(const Filter& f, std::vector<const std::string*>& texts) {
  auto numbers = [&](const char* column) { return std::string(column) + " BETWEEN " + std::to_string(f.least) + " AND " + std::to_string(f.most); };
  auto text = [&](const char* sql) {
    texts.push_back(&f.text);
    return std::string(sql);
  };
  using F = Filter::Field;
  switch (f.field) {
    case F::HOST: return text("host IN (SELECT id FROM host WHERE instr(name, ?))");
    case F::PATH: return text("instr(path, ?)");
    case F::METHOD: return text("method = (SELECT id FROM word WHERE name = ?)");
    case F::ENDED: return text("ended = (SELECT id FROM word WHERE name = ?)");
    case F::TYPE: return text("type IN (SELECT id FROM word WHERE instr(name, ?))");
    case F::EXPERIMENT: return text("experiment > 1 AND experiment = (SELECT id FROM word WHERE name = ?)");
    case F::STATUS: return numbers("status");
    case F::REFUSED: return numbers("refused");
    case F::SEQ: return numbers("seq");
    case F::SIZE: return numbers("size");
    case F::TIME: return numbers("time");
  }
  return "0";
}

// "FROM sent ... WHERE ..." with its texts, by the better of two ways: an index where it leads to few rows, otherwise the rows in their order.
struct Question {
  std::string sql;
  std::vector<const std::string*> texts;

  void bind(Statement& s) const {
    s.begin();
    for (const std::string* t : texts) s.bind(*t);
  }
};

Question question_of(Database& db, const Filters& filters, uint64_t from, uint64_t until, bool later_too) {
  Question q;
  std::string all;
  std::vector<const std::string*> of_index;
  std::string by_index;
  bool host = false, status = false, experiment = false, seq = false;
  for (const Filter& f : filters) {
    const std::string one = condition_of(f, q.texts);
    all += (all.empty() ? "" : " AND ") + one;
    const bool counts = f.field == Filter::Field::HOST || f.field == Filter::Field::STATUS || f.field == Filter::Field::EXPERIMENT;
    host = host || f.field == Filter::Field::HOST;
    status = status || f.field == Filter::Field::STATUS;
    experiment = experiment || f.field == Filter::Field::EXPERIMENT;
    seq = seq || f.field == Filter::Field::SEQ;
    if (counts) by_index += (by_index.empty() ? "" : " AND ") + condition_of(f, of_index);
  }
  const std::string range = " seq >= " + std::to_string(clamp(from)) + " AND seq <= " + std::to_string(clamp(until));
  const char* way = " NOT INDEXED";
  if (const char* index = experiment ? " INDEXED BY sent_experiment" : host ? " INDEXED BY sent_host" : " INDEXED BY sent_status"; !seq && !later_too && (host || status || experiment)) {
    Statement few(db, "SELECT count(*) FROM (SELECT 1 FROM sent" + std::string(index) + " WHERE " + by_index + " LIMIT " + std::to_string(kFew) + ")");
    few.begin();
    for (const std::string* t : of_index) few.bind(*t);
    if (few.next() && static_cast<uint64_t>(few.integer(0)) < kFew) way = index;
  }
  q.sql = " FROM sent" + std::string(way) + " WHERE" + range;
  // What holds in a log that is shorter than the index is seen from the lines themselves.
  if (!all.empty()) q.sql += later_too ? " AND ((" + all + ") OR outcome_seq > " + std::to_string(clamp(until)) + ")" : " AND " + all;
  return q;
}

}  // namespace

std::optional<uint64_t> Index::begin_of_last(const Filters& filters, uint64_t most, bool* cut) {
  const Question q = question_of(*db_, filters, 0, UINT64_MAX, false);
  Statement s(*db_, "SELECT seq" + q.sql + " ORDER BY seq DESC LIMIT " + std::to_string(clamp(most) == INT64_MAX ? INT64_MAX : clamp(most) + 1));
  q.bind(s);
  uint64_t count = 0, begin = UINT64_MAX;
  *cut = false;
  while (s.next()) {
    if (count++ < most) begin = static_cast<uint64_t>(s.integer(0));
    else *cut = true;
  }
  return db_->ok() ? std::optional(begin) : std::nullopt;
}

std::optional<std::vector<SendPlace>> Index::sends(const Filters& filters, uint64_t from, uint64_t until, size_t most) {
  const Question q = question_of(*db_, filters, from, until, reach_.next > 0 && until < reach_.next - 1);
  Statement numbers(*db_, "SELECT seq" + q.sql + " ORDER BY seq LIMIT " + std::to_string(most));
  q.bind(numbers);
  std::vector<int64_t> found;
  while (numbers.next()) found.push_back(numbers.integer(0));
  Statement row(*db_,
                "SELECT at, outcome, outcome_seq, refused, (SELECT name FROM host WHERE id = host), path, (SELECT name FROM word WHERE id = method), status, (SELECT name FROM word WHERE id = ended), "
                "(SELECT name FROM word WHERE id = type), size, time, (SELECT name FROM word WHERE id = experiment), host IS NULL, wire, decoded FROM sent WHERE seq = ?");
  std::vector<SendPlace> out;
  for (int64_t seq : found) {
    if (!row.with(seq).next()) break;
    SendPlace p;
    p.at = static_cast<uint64_t>(row.integer(0));
    if (!row.is_null(1)) p.outcome_at = static_cast<uint64_t>(row.integer(1));
    if (!row.is_null(2)) p.outcome_seq = static_cast<uint64_t>(row.integer(2));
    p.row.seq = static_cast<uint64_t>(seq);
    p.row.refused = row.integer(3) != 0;
    if (!row.integer(13)) p.row.host = row.bytes(4);
    if (!row.is_null(5)) p.row.path = row.bytes(5);
    p.row.method = row.bytes(6);
    p.row.status = row.integer(7);
    p.row.ended = row.bytes(8);
    p.row.type = row.bytes(9);
    p.row.size = row.integer(10);
    p.row.total_us = row.integer(11);
    p.row.experiment = row.bytes(12);
    p.row.wire = row.integer(14);
    p.row.decoded = row.integer(15);
    out.push_back(std::move(p));
  }
  if (out.size() != found.size() || !db_->ok()) return std::nullopt;
  return out;
}

std::optional<Amounts> Index::spent() {
  Statement sum(*db_, "SELECT count(*), ifnull(sum(wire), 0), ifnull(sum(decoded), 0), ifnull(sum(min(max(time, 0), 1099511627776)), 0) FROM sent NOT INDEXED WHERE NOT refused");
  if (!sum.next()) return std::nullopt;
  auto of = [&](int column) { return static_cast<uint64_t>(sum.integer(column)); };
  return Amounts{of(0), of(1), of(2), of(3)};
}

std::optional<std::vector<LinePlace>> Index::lines(const std::vector<std::string>& kinds, uint64_t from, uint64_t until, size_t most) {
  std::string marks;
  for (size_t i = 0; i < kinds.size(); i++) marks += i ? ",?" : "?";
  Statement s(*db_, "SELECT seq, at FROM line WHERE kind IN (SELECT id FROM word WHERE name IN (" + marks + ")) AND seq >= " + std::to_string(clamp(from)) + " AND seq <= " + std::to_string(clamp(until)) +
                        " ORDER BY seq LIMIT " + std::to_string(most));
  s.begin();
  for (const std::string& k : kinds) s.bind(k);
  std::vector<LinePlace> out;
  while (s.next()) out.push_back({static_cast<uint64_t>(s.integer(0)), static_cast<uint64_t>(s.integer(1))});
  return db_->ok() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<LinePlace>> Index::lines_of(uint64_t send, const std::string& kind, uint64_t until) {
  Statement s(*db_, "SELECT seq, at FROM line WHERE of = ? AND kind = (SELECT id FROM word WHERE name = ?) AND seq > of AND seq <= ? ORDER BY seq");
  s.with(send, kind, clamp(until));
  std::vector<LinePlace> out;
  while (s.next()) out.push_back({static_cast<uint64_t>(s.integer(0)), static_cast<uint64_t>(s.integer(1))});
  return db_->ok() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace h5i::websec
