#include "core/policy/resolve.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/os/beneath.hpp"
#include "core/policy/ceiling.hpp"
#include "core/policy/compare.hpp"
#include "core/policy/egress.hpp"
#include "core/policy/env_names.hpp"
#include "core/policy/model.hpp"
#include "core/policy/nearest.hpp"

namespace h5i::policy {
namespace {

constexpr const char* kYamlFile = ".h5i/env.yaml";
constexpr const char* kTomlFile = ".h5i/env.toml";

// A borrowed descriptor as UniqueFd for the calls that want one; never closed here.
Result<UniqueFd> duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return sys_error("duplicate the descriptor of the repository");
  return copy;
}

Result<std::optional<ConfigBytes>> read_one(const UniqueFd& root, const char* path, bool toml) {
  auto bytes = os::read_file_beneath(root, path, kMaxConfigBytes);
  if (bytes) return std::optional(ConfigBytes{path, std::move(*bytes), toml});
  if (bytes.error().sys_errno == ENOENT || bytes.error().sys_errno == ENOTDIR) return std::optional<ConfigBytes>();
  if (bytes.error().code == Errc::TOO_LARGE)
    return make_error(Errc::POLICY_LIMIT, std::string(path) + " is too large", "limit " + std::to_string(kMaxConfigBytes));
  return std::move(bytes).error();
}

Result<std::optional<ConfigBytes>> find_config(const ResolveInput& in) {
  if (in.config) return in.config;
  if (in.repo_root_fd < 0) return std::optional<ConfigBytes>();
  UniqueFd root = H5I_TRY(duplicate(in.repo_root_fd));
  auto yaml = H5I_TRY(read_one(root, kYamlFile, false));
  auto toml = H5I_TRY(read_one(root, kTomlFile, true));
  if (yaml && toml)
    return make_error(Errc::POLICY_TWO_FILES, "the repository has two policies", std::string(kYamlFile) + " and " + kTomlFile);
  return yaml ? std::move(yaml) : std::move(toml);
}

// Everything that one resolve works on.
class Resolver {
 public:
  Resolver(const ResolveInput& in, std::vector<Error>& errors) : in_(in), errors_(errors), roots_{in.home, in.repo, in.own_dirs} {}

  void load() {
    auto config = find_config(in_);
    if (!config) {
      errors_.push_back(std::move(config).error());
    } else if (*config) {
      model_ = read_config((*config)->bytes, (*config)->name, (*config)->toml, roots_, errors_);
      out_.notes = model_.notes;
    }
    builtins_ = builtin_profiles(roots_, runtime());
  }

  std::vector<ProfileName> names() const {
    std::map<std::string, ProfileName> all;
    for (const auto& [name, p] : builtins_) all[name] = {name, "built-in", p.summary};
    for (const auto& [name, p] : model_.profiles)
      all[name] = {name, place(p.file, p.at), p.extends ? "extends " + *p.extends : "extends default"};
    std::vector<ProfileName> list;
    for (auto& [name, p] : all) list.push_back(std::move(p));
    return list;
  }

  // Every profile of the file resolved on its own, so that `policy check` sees what only shows after merging.
  void check_all() {
    for (const auto& [name, p] : model_.profiles) {
      Settings merged;
      if (merge(name, merged)) check(merged);
    }
  }

  Resolved run() {
    choose();
    Settings settings;
    if (!errors_.empty() || !merge(out_.profile, settings)) return std::move(out_);
    command_line(settings);
    for (const Ceiling& c : in_.host.ceilings) apply_ceiling(c, settings, out_.notes, errors_);
    deny_credentials(settings);
    check(settings);
    check_isolation(settings);
    check_presence(settings);
    if (errors_.empty()) build(settings);
    return std::move(out_);
  }

 private:
  // "claude", "codex", or empty when it is not clear which agent is meant.
  std::string runtime() const {
    if (!in_.agent.empty()) {
      for (const char* known : {"claude", "codex"})
        if (in_.agent == known || in_.agent == std::string("agent-") + known) return known;
    }
    return in_.runtimes.size() == 1 ? in_.runtimes[0] : "";
  }
  Error ambiguous(const std::string& name) const {
    std::string found;
    for (const std::string& r : in_.runtimes) found += (found.empty() ? "" : ", ") + r;
    const std::string asked = in_.agent.empty() ? "" : "no agent is called " + in_.agent.substr(0, 100) + "; ";
    return make_error(Errc::POLICY_AGENT, "the profile `" + name + "` needs to know which agent is meant",
                      asked + (found.empty() ? "no agent runtime is installed for this user" : "installed: " + found),
                      "pass --profile agent-claude or --profile agent-codex, or set H5I_AGENT to claude or codex");
  }

