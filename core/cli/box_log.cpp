#include <algorithm>
#include <charconv>
#include <deque>

#include "core/cli/open_box.hpp"
#include "core/cli/record_line.hpp"
#include "core/cli/verbs.hpp"
#include "core/evidence/log.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kDefaultLast = 1000;  // records kept in memory unless --last says more
constexpr size_t kMostLast = 1000000;

struct Selection {
  std::vector<std::string> kinds;
  std::string session;
  size_t last = kDefaultLast;
};

Result<Selection> selection(const Parsed& words) {
  Selection s;
  auto kinds = words.options.find("--kind");
  if (kinds != words.options.end()) s.kinds = kinds->second;
  s.session = words.get("--session");
  if (!words.has("--last")) return s;
  std::string text = words.get("--last");
  auto r = std::from_chars(text.data(), text.data() + text.size(), s.last);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || s.last == 0 || s.last > kMostLast)
    return make_error(Errc::USAGE, "not a number of records: " + text, "1 to " + std::to_string(kMostLast), "h5i box log --help");
  return s;
}

struct Found {
  std::string log_id;
  uint64_t omitted = 0;
  std::deque<Json> records;
};

Result<Found> read_records(const std::string& path, const Selection& s) {
  Found out;
  H5I_TRY(evidence::read_log(path, [&](uint64_t, const Json& r) {
    out.log_id = r["log"].string();
    bool wanted = s.kinds.empty() || std::find(s.kinds.begin(), s.kinds.end(), r["kind"].string()) != s.kinds.end();
    if (!wanted || (!s.session.empty() && r["session"].string() != s.session)) return true;
    out.records.push_back(r);
    if (out.records.size() > s.last) {
      out.records.pop_front();
      out.omitted++;
    }
    return true;
  }));
  return out;
}

Result<Found> read_box_log(Context& ctx, const Parsed& words, session::BoxEntry* box) {
  Selection s = H5I_TRY(selection(words));
  *box = H5I_TRY(open_box(ctx, words.arguments[0]));
  return read_records(box->paths.log(), s);
}

}  // namespace

int box_log(Context& ctx, const Parsed& words) {
  session::BoxEntry box;
  auto found = read_box_log(ctx, words, &box);
  if (!found) return ctx.refuse(found.error());
  if (ctx.json) {
    Json records = json::Array{};
    for (Json& r : found->records) records.push(std::move(r));
    ctx.result(json::Object{{"schema", "h5i.box-log/1"}, {"box", box.name.str()}, {"log", found->log_id}, {"omitted", found->omitted}, {"records", records}});
    return 0;
  }
  if (found->omitted > 0) ctx.note(std::to_string(found->omitted) + " older records are not shown; --last N shows more");
  for (const Json& r : found->records) ctx.line(record_line(r));
  return 0;
}

}  // namespace h5i::cli
