// manifest.json and policy.resolved.json: read strictly, written atomically.
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"
#include "core/session/box.hpp"

namespace h5i::session {
namespace {

constexpr std::string_view kSchema = "h5i.box/1";
constexpr uint64_t kManifestLimit = 1u << 20;
constexpr uint64_t kPolicyLimit = 4u << 20;

struct StateName {
  BoxState state;
  std::string_view name;
};
constexpr StateName kStates[] = {{BoxState::CREATED, "created"},   {BoxState::RUNNING, "running"}, {BoxState::IDLE, "idle"},
                                 {BoxState::PROPOSED, "proposed"}, {BoxState::APPLIED, "applied"}, {BoxState::ABORTED, "aborted"}};

Json list_of(const std::vector<std::string>& items) {
  Json out = json::Array{};
  for (const std::string& s : items) out.push(s);
  return out;
}

// Reads members of one object, each at most once, and reports the first that is missing, mistyped or unknown.
class Reader {
 public:
  explicit Reader(const json::Object& o) : o_(o) {}

  std::string text(std::string_view key) {
    const Json* v = take(key);
    if (v && !v->is_string()) fail(key, "is not text");
    return v ? v->string() : std::string();
  }
  uint32_t number(std::string_view key) {
    const Json* v = take(key);
    if (v && (!v->is_int() || v->integer() < 0 || v->integer() > 0xFFFFFFFFll)) fail(key, "is not an id");
    return v ? static_cast<uint32_t>(v->integer()) : 0;
  }
  std::vector<std::string> list(std::string_view key) {
    std::vector<std::string> out;
    const Json* v = take(key);
    if (v && !v->is_array()) fail(key, "is not a list");
    if (v)
      for (const Json& item : v->array()) {
        if (!item.is_string()) fail(key, "holds something that is not text");
        out.push_back(item.string());
      }
    return out;
  }
  Json any(std::string_view key) {
    const Json* v = take(key);
    return v ? *v : Json();
  }
  void fail(std::string_view key, std::string_view why) {
    if (why_.empty()) why_ = std::string(key) + " " + std::string(why);
  }
  std::string finish() {
    for (const auto& [key, value] : o_)
      if (!seen_.count(key)) fail(printable(key), "is not known to this version");
    return why_;
  }