  const Profile* find(const std::string& name, bool builtin_only = false) const {
    if (!builtin_only)
      if (auto it = model_.profiles.find(name); it != model_.profiles.end()) return &it->second;
    auto it = builtins_.find(name);
    return it == builtins_.end() ? nullptr : &it->second;
  }

  void choose() {
    if (in_.profile) {
      out_.profile = *in_.profile;
      out_.profile_from = "flag";
      return;
    }
    out_.profile = "default";
    out_.profile_from = "default";
    if (std::string r = runtime(); !r.empty()) {
      std::string name = find("agent") && !find("agent")->file.empty() ? "agent" : "agent-" + r;
      std::vector<std::string> claims = {"fs.read", "fs.write", "net.mode", "net.egress"};
      std::string tier = in_.isolation && *in_.isolation != "auto" ? *in_.isolation : "";
      if (in_.holds && in_.holds(tier, claims)) {
        out_.profile = name;
        out_.profile_from = "agent";
        out_.notes.push_back("profile " + name + ": the agent runtime in use here is " + r);
      } else {
        out_.notes.push_back("profile default: " + name + " needs egress rules, and " +
                             (tier.empty() ? "no tier here enforces them" : "tier " + tier + " does not enforce them"));
      }
    }
  }

  bool merge(const std::string& name, Settings& settings) {
    std::vector<const Profile*> chain;
    const Profile* p = find(name);
    if (!p) {
      if (name == "agent" || name == "browser") errors_.push_back(ambiguous(name));
      else errors_.push_back(no_profile(name, ""));
      return false;
    }
    std::string printed;
    while (p) {
      printed += (printed.empty() ? "" : " -> ") + p->name;
      if (std::find(chain.begin(), chain.end(), p) != chain.end()) {
        errors_.push_back(make_error(Errc::POLICY_CYCLE, place(p->file, p->extends_at) + ": the profile `" + p->name + "` extends itself", printed));
        return false;
      }
      chain.push_back(p);
      // A profile of the file without `extends` stands on `default`; one that has a built-in's name, on that built-in.
      if (!p->extends && p->file.empty()) break;
      std::string base = p->extends.value_or("default");
      const Profile* next = find(base, base == p->name && builtins_.count(base));
      if (!next) {
        if (base == "agent" || base == "browser") errors_.push_back(ambiguous(base));
        else errors_.push_back(no_profile(base, place(p->file, p->extends_at) + ": "));
        return false;
      }
      p = next;
    }
    for (auto it = chain.rbegin(); it != chain.rend(); ++it)
      for (const auto& [field, s] : (*it)->settings) settings[field] = s;
    return true;
  }

  Error no_profile(const std::string& name, const std::string& where) const {
    std::vector<ProfileName> all = names();
    std::vector<std::string_view> known;
    for (const ProfileName& n : all) known.push_back(n.name);
    std::string near = nearest(name, known);
    return make_error(Errc::POLICY_NO_PROFILE, where + "there is no profile `" + name.substr(0, 100) + "`",
                      "known: " + joined(known) + (near.empty() ? "" : "; nearest: " + near));
  }

  void command_line(Settings& settings) {
    if (in_.audit) {
      if (*in_.audit != "all" && *in_.audit != "signal" && *in_.audit != "none")
        errors_.push_back(make_error(Errc::POLICY_VALUE, "--audit does not know `" + in_.audit->substr(0, 60) + "`", "expected one of: all, signal, none"));
      else settings["audit.capture"] = Setting{*in_.audit, "", "--audit", {}, {}};
    }
    out_.image_from = "profile";
    if (in_.image) {
      if (!valid_image_name(*in_.image))
        errors_.push_back(make_error(Errc::POLICY_VALUE, "--image does not take `" + in_.image->substr(0, 100) + "`", kImageForm));
      settings["container.image"] = Setting{*in_.image, "", "--image", {}, {}};
      out_.image_from = "flag";
    } else if (!settings.count("container.image") && model_.image) {
      settings["container.image"] = *model_.image;
      out_.image_from = "repository";
    }
    auto it = settings.find("container.image");
    if (it != settings.end()) out_.image = it->second.value.string();
    else out_.image_from.clear();
  }

