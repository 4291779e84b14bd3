// box export: patch, report, receipt and evidence in one folder, made aside and moved into place.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "core/cli/repo_box.hpp"
#include "core/cli/repo_verbs.hpp"
#include "core/evidence/redact.hpp"
#include "core/gate/deception.hpp"
#include "core/evidence/seal.hpp"
#include "core/git/patch.hpp"
#include "core/os/beneath.hpp"

namespace h5i::cli {
namespace {

constexpr uint64_t kMaxCopied = 4ull << 30;

struct Target {
  UniqueFd parent;
  std::string name, path;
  bool exists = false;
};

Result<Target> target_of(const std::string& given, bool force) {
  std::string path = given.empty() || given[0] == '/' ? given : directory_or_root() + "/" + given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") return make_error(Errc::USAGE, "the output is not a name of its own: " + printable(given), "", "h5i box export BOX --output DIR");
  char real[PATH_MAX];
  std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  if (!realpath(parent.c_str(), real)) return sys_error("find " + printable(parent));
  Target t;
  t.parent = H5I_TRY(os::open_directory(real));
  t.name = name;
  t.path = std::string(real) + "/" + name;
  struct stat st{};
  if (fstatat(t.parent.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) return sys_error("stat " + printable(t.path));
    return t;
  }
  if (!S_ISDIR(st.st_mode)) return make_error(Errc::EXISTS, "the output is there and no directory", printable(t.path));
  t.exists = true;
  UniqueFd dir = H5I_TRY(os::open_directory_beneath(t.parent, name));
  std::vector<os::DirectoryEntry> entries = H5I_TRY(os::list_directory(dir));
  if (!entries.empty() && !force) return make_error(Errc::EXISTS, "the output directory is not empty", printable(t.path), "choose another, or --force replaces it");
  return t;
}

Result<void> write_file(const UniqueFd& dir, const std::string& name, std::string_view bytes) {
  UniqueFd fd = H5I_TRY(os::open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644));
  H5I_TRY(os::write_all(fd, bytes));
  if (fsync(fd.get()) != 0) return sys_error("flush " + printable(name));
  return {};
}

// A file of the box's folder, when there is one.
Result<bool> copy_file(const UniqueFd& from, const std::string& name, const UniqueFd& to, const std::string& as) {
  auto bytes = os::read_file_beneath(from, name, kMaxCopied);
  if (!bytes) return bytes.error().sys_errno == ENOENT ? Result<bool>(false) : Result<bool>(std::move(bytes).error());
  H5I_TRY(write_file(to, as, *bytes));
  return true;
}

Result<uint64_t> copy_blobs(const UniqueFd& box, const UniqueFd& to) {
  auto blobs = os::open_directory_beneath(box, "blobs");
  if (!blobs) return uint64_t{0};
  uint64_t n = 0;
  for (const os::DirectoryEntry& two : H5I_TRY(os::list_directory(*blobs))) {
    auto folder = os::open_directory_beneath(*blobs, two.name);
    if (!folder) continue;
    UniqueFd target = H5I_TRY(os::make_directories_beneath(to, "blobs/" + two.name, 0755));
    for (const os::DirectoryEntry& e : H5I_TRY(os::list_directory(*folder)))
      if (H5I_TRY(copy_file(*folder, e.name, target, e.name))) n++;
  }
  return n;
}

struct Told {
  Json newest_receipt;
  uint64_t runs = 0, denials = 0, violations = 0, claims = 0;
  json::Array rows;                     // of runs
  std::vector<std::string> unfinished;  // sessions that began, and whose receipt was never written
};

Result<Told> read_log(const IdleBox& box) {
  Told t;
  H5I_TRY(evidence::read_log(box.entry.paths.log(), [&](uint64_t, const Json& r) {
    const std::string& kind = r["kind"].string();
    if (r["lane"].string() == "box-claimed") t.claims++;
    const std::string& session = r["session"].string();
    bool ours = r["observer"].string() == "core";
    if (kind == "attested" && ours) t.unfinished.push_back(session);
    if ((kind == "receipt" || kind == "run-refused") && ours) std::erase(t.unfinished, session);
    if (kind == "receipt" && ours) {
      t.runs++;
      t.newest_receipt = r["body"];
      t.rows.push_back(r["body"]);
    }
    if (kind == "denial") t.denials++;
    if (kind == "violation") t.violations++;
    return true;
  }));
  return t;
}

std::string command_of(const Json& receipt) {
  std::string out;
  for (const Json& a : receipt["command"].array()) out += (out.empty() ? "" : " ") + a.string();
  if (out.empty())
    for (const Json& a : receipt["command"]["argv"].array()) out += (out.empty() ? "" : " ") + a.string();
  return out;
}

// Everything from the box passes markdown_escape(): a file name or a command makes no table, link or HTML.
std::string report_of(const IdleBox& box, const Review& review, const Told& told, uint64_t added, uint64_t removed, const std::vector<std::string>& odd,
                      const std::vector<std::string>& secrets) {
  const session::Manifest& m = box.manifest;
  auto md = [](const std::string& s) { return markdown_escape(s); };
  std::string out = "# Box " + md(box.name()) + "\n\n";
  out += "| | |\n|---|---|\n";
  out += "| base | " + m.base_commit + " |\n| base tree | " + m.base_tree + " |\n| tier | " + md(m.tier) + " |\n| profile | " + md(m.profile) + " |\n| policy digest | " + m.policy_digest.value + " |\n";
  out += "| state | " + std::string(session::state_name(m.state)) + " |\n| changes | " + std::to_string(review.changes.size()) + " files, +" + std::to_string(added) + " -" + std::to_string(removed) + " |\n\n";
  out += "## What ran (observed by the host)\n\n";
  if (told.rows.empty() && told.unfinished.empty()) out += "Nothing ran in this box.\n";
  for (const std::string& session : told.unfinished) out += "- `" + md(session) + "` began, and has no receipt: h5i ended before it. What it did is not recorded.\n";
  for (const Json& r : told.rows) {
    out += "- `" + r["session"].string() + "` " + md(command_of(r)) + ": " + md(r["outcome"]["status"].string());
    if (r["exit_status"].is_int()) out += ", exit status " + std::to_string(r["exit_status"].integer());
    out += "\n";
    for (const Json& n : r["not_enforced"].array()) out += "  - not enforced: " + md(n["field"].string()) + ", " + md(n["reason"].string()) + "\n";
  }
  out += "\nDenial records: " + std::to_string(told.denials) + ". Gate violations recorded: " + std::to_string(told.violations) + ".\n";
  out += "\n## What the box says of itself\n\n" + std::to_string(told.claims) + " records in the lane `box-claimed`; see log.jsonl. Nobody outside the box observed them.\n";
  out += "\n## Will run on your side\n\n";
  if (review.handoffs.empty()) out += "No changed file is known to make another tool run code.\n";
  for (const gate::Handoff& h : review.handoffs) out += "- " + md(h.path) + " (" + h.kind + ": " + h.why + ")\n";
  if (!odd.empty()) {
    out += "\n## Reads differently than it is\n\n";
    for (const std::string& o : odd) out += "- " + md(o) + "\n";
  }
  if (!secrets.empty()) {
    out += "\n## Looks like a credential\n\n";
    for (const std::string& o : secrets) out += "- " + md(o) + "\n";
  }
  out += "\n## Changes\n\n";
  for (const git::Change& c : review.changes) out += "- " + std::string(git::change_name(c.kind)) + " " + md(c.path) + "\n";
  if (review.scanned.ignored_count) out += "\n" + std::to_string(review.scanned.ignored_count) + " ignored paths stayed in the box.\n";
  out += "\nTake the patch with `git apply --index patch.diff`; check the evidence with `h5i log verify log.jsonl`.\n";
  return out;
}

// The folder that becomes the output, locked while it is made: one that is not locked was left by a death.
struct Aside {
  UniqueFd dir;
  std::string name;
};
Result<Aside> make_aside(const Target& target) {
  const std::string prefix = "." + target.name + ".h5i-export.";
  for (const os::DirectoryEntry& e : H5I_TRY(os::list_directory(target.parent))) {
    if (!e.name.starts_with(prefix)) continue;
    auto dead = os::open_directory_beneath(target.parent, e.name);
    if (dead && flock(dead->get(), LOCK_EX | LOCK_NB) == 0) (void)os::remove_tree(target.parent, e.name).ok();
  }
  Aside out;
  out.name = prefix + H5I_TRY(new_session_id()).value;
  if (mkdirat(target.parent.get(), out.name.c_str(), 0755) != 0) return sys_error("make the output directory");
  out.dir = H5I_TRY(os::open_directory_beneath(target.parent, out.name));
  if (flock(out.dir.get(), LOCK_EX | LOCK_NB) != 0) return sys_error("lock the output directory");
  return out;
}

Result<void> export_box(Context& ctx, const Parsed& p) {
  if (p.get("--output").empty()) return make_error(Errc::USAGE, "no output directory was named", "--output DIR is missing", "h5i box export BOX --output DIR");
  IdleBox box = H5I_TRY(open_idle_box(p.arguments[0], "box export"));
  bool force = p.has("--force");
  Target target = H5I_TRY(target_of(p.get("--output"), force));
  if (target.path == box.entry.paths.dir || target.path.rfind(box.entry.paths.dir + "/", 0) == 0 || box.entry.paths.dir.rfind(target.path + "/", 0) == 0)
    return make_error(Errc::USAGE, "the output lies in the box, or the box in it", printable(target.path), "h5i box export BOX --output DIR");
  Review review = H5I_TRY(review_box(box, p.has("--keep-links")));
  H5I_TRY(refuse_violations(box, review));

  Aside aside = H5I_TRY(make_aside(target));
  const std::string& temporary = aside.name;
  const UniqueFd& out = aside.dir;
  struct Undo {
    const UniqueFd& parent;
    std::string name;
    ~Undo() {
      if (!name.empty()) (void)os::remove_tree(parent, name).ok();
    }
  } undo{target.parent, temporary};
  uint64_t added = 0, removed = 0;
  std::vector<std::string> odd, secrets;
  {
    UniqueFd patch = H5I_TRY(os::open_beneath(out, "patch.diff", O_WRONLY | O_CREAT | O_EXCL, 0644));
    for (const git::Change& c : review.changes) {
      std::string before = H5I_TRY(content_before(box.repo, c)), after = H5I_TRY(content_after(box.work, c));
      git::FilePatch f = H5I_TRY(git::patch_of(c, before, after, true));
      H5I_TRY(os::write_all(patch, f.text));
      added += f.added;
      removed += f.removed;
      if (!f.binary)
        for (const gate::Deception& d : gate::deceptions(after)) odd.push_back(c.path + ":" + std::to_string(d.line) + " " + d.what);
      for (const evidence::SecretFound& found : evidence::secrets_in(after))
        if (secrets.size() < evidence::kMostSecrets) secrets.push_back(c.path + ":" + std::to_string(found.line) + " " + found.rule);
      if (c.path.substr(c.path.rfind('/') + 1) == ".gitmodules")
        for (const std::string& w : gate::submodule_warnings(after)) odd.push_back(c.path + " " + w);
    }
    if (fsync(patch.get()) != 0) return sys_error("flush patch.diff");
  }
  H5I_TRY(record(box, "exported", json::Object{{"changes", review.changes.size()}, {"base_tree", box.manifest.base_tree}}));
  Told told = H5I_TRY(read_log(box));
  H5I_TRY(write_file(out, "report.md", report_of(box, review, told, added, removed, odd, secrets)));
  if (!told.newest_receipt.is_null()) H5I_TRY(write_file(out, "receipt.json", json::pretty(told.newest_receipt) + "\n"));
  H5I_TRY(write_file(out, "policy.resolved.json", json::canonical(box.policy)));
  bool sealed = H5I_TRY(seal_and_publish(box));
  H5I_TRY(copy_file(box.dir, "log.jsonl", out, "log.jsonl"));
  H5I_TRY(copy_file(box.dir, "log.jsonl.seal", out, "log.jsonl.seal"));
  if (auto keys = os::open_directory(box.dirs.state + "/keys")) H5I_TRY(copy_file(*keys, "host.pub", out, "host.pub"));
  uint64_t blobs = H5I_TRY(copy_blobs(box.dir, out));
  if (syncfs(out.get()) != 0) return sys_error("flush the export");

  if (target.exists) {
    // What was there stays until the new one is whole.
    if (renameat2(target.parent.get(), temporary.c_str(), target.parent.get(), target.name.c_str(), RENAME_EXCHANGE) != 0) return sys_error("put the export in place");
  } else {
    if (renameat2(target.parent.get(), temporary.c_str(), target.parent.get(), target.name.c_str(), RENAME_NOREPLACE) != 0) return sys_error("put the export in place");
    undo.name.clear();
  }
  json::Array handoffs;
  for (const gate::Handoff& h : review.handoffs) handoffs.push_back(to_json(h));
  ctx.result(json::Object{{"schema", "h5i.box-export/1"}, {"box", box.name()}, {"output", target.path}, {"changes", review.changes.size()}, {"added", added}, {"removed", removed}, {"runs", told.runs}, {"blobs", blobs}, {"sealed", sealed},
                          {"receipt", !told.newest_receipt.is_null()}, {"runs_on_your_side", std::move(handoffs)}});
  if (ctx.json) return {};
  ctx.line("box " + box.name() + " exported to " + target.path + ": " + std::to_string(review.changes.size()) + " files, +" + std::to_string(added) + " -" + std::to_string(removed) + ", " +
           std::to_string(told.runs) + " runs" + (told.unfinished.empty() ? "" : ", " + std::to_string(told.unfinished.size()) + " more without a receipt") + (sealed ? ", sealed" : ", not sealed"));
  print_handoffs(ctx, review.handoffs);
  return {};
}

}  // namespace

int box_export(Context& ctx, const Parsed& p) {
  auto done = export_box(ctx, p);
  return done ? 0 : ctx.refuse(done.error());
}

}  // namespace h5i::cli