 private:
  const Json* take(std::string_view key) {
    seen_.insert(std::string(key));
    const Json* v = o_.find(key);
    if (!v) fail(key, "is missing");
    return v;
  }
  const json::Object& o_;
  std::set<std::string> seen_;
  std::string why_;
};

Error manifest_error(std::string why) {
  return make_error(Errc::BOX_MANIFEST, "the box's manifest cannot be used", std::move(why));
}

bool hex_of(const std::string& s, size_t shortest, size_t longest) {
  if (s.size() < shortest || s.size() > longest) return false;
  return s.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool oid_or_empty(const std::string& s) { return s.empty() || hex_of(s, 40, 64); }
bool absolute_or_empty(const std::string& s) { return s.empty() || (s[0] == '/' && s.find('\0') == std::string::npos); }

Result<UniqueFd> open_own_folder(const std::string& dir) {
  UniqueFd fd = H5I_TRY(os::open_directory(dir));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + printable(dir));
  // Its contents say which processes to end and what policy holds: they must be ours.
  if (st.st_uid != ::geteuid() || (st.st_mode & 022) != 0)
    return make_error(Errc::DENIED, "the box's folder is not this user's alone: " + printable(dir),
                      "owner " + std::to_string(st.st_uid) + ", you are " + std::to_string(::geteuid()));
  return fd;
}

}  // namespace

std::string_view state_name(BoxState s) {
  for (const StateName& row : kStates)
    if (row.state == s) return row.name;
  return "created";
}

std::optional<BoxState> state_from(std::string_view name) {
  for (const StateName& row : kStates)
    if (row.name == name) return row.state;
  return std::nullopt;
}

Json Manifest::to_json() const {
  return json::Object{{"schema", kSchema},
                      {"agent", name.agent},
                      {"slug", name.slug},
                      {"state", state_name(state)},
                      {"created", created},
                      {"repo_git_dir", repo_git_dir},
                      {"repo_work_dir", repo_work_dir},
                      {"parent_branch", parent_branch},
                      {"branch", branch},
                      {"base_ref", base_ref},
                      {"base_commit", base_commit},
                      {"base_tree", base_tree},
                      {"proposed_commit", proposed_commit},
                      {"applied_commit", applied_commit},
                      {"source", source},
                      {"profile", profile},
                      {"tier", tier},
                      {"tier_from", tier_from},
                      {"policy_digest", policy_digest.value},
                      {"object_dirs", list_of(object_dirs)},
                      {"placeholders", list_of(placeholders)},
                      {"host_uid", host_uid},
                      {"host_gid", host_gid},
                      {"last_session", last_session}};
}

Result<Manifest> Manifest::from_json(const Json& v) {
  if (!v.is_object()) return manifest_error("it is not an object");
  if (v["schema"].string() != kSchema)
    return manifest_error("schema is " + printable(v["schema"].string(), {.limit = 80}) + ", this version reads " +
                          std::string(kSchema));
  Manifest m;
  Reader r(v.object());
  r.text("schema");
  m.name.agent = r.text("agent");
  m.name.slug = r.text("slug");
  auto state = state_from(r.text("state"));
  if (!state) r.fail("state", "is not a state of a box");
  m.state = state.value_or(BoxState::CREATED);
  m.created = r.text("created");
  m.repo_git_dir = r.text("repo_git_dir");
  m.repo_work_dir = r.text("repo_work_dir");
  m.parent_branch = r.text("parent_branch");
  m.branch = r.text("branch");
  m.base_ref = r.text("base_ref");
  m.base_commit = r.text("base_commit");
  m.base_tree = r.text("base_tree");
  m.proposed_commit = r.text("proposed_commit");
  m.applied_commit = r.text("applied_commit");
  m.source = r.any("source");
  m.profile = r.text("profile");
  m.tier = r.text("tier");
  m.tier_from = r.text("tier_from");
  m.policy_digest = PolicyDigest(r.text("policy_digest"));
  m.object_dirs = r.list("object_dirs");
  m.placeholders = r.list("placeholders");
  m.host_uid = r.number("host_uid");
  m.host_gid = r.number("host_gid");
  m.last_session = r.text("last_session");
  if (!valid_slug(m.name.agent, true) || !valid_slug(m.name.slug, false)) r.fail("agent, slug", "are not a box's name");
  for (const std::string* oid : {&m.base_commit, &m.base_tree, &m.proposed_commit, &m.applied_commit})
    if (!oid_or_empty(*oid)) r.fail("an object id", "is not hexadecimal");
  for (const std::string* path : {&m.repo_git_dir, &m.repo_work_dir})
    if (!absolute_or_empty(*path)) r.fail("a path", "is not absolute");
  for (const std::string& path : m.object_dirs)
    if (path.empty() || !absolute_or_empty(path)) r.fail("object_dirs", "holds a path that is not absolute");
  for (const std::string& path : m.placeholders)
    if (path.empty() || path[0] == '/' || ("/" + path + "/").find("/../") != std::string::npos)
      r.fail("placeholders", "holds a path that leaves the work tree");
  if (!hex_of(m.policy_digest.value, 64, 64)) r.fail("policy_digest", "is not a digest");
  std::string why = r.finish();
  if (!why.empty()) return manifest_error(why);
  return m;
}

Result<Manifest> load_manifest(const BoxPaths& paths) {
  UniqueFd dir = H5I_TRY(open_own_folder(paths.dir));
  std::string text = H5I_TRY(os::read_file_beneath(dir, "manifest.json", kManifestLimit));
  auto parsed = parse_json(text, "manifest.json", kManifestLimit);
  if (!parsed) return manifest_error(parsed.error().what + ": " + parsed.error().evidence);
  return Manifest::from_json(*parsed);
}

Result<void> save_manifest(const BoxPaths& paths, const Manifest& m) {
  UniqueFd dir = H5I_TRY(open_own_folder(paths.dir));
  return os::replace_file(dir, "manifest.json", json::pretty(m.to_json()) + "\n", 0600);
}

Result<Json> load_policy(const BoxPaths& paths, const Manifest& m) {
  UniqueFd dir = H5I_TRY(open_own_folder(paths.dir));
  std::string text = H5I_TRY(os::read_file_beneath(dir, "policy.resolved.json", kPolicyLimit));
  Json policy = H5I_TRY(parse_json(text, "policy.resolved.json", kPolicyLimit));
  std::string digest = canonical_digest(policy);
  if (digest != m.policy_digest.value)
    return make_error(Errc::POLICY_DIGEST, "the policy of " + m.name.str() + " is not the one that was resolved at create",
                      "manifest says " + m.policy_digest.value + ", the file has " + digest);
  return policy;
}

}  // namespace h5i::session