  void add(Errc code, const Setting& s, const std::string& item, const std::string& what, std::string evidence) {
    errors_.push_back(make_error(code, s.where_item(item) + ": " + what, std::move(evidence)));
  }

  // Rules between fields of one merged profile.
  void check(const Settings& settings) {
    auto get = [&](const char* name) -> const Setting* {
      auto it = settings.find(name);
      return it == settings.end() ? nullptr : &it->second;
    };
    check_paths(settings);
    check_environment(settings);
    const Setting *mode = get("net.mode"), *egress = get("net.egress");
    if (mode && egress && mode->value.string() == "host" && !egress->value.array().empty())
      add(Errc::POLICY_VALUE, *mode, "", "net.mode is host, so the egress rules of " + egress->where() + " would hold nothing",
          "leave net.mode at deny, or say egress: []");
    const Setting *secrets = get("secrets"), *command = get("command_extractors"), *deny = get("fs.deny");
    if (!secrets) return;
    for (const auto& [name, grant] : secrets->value.object()) {
      std::string source = grant["source"].string();
      if (source.substr(0, 8) == "command:") {
        if (!command || !command->value.boolean())
          add(Errc::POLICY_VALUE, *secrets, name, "the secret " + name + " has a command: source",
              "the profile says allow_command_extractors: true, or it has none");
        if (!in_.host.command_extractors && !in_.command_extractors)
          add(Errc::POLICY_CEILING, *secrets, name, "the secret " + name + " has a command: source, and this host did not agree to run any",
              "set secrets.command_extractors: true in host.yaml, or H5I_ALLOW_COMMAND_EXTRACTORS=1");
      }
      if (source.substr(0, 5) == "file:" && deny)
        for (const Json& d : deny->value.array())
          if (beneath(source.substr(5), d.string()))
            add(Errc::POLICY_PATH, *secrets, name, "the secret " + name + " lies in what fs.deny denies", d.string() + " of " + deny->where_item(d.string()));
    }
  }

  void check_paths(const Settings& settings) {
    auto deny = settings.find("fs.deny");
    for (const char* field : {"fs.read", "fs.write"}) {
      auto grant = settings.find(field);
      if (grant == settings.end()) continue;
      for (const Json& g : grant->second.value.array()) {
        if (deny != settings.end())
          for (const Json& d : deny->second.value.array())
            if (beneath(g.string(), d.string()))
              add(Errc::POLICY_PATH, grant->second, g.string(), std::string(field) + " grants `" + g.string() + "`, which is denied",
                  "fs.deny: " + d.string() + ", " + deny->second.where_item(d.string()));
        if (grant->second.builtin() || in_.host.credentials || in_.home.empty()) continue;
        for (std::string_view c : kCredentialPaths)
          if (beneath(g.string(), in_.home + "/" + std::string(c)))
            add(Errc::POLICY_PATH, grant->second, g.string(), std::string(field) + " grants `" + g.string() + "`, where credentials are kept",
                "the host's owner agrees by fs.credentials: true in host.yaml");
      }
    }
  }

  void check_environment(const Settings& settings) {
    auto agreed = [&](const std::string& name) {
      auto it = settings.find("env.dangerous");
      if (it == settings.end()) return false;
      const auto& list = it->second.value.array();
      return std::any_of(list.begin(), list.end(), [&](const Json& v) { return v.string() == name; });
    };
    auto egress = settings.find("net.egress");
    bool scoped = egress != settings.end() && !egress->second.value.array().empty();
    auto look = [&](const char* field, const Setting& s, const std::string& name) {
      std::string_view why = dangerous_env(name);
      if (scoped && is_proxy_variable(name)) why = "it sends connections elsewhere while egress is scoped";
      if (!why.empty() && !agreed(name))
        add(Errc::POLICY_ENV_DANGEROUS, s, name, std::string(field) + " names `" + name + "`", std::string(why) + "; env.dangerous must name it too");
    };
    if (auto it = settings.find("env.pass"); it != settings.end())
      for (const Json& v : it->second.value.array()) look("env.pass", it->second, v.string());
    if (auto it = settings.find("env.set"); it != settings.end())
      for (const auto& [name, value] : it->second.value.object()) look("env.set", it->second, name);
  }

