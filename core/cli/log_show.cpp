#include <algorithm>
#include <charconv>
#include <deque>

#include "core/base/text.hpp"
#include "core/cli/log_target.hpp"
#include "core/cli/record_line.hpp"
#include "core/cli/verbs.hpp"
#include "core/evidence/findings.hpp"
#include "core/evidence/lines.hpp"
#include "core/evidence/record.hpp"
#include "core/evidence/render.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kMost = 1000000;
constexpr size_t kDefaultJson = 10000;  // records of one JSON object
constexpr size_t kBeginning = 120;      // shown of a line that is no record

struct Selection {
  std::vector<std::string> kinds;
  std::string session;
  size_t last = 0;  // 0: all
  std::optional<uint64_t> raw;
};

// One line of the log: a record, or what is wrong with it.
struct Entry {
  uint64_t index = 0;
  Json record;
  std::string why;  // not empty: unreadable
  uint64_t bytes = 0;
  std::string beginning;
};

struct Shown {
  LogTarget target;
  std::string log_id;
  uint64_t omitted = 0, unreadable = 0;
  std::deque<Entry> entries;
  evidence::Findings findings;
};

Result<uint64_t> number(const Parsed& words, const char* option, uint64_t least) {
  std::string text = words.get(option);
  uint64_t n = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || n < least || n > kMost)
    return make_error(Errc::USAGE, std::string(option) + " " + text + " is not a number of records",
                      std::to_string(least) + " to " + std::to_string(kMost), "h5i log show --help");
  return n;
}

Result<Selection> selection(const Context& ctx, const Parsed& words) {
  Selection s;
  auto kinds = words.options.find("--kind");
  if (kinds != words.options.end()) s.kinds = kinds->second;
  s.session = words.get("--session");
  if (words.has("--last"))
    s.last = static_cast<size_t>(H5I_TRY(number(words, "--last", 1)));
  else if (ctx.json)
    s.last = kDefaultJson;
  if (words.has("--raw")) s.raw = H5I_TRY(number(words, "--raw", 0));
  return s;
}

Entry entry_of(const evidence::Line& line, uint64_t index) {
  Entry e{index, {}, {}, line.text.size(), {}};
  auto record = line.too_long    ? Result<Json>(make_error(Errc::CORRUPT, "", "longer than a record can be"))
                : !line.complete ? Result<Json>(make_error(Errc::CORRUPT, "", "cut in the middle"))
                                 : parse_json(line.text, "record", evidence::kMaxLine);
  if (record && evidence::record_link(*record)) {
    e.record = std::move(*record);
    return e;
  }
  e.why = record ? "not a record" : record.error().evidence;
  e.beginning = std::string(line.text.substr(0, kBeginning));
  return e;
}

bool wanted(const Selection& s, const Json& r) {
  if (!s.kinds.empty() && std::find(s.kinds.begin(), s.kinds.end(), r["kind"].string()) == s.kinds.end()) return false;
  return s.session.empty() || r["session"].string() == s.session;
}

// `each` sees every selected entry in order; unreadable lines are always selected, for they may be anything.
Result<Shown> read(const LogTarget& target, const Selection& s, const std::function<void(const Entry&)>& each) {
  Shown out;
  out.target = target;
  evidence::LineReader lines = H5I_TRY(evidence::LineReader::open(target.path));
  evidence::FindingsBuilder findings;
  evidence::Line line;
  for (uint64_t i = 0; H5I_TRY(lines.next(&line)); i++) {
    Entry e = entry_of(line, i);
    if (e.why.empty()) {
      if (out.log_id.empty()) out.log_id = e.record["log"].string();
      if (s.session.empty() || e.record["session"].string() == s.session) findings.add(e.record);
      if (!wanted(s, e.record)) continue;
    } else {
      out.unreadable++;
    }
    if (s.last == 0) {
      each(e);
      continue;
    }
    out.entries.push_back(std::move(e));
    if (out.entries.size() > s.last) {
      out.entries.pop_front();
      out.omitted++;
    }
  }
  out.findings = findings.take();
  return out;
}

void print(Context& ctx, const Entry& e) {
  if (!e.why.empty()) {
    ctx.line("line " + std::to_string(e.index) + " is not readable (" + e.why + "), " + std::to_string(e.bytes) +
             " bytes, begins: " + e.beginning);
    return;
  }
  ctx.line(record_line(e.record));
  if (!e.record["session"].string().empty()) ctx.line("    session " + e.record["session"].string());
  std::string body = e.record["kind"].string() == "receipt" ? evidence::receipt_text(e.record["body"])
                                                            : json::pretty(e.record["body"]) + "\n";
  std::string indented;
  for (size_t at = 0; at < body.size();) {
    size_t end = std::min(body.find('\n', at), body.size());
    indented += "    " + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  ctx.block(indented);
}

Json shown_json(const Shown& s) {
  Json records = json::Array{}, unreadable = json::Array{};
  for (const Entry& e : s.entries) {
    if (e.why.empty())
      records.push(e.record);
    else
      unreadable.push(
          json::Object{{"line", e.index}, {"why", e.why}, {"bytes", e.bytes}, {"begins", printable(e.beginning)}});
  }
  return json::Object{{"schema", "h5i.log-show/1"},
                      {"path", s.target.path},
                      {"log", s.log_id},
                      {"omitted", s.omitted},
                      {"records", records},
                      {"unreadable", unreadable},
                      {"findings", evidence::findings_json(s.findings)}};
}

int show_raw(Context& ctx, const LogTarget& target, uint64_t index) {
  auto lines = evidence::LineReader::open(target.path);
  if (!lines) return ctx.refuse(lines.error());
  evidence::Line line;
  uint64_t i = 0;
  for (auto more = lines->next(&line);; more = lines->next(&line), i++) {
    if (!more) return ctx.refuse(more.error());
    if (!*more)
      return ctx.refuse(make_error(Errc::NOT_FOUND, "no record " + std::to_string(index),
                                   "the log has " + std::to_string(i) + " lines"));
    if (i == index) break;
  }
  Entry e = entry_of(line, index);
  if (!ctx.json) {
    ctx.line(std::string(line.text));
    return 0;
  }
  Shown one;
  one.target = target;
  if (e.why.empty()) one.log_id = e.record["log"].string();
  one.entries.push_back(std::move(e));
  ctx.result(shown_json(one));
  return 0;
}

}  // namespace

int log_show(Context& ctx, const Parsed& words) {
  auto s = selection(ctx, words);
  if (!s) return ctx.refuse(s.error());
  auto target = log_target(words.arguments[0]);
  if (!target) return ctx.refuse(target.error());
  if (!target->session.empty()) s->session = target->session;
  if (s->raw) return show_raw(ctx, *target, *s->raw);
  auto shown = read(*target, *s, [&](const Entry& e) { print(ctx, e); });
  if (!shown) return ctx.refuse(shown.error());
  if (ctx.json) {
    ctx.result(shown_json(*shown));
  } else {
    if (shown->omitted > 0) ctx.note(std::to_string(shown->omitted) + " older records are not shown");
    for (const Entry& e : shown->entries) print(ctx, e);
    std::vector<std::string> findings = evidence::findings_lines(shown->findings);
    if (!findings.empty()) ctx.line("boundary pressure");
    for (const std::string& line : findings) ctx.line("  " + line);
  }
  if (shown->unreadable == 0) return 0;
  ctx.note(std::to_string(shown->unreadable) + " lines are not readable; h5i log verify names the first bad record");
  return 1;
}

}  // namespace h5i::cli
