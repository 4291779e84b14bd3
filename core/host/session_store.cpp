#include "core/host/session_store.hpp"

#include <unistd.h>

#include "core/evidence/lines.hpp"

namespace h5i::host {
Result<SessionStore> SessionStore::open(const UniqueFd& folder, evidence::Observer observer) {
  if (fchdir(folder.get()) != 0) return sys_error("enter the session's folder");
  auto head = evidence::read_head(kLogName);
  if (!head || head->count == 0) return make_error(Errc::CORRUPT, "the session has no log", "its first record is the core's");
  return SessionStore(std::move(observer));
}

Result<uint64_t> SessionStore::append(std::string kind, Json body) {
  evidence::Record r;
  r.observer = observer_;
  r.boundary = evidence::Boundary::NET;
  r.kind = std::move(kind);
  r.body = std::move(body);
  std::lock_guard lock(*writing_);
  if (!log_) log_.emplace(H5I_TRY(evidence::Log::open(kLogName)));
  return H5I_TRY(log_->append(r)).count - 1;
}

Result<void> SessionStore::flush() {
  {
    std::lock_guard lock(*writing_);
    if (!log_) return {};
  }
  return log_->flush();  // a descriptor that stays: others append meanwhile
}

Result<void> SessionStore::read(uint64_t from, const std::function<bool(const Json&)>& each) const {
  return evidence::read_log(kLogName, [&](uint64_t index, const Json& record) { return index < from || each(record); });
}

Result<void> SessionStore::lines(uint64_t offset, const std::function<bool(std::string_view)>& each) const {
  evidence::LineReader in = H5I_TRY(evidence::LineReader::open(kLogName));
  if (offset > in.size()) return make_error(Errc::INVALID, "no line of the log begins there", std::to_string(offset) + " of " + std::to_string(in.size()) + " bytes");
  // Where a line begins, one ends.
  evidence::Line line;
  in.seek(offset == 0 ? 0 : offset - 1);
  if (offset > 0 && !(H5I_TRY(in.next(&line)) && line.complete && line.text.empty()))
    return make_error(Errc::INVALID, "no line of the log begins there", "byte " + std::to_string(offset));
  while (H5I_TRY(in.next(&line)) && line.complete) {
    if (line.too_long) return make_error(Errc::CORRUPT, "the session's log has an unreadable line", "byte " + std::to_string(line.offset) + ": too long");
    if (!each(line.text)) return {};
  }
  return {};
}

Result<std::string> SessionStore::put(std::string_view payload) const { return H5I_TRY(evidence::put_blob(kPayloadsName, payload)).sha256; }

Result<std::string> SessionStore::get(const std::string& sha256, uint64_t limit) const { return evidence::get_blob(kPayloadsName, sha256, limit); }

}  // namespace h5i::host