  // A list that a repository's profile writes replaces the inherited one, also fs.deny. Where such a profile grants a
  // directory that lies above credentials, these stay denied.
  void deny_credentials(Settings& settings) {
    if (in_.home.empty() || in_.host.credentials) return;
    std::vector<std::string> extra;
    for (std::string_view c : kCredentialPaths) {
      std::string path = in_.home + "/" + std::string(c);
      for (const char* field : {"fs.read", "fs.write"}) {
        auto it = settings.find(field);
        if (it == settings.end() || it->second.builtin()) continue;
        for (const Json& g : it->second.value.array())
          if (g.string() != path && beneath(path, g.string())) extra.push_back(path);
      }
    }
    if (extra.empty()) return;
    auto it = settings.find("fs.deny");
    if (it == settings.end()) it = settings.emplace("fs.deny", Setting{json::Array(), "default", "", {}, {}}).first;
    std::vector<std::string> all;
    for (const Json& v : it->second.value.array()) all.push_back(v.string());
    std::string added;
    for (const std::string& e : extra) {
      bool covered = std::any_of(all.begin(), all.end(), [&](const std::string& d) { return beneath(e, d); });
      // A credential path of which the profile itself grants a part is refused by check_paths, not denied here.
      if (covered) continue;
      all.push_back(e);
      added += (added.empty() ? "" : ", ") + e;
    }
    if (added.empty()) return;
    std::sort(all.begin(), all.end());
    it->second.value = json::Array();
    for (const std::string& d : all) it->second.value.push(d);
    out_.notes.push_back("denied too, because the profile grants what lies above and credentials are kept there: " + added);
  }

  void check_isolation(const Settings& settings) {
    auto it = settings.find("isolation");
    if (it == settings.end()) return;
    out_.isolation = it->second.value.string();
    out_.isolation_at = it->second.where();
    if (in_.isolation && *in_.isolation != "auto" && *in_.isolation != out_.isolation)
      errors_.push_back(make_error(Errc::POLICY_ISOLATION, "the command line and the profile name different tiers",
                                   "--isolation " + *in_.isolation + "; " + out_.isolation_at + " says " + out_.isolation));
  }

  // A path that the file names must be there; one that only a built-in names is skipped with a note.
  void check_presence(const Settings& settings) {
    std::string skipped;
    for (const char* field : {"fs.read", "fs.write"}) {
      auto it = settings.find(field);
      if (it == settings.end()) continue;
      for (const Json& g : it->second.value.array()) {
        const std::string& path = g.string();
        if (path[0] == '$') continue;
        if (it->second.builtin()) optional_.push_back(path);
        if (!in_.exists || in_.exists(path)) continue;
        if (it->second.builtin()) skipped += (skipped.empty() ? "" : ", ") + path;
        else add(Errc::POLICY_PATH, it->second, path, std::string(field) + " grants `" + path + "`, which is not there", "make it, or leave it out");
      }
    }
    if (!skipped.empty()) out_.notes.push_back("skipped, not on this host: " + skipped);
    std::sort(optional_.begin(), optional_.end());
    optional_.erase(std::unique(optional_.begin(), optional_.end()), optional_.end());
  }

