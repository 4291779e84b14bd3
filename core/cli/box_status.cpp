#include "core/cli/columns.hpp"
#include "core/cli/open_box.hpp"
#include "core/cli/run_summary.hpp"
#include "core/cli/verbs.hpp"
#include "core/evidence/seal.hpp"

namespace h5i::cli {
namespace {

struct Status {
  session::BoxEntry box;
  session::Manifest manifest;
  std::optional<session::LastRun> run;
  std::optional<session::Live> live;
  evidence::SealState seal;
  std::optional<Error> policy_error;

  std::string_view state() const { return session::state_name(live ? session::BoxState::RUNNING : manifest.state); }
};

Result<Status> read_status(Context& ctx, const std::string& name) {
  session::BoxEntry box = H5I_TRY(open_box(ctx, name));
  session::Manifest manifest = H5I_TRY(session::load_manifest(box.paths));
  Status s{box, std::move(manifest), {}, {}, {}, {}};
  s.run = H5I_TRY(session::last_run(box.paths));
  s.live = H5I_TRY(session::read_live(box.paths));
  auto seal = evidence::seal_state(box.paths.log());
  if (seal) s.seal = *seal;
  auto policy = session::load_policy(box.paths, s.manifest);
  if (!policy) s.policy_error = policy.error();
  return s;
}

Json text_or_null(const std::string& s) { return s.empty() ? Json() : Json(s); }

Json status_json(const Status& s) {
  const session::Manifest& m = s.manifest;
  Json running;
  if (s.live) {
    int64_t core = 0;
    for (const auto& p : s.live->processes)
      if (p.role == "core") core = p.pid;
    running = json::Object{{"session", s.live->session.value}, {"verb", s.live->verb}, {"started", s.live->started}, {"pid", core}};
  }
  return json::Object{
      {"schema", "h5i.box-status/1"},
      {"name", m.name.str()},
      {"state", s.state()},
      {"tier", m.tier},
      {"tier_from", m.tier_from},
      {"profile", m.profile},
      {"created", m.created},
      {"directory", s.box.paths.dir},
      {"work", s.box.paths.work()},
      {"repository", text_or_null(m.repo_git_dir)},
      {"parent_branch", text_or_null(m.parent_branch)},
      {"branch", text_or_null(m.branch)},
      {"base_commit", text_or_null(m.base_commit)},
      {"proposed_commit", text_or_null(m.proposed_commit)},
      {"applied_commit", text_or_null(m.applied_commit)},
      {"policy_digest", m.policy_digest.value},
      {"policy_intact", !s.policy_error},
      {"effective_digest", s.run && s.run->kind == "receipt" ? text_or_null(s.run->body["effective_digest"].string()) : Json()},
      {"running", running},
      {"last_run", run_summary(s.run)},
      {"log", json::Object{{"records", s.seal.records}, {"sealed", s.seal.sealed}, {"whole", s.seal.whole()}}},
      {"changes", "not looked at"}};
}

std::string short_id(const std::string& id) { return id.empty() ? "-" : id.substr(0, 12); }

void print(Context& ctx, const Status& s) {
  const session::Manifest& m = s.manifest;
  std::string sealed = s.seal.whole() ? "sealed" : s.seal.sealed > 0 ? "unsealed since record " + std::to_string(s.seal.sealed) : "unsealed";
  std::vector<std::pair<std::string, std::string>> rows{
      {"box", m.name.str()},
      {"state", std::string(s.state())},
      {"tier", m.tier + " (from " + m.tier_from + ")"},
      {"profile", m.profile},
      {"policy digest", m.policy_digest.value},
  };
  if (s.run && s.run->kind == "receipt") rows.emplace_back("effective digest", s.run->body["effective_digest"].string());
  if (!m.branch.empty()) rows.emplace_back("branch", m.branch);
  if (!m.parent_branch.empty()) rows.emplace_back("parent", m.parent_branch + " at " + short_id(m.base_commit));
  if (!m.proposed_commit.empty()) rows.emplace_back("proposed", short_id(m.proposed_commit));
  if (!m.applied_commit.empty()) rows.emplace_back("applied", short_id(m.applied_commit));
  rows.emplace_back("work tree", s.box.paths.work());
  if (s.live) rows.emplace_back("running", s.live->verb + ", session " + s.live->session.value + ", since " + s.live->started);
  rows.emplace_back("last run", run_words(s.run));
  rows.emplace_back("log", std::to_string(s.seal.records) + " records, " + sealed);
  rows.emplace_back("changes", "not looked at; h5i box diff " + m.name.str());
  for (const std::string& line : fields(rows)) ctx.line(line);
}

}  // namespace

int box_status(Context& ctx, const Parsed& words) {
  auto status = read_status(ctx, words.arguments[0]);
  if (!status) return ctx.refuse(status.error());
  if (ctx.json)
    ctx.result(status_json(*status));
  else
    print(ctx, *status);
  // The state is shown either way; a policy that was changed is what a person must not overlook.
  if (status->policy_error && !ctx.json) ctx.refuse(*status->policy_error);
  return status->policy_error ? 1 : 0;
}

}  // namespace h5i::cli
