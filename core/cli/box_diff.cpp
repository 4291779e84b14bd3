// box diff: what a box changed, as text that is what it looks like.
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/gate/deception.hpp"
#include "core/git/patch.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kMaxLine = 4096;  // of a line on the terminal

struct Shown {
  git::Change change;
  git::FilePatch patch;
  std::vector<gate::Deception> deceptions;
  std::vector<std::string> warnings;
};

bool wanted(const std::string& path, const std::vector<std::string>& only) {
  if (only.empty()) return true;
  for (std::string o : only) {
    while (!o.empty() && o.back() == '/') o.pop_back();
    if (path == o || (path.size() > o.size() && path.compare(0, o.size(), o) == 0 && path[o.size()] == '/')) return true;
  }
  return false;
}

Result<Shown> show(const IdleBox& box, const git::Change& c, bool full_binary) {
  Shown out;
  out.change = c;
  std::string before = H5I_TRY(content_before(box.repo, c)), after = H5I_TRY(content_after(box.work, c));
  out.patch = H5I_TRY(git::patch_of(c, before, after, full_binary));
  if (!out.patch.binary && c.new_mode != git::kGitlink) out.deceptions = gate::deceptions(after);
  if (c.path.substr(c.path.rfind('/') + 1) == ".gitmodules") out.warnings = gate::submodule_warnings(after);
  return out;
}

// Line by line through the sanitizer: a carriage return, an escape or a reordering character is spelled out.
std::string for_terminal(const std::string& patch) {
  std::string out;
  for (size_t i = 0; i < patch.size();) {
    size_t end = patch.find('\n', i);
    if (end == std::string::npos) end = patch.size();
    std::string_view line(patch.data() + i, end - i);
    // Tabs stay: they are in every Makefile. printable() spells them out only in one-line texts.
    std::string text;
    for (size_t k = 0;;) {
      size_t tab = line.find('\t', k);
      text += printable(line.substr(k, tab == std::string_view::npos ? tab : tab - k));
      if (tab == std::string_view::npos) break;
      text += '\t';
      k = tab + 1;
    }
    if (text.size() > kMaxLine) text = printable(text.substr(0, kMaxLine)) + "… (" + std::to_string(line.size()) + " bytes)";
    out += text + "\n";
    i = end + 1;
  }
  return out;
}

void print_stat(Context& ctx, const Shown& s) {
  std::string counts = s.patch.binary ? "binary" : "+" + std::to_string(s.patch.added) + " -" + std::to_string(s.patch.removed);
  ctx.line("  " + std::string(git::change_name(s.change.kind)) + "  " + counts + "  " + s.change.path);
}

void print_violations(Context& ctx, const std::vector<gate::Violation>& violations) {
  if (violations.empty()) return;
  ctx.line("the gate will refuse:");
  for (const gate::Violation& v : violations) ctx.line("  " + v.path + "  (" + std::string(errc_id(v.rule)) + ": " + v.detail + (v.rule == Errc::GATE_SYMLINK_OUT ? "; --keep-links keeps it as a link" : "") + ")");
}

// Where standard output is for programs.
void note_violations(Context& ctx, const IdleBox& box, const Review& review) {
  size_t n = review.scanned.violations.size();
  if (n) ctx.note("the gate will refuse " + std::to_string(n) + (n == 1 ? " path" : " paths") + " of this box; h5i box diff " + box.name() + " names " + (n == 1 ? "it" : "them"));
}

Result<void> write_raw(Context& ctx, const IdleBox& box, const Review& review, const std::vector<std::string>& only) {
  if (isatty(STDOUT_FILENO)) return make_error(Errc::USAGE, "--raw is not written to a terminal", "the patch may hold control sequences", "h5i box diff BOX --raw > FILE");
  for (const git::Change& c : review.changes) {
    if (!wanted(c.path, only) || withheld(review, c.path)) continue;
    ctx.raw(H5I_TRY(show(box, c, true)).patch.text);
  }
  note_violations(ctx, box, review);
  return {};
}

Result<void> diff(Context& ctx, const Parsed& p) {
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box diff"));
  std::vector<std::string> only(p.arguments.begin() + 1, p.arguments.end());
  Review review = H5I_TRY(review_box(box, false));  // as propose will, without --keep-links
  if (p.has("--raw") && !ctx.json) return write_raw(ctx, box, review, only);

  json::Array changes, handoffs, violations, deceptive;
  uint64_t added = 0, removed = 0, files = 0;
  std::vector<Shown> odd;
  bool names = p.has("--names"), stat = p.has("--stat");
  for (const git::Change& c : review.changes) {
    if (!wanted(c.path, only) || withheld(review, c.path)) continue;  // named among those that the gate will refuse
    files++;
    if (names && !ctx.json) {
      ctx.line(c.path);
      continue;
    }
    Shown s = H5I_TRY(show(box, c, false));
    added += s.patch.added;
    removed += s.patch.removed;
    if (ctx.json) {
      Json j = to_json(c);
      j["added"] = s.patch.added;
      j["removed"] = s.patch.removed;
      j["binary"] = s.patch.binary;
      changes.push_back(std::move(j));
    } else if (stat) {
      print_stat(ctx, s);
    } else {
      ctx.block(for_terminal(s.patch.text));
    }
    if (!s.deceptions.empty() || !s.warnings.empty()) {
      for (const gate::Deception& d : s.deceptions) deceptive.push_back(json::Object{{"path", c.path}, {"line", d.line}, {"what", d.what}});
      for (const std::string& w : s.warnings) deceptive.push_back(json::Object{{"path", c.path}, {"line", 0}, {"what", w}});
      s.patch.text.clear();
      odd.push_back(std::move(s));
    }
  }
  for (const gate::Handoff& h : review.handoffs) handoffs.push_back(to_json(h));
  for (const gate::Violation& v : review.scanned.violations) violations.push_back(to_json(v));
  json::Array hidden;
  for (const std::string& h : review.scanned.hidden) hidden.push_back(h);
  if (ctx.json) {
    ctx.result(json::Object{{"schema", "h5i.box-diff/1"}, {"box", box.name()}, {"base_commit", box.manifest.base_commit}, {"base_tree", box.manifest.base_tree}, {"files", files}, {"added", added},
                            {"removed", removed}, {"changes", std::move(changes)}, {"runs_on_your_side", std::move(handoffs)}, {"reads_differently", std::move(deceptive)},
                            {"violations", std::move(violations)}, {"ignored", review.scanned.ignored_count}, {"hidden", std::move(hidden)}});
    return {};
  }
  if (names) {
    note_violations(ctx, box, review);
    return {};
  }
  if (files == 0 && review.scanned.violations.empty()) ctx.line("box " + box.name() + " changed nothing");
  else ctx.line(std::to_string(files) + " files, +" + std::to_string(added) + " -" + std::to_string(removed));
  if (review.scanned.ignored_count) ctx.line(std::to_string(review.scanned.ignored_count) + " ignored paths stay in the box");
  print_handoffs(ctx, review.handoffs);
  if (!odd.empty()) ctx.line("reads differently than it is:");
  for (const Shown& s : odd) {
    for (const gate::Deception& d : s.deceptions) ctx.line("  " + s.change.path + ":" + std::to_string(d.line) + "  " + d.what);
    for (const std::string& w : s.warnings) ctx.line("  " + s.change.path + "  " + w);
  }
  print_violations(ctx, review.scanned.violations);
  return {};
}

}  // namespace

int box_diff(Context& ctx, const Parsed& p) {
  auto done = diff(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