  void build(const Settings& settings) {
    const Profile* p = find(out_.profile);
    out_.defined_at = p->file.empty() ? "built-in" : place(p->file, p->at);
    Json profile = json::Object{{"name", out_.profile}};
    auto copy = [&](const char* from, Json& to, const char* key) {
      if (auto it = settings.find(from); it != settings.end()) to[key] = it->second.value;
    };
    auto always = [&](const char* from, Json& to, const char* key, Json fallback) {
      auto it = settings.find(from);
      to[key] = it == settings.end() ? std::move(fallback) : it->second.value;
    };
    copy("isolation", profile, "isolation");
    copy("tools", profile, "tools");

    Json fs = json::Object();
    always("fs.read", fs, "read", json::Array());
    always("fs.write", fs, "write", json::Array());
    always("fs.deny", fs, "deny", json::Array());
    always("fs.private", fs, "private", json::Object());
    fs["optional"] = json::Array();
    for (const std::string& o : optional_) fs["optional"].push(o);
    profile["fs"] = std::move(fs);

    Json net = json::Object();
    always("net.mode", net, "mode", "deny");
    copy("net.egress", net, "egress");
    always("net.unix", net, "unix", false);
    copy("net.loopback", net, "loopback");
    profile["net"] = std::move(net);

    Json resources = json::Object(), named = json::Array();
    std::vector<std::string> named_by_file;
    for (std::string_view name : kResources) {
      auto it = settings.find("resources." + std::string(name));
      if (it == settings.end()) continue;
      resources[name] = it->second.value;
      if (!it->second.builtin()) named_by_file.emplace_back(name);
    }
    std::sort(named_by_file.begin(), named_by_file.end());
    for (const std::string& n : named_by_file) named.push(n);
    resources["explicit"] = std::move(named);
    profile["resources"] = std::move(resources);

    Json env = json::Object();
    always("env.pass", env, "pass", json::Array());
    always("env.set", env, "set", json::Object());
    copy("env.dangerous", env, "dangerous");
    profile["env"] = std::move(env);

    copy("secrets", profile, "secrets");
    if (auto it = settings.find("command_extractors"); it != settings.end() && it->second.value.boolean())
      profile["command_extractors"] = true;
    copy("auth", profile, "auth");
    if (!out_.image.empty()) profile["container"] = json::Object{{"image", out_.image}};
    if (auto it = settings.find("browser.deny"); it != settings.end())
      profile["browser"] = json::Object{{"deny", it->second.value}};

    Json audit = json::Object();
    always("audit.capture", audit, "capture", "all");
    out_.document = json::Object{{"schema", "h5i.policy/1"}, {"profile", std::move(profile)}, {"audit", std::move(audit)}};
    for (std::string_view field : kFields)
      if (auto it = settings.find(std::string(field)); it != settings.end())
        out_.origins.emplace_back(std::string(field), it->second.where());
    out_.host = in_.host;
  }

  const ResolveInput& in_;
  std::vector<Error>& errors_;
  PathRoots roots_;
  FileModel model_;
  std::map<std::string, Profile> builtins_;
  Resolved out_;
  std::vector<std::string> optional_;
};

// A repository may give a built-in's name another meaning. Taken without being named, it must not be wider, nor choose a
// tier (of which one confines nothing), an image or a credential.
Result<void> check_redefinition(const ResolveInput& in, const Resolved& chosen) {
  if (chosen.profile_from == "flag" || chosen.defined_at == "built-in") return {};
  ResolveInput plain = in;
  plain.repo_root_fd = -1;
  plain.config.reset();
  plain.profile = chosen.profile;
  plain.exists = nullptr;
  plain.host = {};
  auto builtin = resolve(plain);
  if (!builtin) return {};
  for (const Change& c : compare(builtin->document, chosen.document))
    if (c.direction == Direction::WIDENED || c.field == "isolation" || c.field == "container.image" || c.field == "secrets" || c.field == "auth")
      return make_error(Errc::POLICY_VALUE, chosen.defined_at + ": the repository redefines the profile `" + chosen.profile + "` wider than the built-in",
                        c.field + ": " + c.detail, "look at h5i policy show " + chosen.profile + ", then accept it by naming it: --profile " + chosen.profile);
  return {};
}

}  // namespace

Result<Resolved> resolve(const ResolveInput& input, Problems* all) {
  std::vector<Error> errors;
  Resolver resolver(input, errors);
  resolver.load();
  if (all && errors.empty()) resolver.check_all();
  Resolved out;
  if (errors.empty()) out = resolver.run();
  if (errors.empty())
    if (auto ok = check_redefinition(input, out); !ok) errors.push_back(std::move(ok).error());
  if (all) all->errors = errors;
  if (!errors.empty()) return errors.front();
  return out;
}

Result<std::vector<ProfileName>> list_profiles(const ResolveInput& input) {
  std::vector<Error> errors;
  Resolver resolver(input, errors);
  resolver.load();
  if (!errors.empty()) return errors.front();
  return resolver.names();
}

std::vector<std::string> installed_runtimes(const std::string& home, const std::string& path_variable) {
  std::vector<std::string> found;
  for (const char* name : {"claude", "codex"}) {
    bool here = !home.empty() && ::access((home + "/." + name).c_str(), F_OK) == 0;
    for (size_t i = 0; !here && i < path_variable.size();) {
      size_t end = std::min(path_variable.find(':', i), path_variable.size());
      std::string file = path_variable.substr(i, end - i) + "/" + name;
      struct stat st{};
      here = file[0] == '/' && ::stat(file.c_str(), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
      i = end + 1;
    }
    if (here) found.emplace_back(name);
  }
  return found;
}

}  // namespace h5i::policy
