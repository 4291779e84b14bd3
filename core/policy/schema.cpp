// From a file's tree to the model: types, names, values. Every fault is one error with its place.
#include <algorithm>
#include <functional>
#include <set>

#include "core/base/text.hpp"
#include "core/policy/adapters.hpp"
#include "core/policy/egress.hpp"
#include "core/policy/env_names.hpp"
#include "core/policy/model.hpp"
#include "core/policy/nearest.hpp"
#include "core/policy/quantity.hpp"

namespace h5i::policy {
namespace {

constexpr size_t kMaxItems = 4096;      // members of one list or map
constexpr size_t kMaxEnvValue = 32768;  // below MAX_ARG_STRLEN with room for the rest
constexpr size_t kMaxImage = 512;
constexpr size_t kMaxWord = 255;
constexpr double kMaxCpus = 4096;

using Words = std::vector<std::string_view>;

const Words kTop = {"profiles", "container"};
const Words kProfile = {"extends", "isolation", "tools", "fs", "net", "resources", "env", "secrets", "auth",
                        "container", "browser", "audit", "allow_command_extractors"};
const Words kFs = {"read", "write", "deny", "private"};
const Words kNet = {"mode", "egress", "unix", "loopback"};
const Words kEnv = {"pass", "set", "dangerous"};
const Words kSecret = {"source", "inject", "ttl"};
const Words kAuth = {"host", "credential", "base_url_var", "token_var"};

// Families deny all of their members.
const Words kBrowserVerbs = {
    "back",      "boundingbox", "check",     "clear",   "click",    "close",   "console", "content",   "cookies",  "count",
    "credentials", "dblclick",  "dialog",    "diff_snapshot", "diff_url", "download", "drag", "emulate", "evaluate", "fill",
    "focus",     "forward",     "getattribute", "gettext", "hover",  "innerhtml", "inputvalue", "ischecked", "isenabled",
    "isvisible", "mouse",       "navigate",  "network", "open",     "pdf",     "press",   "profiler",  "react",    "read",
    "recording", "reload",      "screenshot", "scroll", "select",   "state",   "storage", "styles",    "tab",      "title",
    "trace",     "type",        "uncheck",   "upload",  "url",      "wait"};

// Keys of the predecessor that mean nothing here, and what to write instead.
struct Gone {
  std::string_view key, instead;
};
constexpr Gone kGoneTop[] = {{"service", "start the service inside the box with h5i box run"}};
constexpr Gone kGoneProfile[] = {
    {"persona", "put the instructions into the work tree; the box sees every file of it"},
    {"engine", "extends: browser chooses the engine"},
    {"detect", "evidence is always recorded; see audit.capture"},
    {"shell", "set the shell's start-up by env.set, or let the command source a file of $WORK"},
    {"service", "start the service inside the box with h5i box run"},
    {"memory", "resources.mem"}, {"network", "net"}, {"image", "container.image"}, {"paths", "fs"}};
constexpr Gone kGoneFs[] = {{"fs_read", "fs.read"}, {"fs_write", "fs.write"}, {"fs_deny", "fs.deny"}};

class Reader {
 public:
  Reader(const std::string& file, bool toml, const PathRoots& roots, std::vector<Error>& errors)
      : file_(file), toml_(toml), roots_(roots), errors_(errors) {}

  FileModel read(const Node& root) {
    model_.file = file_;
    if (root.kind != Node::Kind::MAP) {
      expected(root, "", "a map with profiles");
      return std::move(model_);
    }
    Words known = kTop;
    known.push_back("profile");
    check_keys(root, "", known, kTop, kGoneTop, std::size(kGoneTop));
    const Node* profiles = root.find("profiles");
    const Node* old = root.find("profile");
    if (profiles && old) fault(Errc::POLICY_VALUE, old->at, "profile and profiles both stand here", "keep profiles");
    for (const Node* set : {profiles, old})
      if (set && is_map(*set, "profiles"))
        for (const Entry& e : set->entries) read_profile(e);
    if (const Node* container = root.find("container"))
      if (is_map(*container, "container")) {
        check_keys(*container, "container", {"image"}, {"image"});
        if (const Node* image = container->find("image"))
          if (auto text = image_name(*image, "container.image"))
            model_.image = Setting{Json(*text), "", file_, image->at, {}};
      }
    return std::move(model_);
  }

 private:
  void fault(Errc code, Mark at, const std::string& what, std::string evidence, std::string next = {}) {
    errors_.push_back(make_error(code, place(file_, at) + ": " + what, std::move(evidence), std::move(next)));
  }
  void expected(const Node& n, const std::string& key, const std::string& what, const std::string& hint = {}) {
    std::string found = n.kind == Node::Kind::NONE ? "nothing" : std::string(kind_name(n.kind));
    if (!n.text.empty() && n.kind != Node::Kind::NONE) found += " `" + n.text.substr(0, 100) + "`";
    fault(Errc::POLICY_TYPE, n.at, (key.empty() ? "the file" : "`" + key + "`") + " is " + what,
          "found " + found + (hint.empty() ? "" : "; " + hint));
  }
  bool is_map(const Node& n, const std::string& key) {
    if (n.kind == Node::Kind::MAP) return true;
    expected(n, key, "a map");
    return false;
  }

  void check_keys(const Node& map, const std::string& prefix, const Words& known, const Words& shown,
                  const Gone* gone = nullptr, size_t gone_count = 0) {
    for (const Entry& e : map.entries) {
      if (std::find(known.begin(), known.end(), e.key) != known.end()) continue;
      std::string full = prefix.empty() ? e.key : prefix + "." + e.key;
      const Gone* g = std::find_if(gone, gone + gone_count, [&](const Gone& x) { return x.key == e.key; });
      if (g != gone + gone_count) {
        fault(Errc::POLICY_NO_EQUIVALENT, e.key_at, "`" + full + "` has no equivalent key here", "instead: " + std::string(g->instead));
        continue;
      }
      std::string near = nearest(e.key, known);
      fault(Errc::POLICY_UNKNOWN_KEY, e.key_at, "unknown key `" + full + "`",
            "expected one of: " + joined(shown) + (near.empty() ? "" : "; nearest: " + near));
    }
  }

  Setting setting(const Node& n) const { return Setting{Json(), profile_->name, file_, n.at, {}}; }
  void put(const std::string& name, Setting s) { profile_->settings[name] = std::move(s); }

  std::optional<std::string> text(const Node& n, const std::string& key, const std::string& what = "text") {
    if (n.kind == Node::Kind::TEXT) return n.text;
    // `[~]` is YAML's null, and people mean their home directory.
    bool scalar = n.kind == Node::Kind::INTEGER || n.kind == Node::Kind::REAL || n.kind == Node::Kind::BOOL ||
                  (n.kind == Node::Kind::NONE && n.text == "~");
    expected(n, key, what, scalar ? "quote it: \"" + n.text + "\"" : "");
    return {};
  }
  std::optional<std::string> word_of(const Node& n, const std::string& key, const Words& words) {
    auto t = text(n, key, "one of " + joined(words));
    if (!t) return {};
    if (std::find(words.begin(), words.end(), *t) != words.end()) return t;
    std::string near = nearest(*t, words);
    fault(Errc::POLICY_VALUE, n.at, "`" + key + "` does not know `" + t->substr(0, 100) + "`",
          "expected one of: " + joined(words) + (near.empty() ? "" : "; nearest: " + near));
    return {};
  }
  std::optional<bool> boolean(const Node& n, const std::string& key) {
    if (n.kind == Node::Kind::BOOL) return n.boolean;
    expected(n, key, "true or false");
    return {};
  }

  // A list as a set: each item by `one`, sorted, without duplicates.
  template <class F>
  void read_set(const Node& n, const std::string& name, F one) {
    if (n.kind != Node::Kind::LIST) return expected(n, profile_key(name), "a list", n.kind == Node::Kind::TEXT ? "write [" + n.text + "]" : "");
    if (n.items.size() > kMaxItems) return fault(Errc::POLICY_LIMIT, n.at, "`" + profile_key(name) + "` has too many items", "limit " + std::to_string(kMaxItems));
    Setting s = setting(n);
    std::set<std::string> seen;
    for (const Node& item : n.items)
      if (std::optional<std::string> value = one(item))
        if (seen.insert(*value).second) s.items.emplace_back(*value, item.at);
    s.value = json::Array();
    for (const std::string& v : seen) s.value.push(v);
    put(name, std::move(s));
  }
  std::string profile_key(const std::string& name) const { return "profiles." + profile_->name + "." + name; }

  void read_profile(const Entry& e) {
    Profile p;
    p.name = e.key;
    p.file = file_;
    p.at = e.key_at;
    profile_ = &p;
    if (!valid_profile_name(e.key))
      fault(Errc::POLICY_VALUE, e.key_at, "`" + e.key + "` is not a profile's name", "letters, digits, `.`, `_` and `-`, at most 64, beginning with a letter or digit");
    const Node& n = e.value;
    if (n.kind == Node::Kind::NONE) {
      model_.profiles[p.name] = std::move(p);
      return;
    }
    if (!is_map(n, "profiles." + p.name)) return;
    Words known = kProfile;
    for (std::string_view old : {"secret", "private_paths"}) known.push_back(old);
    check_keys(n, "profiles." + p.name, known, kProfile, kGoneProfile, std::size(kGoneProfile));
    for (const Entry& f : n.entries) {
      const Node& v = f.value;
      if (f.key == "extends") {
        if (auto t = text(v, profile_key("extends"), "a profile's name")) p.extends = *t, p.extends_at = v.at;
      } else if (f.key == "isolation") {
        read_isolation(v);
      } else if (f.key == "tools") {
        read_tools(v);
      } else if (f.key == "fs") {
        read_fs(v);
      } else if (f.key == "net") {
        read_net(v);
      } else if (f.key == "resources") {
        read_resources(v);
      } else if (f.key == "env") {
        read_env(v);
      } else if (f.key == "auth") {
        read_auth(v);
      } else if (f.key == "container") {
        if (is_map(v, profile_key("container"))) {
          check_keys(v, profile_key("container"), {"image"}, {"image"});
          if (const Node* image = v.find("image"))
            if (auto t = image_name(*image, profile_key("container.image"))) {
              Setting s = setting(*image);
              s.value = *t;
              put("container.image", std::move(s));
            }
        }
      } else if (f.key == "browser") {
        read_browser(v);
      } else if (f.key == "audit") {
        if (is_map(v, profile_key("audit"))) {
          check_keys(v, profile_key("audit"), {"capture"}, {"capture"});
          if (const Node* c = v.find("capture"))
            if (auto t = word_of(*c, profile_key("audit.capture"), {"all", "signal", "none"})) {
              Setting s = setting(*c);
              s.value = *t;
              put("audit.capture", std::move(s));
            }
        }
      } else if (f.key == "allow_command_extractors") {
        if (auto b = boolean(v, profile_key(f.key))) {
          Setting s = setting(v);
          s.value = *b;
          put("command_extractors", std::move(s));
        }
      } else if (f.key == "private_paths") {
        read_private(v, "private_paths", true);
      }
    }
    read_secrets(n.find("secrets"), n.find("secret"));
    if (!model_.profiles.emplace(p.name, p).second)
      fault(Errc::POLICY_VALUE, e.key_at, "the profile `" + p.name + "` is defined twice", "once under profile, once under profiles");
    profile_ = nullptr;
  }

  static bool valid_profile_name(const std::string& s) {
    auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
    return !s.empty() && s.size() <= 64 && alnum(s[0]) &&
           std::all_of(s.begin(), s.end(), [&](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; });
  }

  void read_isolation(const Node& n) {
    auto t = text(n, profile_key("isolation"), "a tier's id");
    if (!t) return;
    if (*t == "auto")
      return fault(Errc::POLICY_VALUE, n.at, "`isolation: auto` names no tier", "leave isolation out: auto is what happens then");
    if (*t == "hardened-container")
      return fault(Errc::POLICY_NO_EQUIVALENT, n.at, "the tier `hardened-container` has no equivalent", "instead: isolation: container");
    bool ok = !t->empty() && t->size() <= 128 && (*t)[0] != '-' && (*t)[0] != '.' &&
              std::all_of(t->begin(), t->end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; });
    if (!ok) return fault(Errc::POLICY_VALUE, n.at, "`" + t->substr(0, 100) + "` is not a tier's id", "lower-case letters, digits, `-` and `.`, for example process");
    Setting s = setting(n);
    s.value = *t;
    put("isolation", std::move(s));
  }

  void read_tools(const Node& n) {
    read_set(n, "tools", [&](const Node& item) -> std::optional<std::string> {
      auto t = text(item, profile_key("tools"), "a list of program names");
      if (!t) return {};
      bool ok = !t->empty() && t->size() <= kMaxWord && *t != "." && *t != ".." && printable(*t) == *t &&
                t->find('/') == std::string::npos;
      if (ok) return t;
      fault(Errc::POLICY_VALUE, item.at, "`" + t->substr(0, 100) + "` is not a program's base name", "tools compares the last component of the program's path; write make, not /usr/bin/make");
      return {};
    });
    if (n.kind == Node::Kind::LIST && n.items.empty())
      model_.notes.push_back(place(file_, n.at) + ": tools is an empty list, so no program may be started; leave it out to allow any");
  }

  std::optional<std::string> path_item(const Node& item, const std::string& key, bool grant) {
    auto t = text(item, key, "a list of paths");
    if (!t) return {};
    auto path = expand_path(*t, roots_);
    if (!path) {
      fault(path.error().code, item.at, path.error().what, path.error().evidence);
      return {};
    }
    if (!grant) return std::move(*path);
    if (box_has_its_own(*path)) {
      model_.notes.push_back(place(file_, item.at) + ": " + *path + " is not taken from the host: the box has its own");
      return {};
    }
    std::string never = never_granted(*path, roots_);
    if (never.empty()) return std::move(*path);
    fault(Errc::POLICY_PATH, item.at, "`" + *path + "` is not granted to a box", never);
    return {};
  }

  void read_fs(const Node& n) {
    if (!is_map(n, profile_key("fs"))) return;
    check_keys(n, profile_key("fs"), kFs, kFs, kGoneFs, std::size(kGoneFs));
    for (const Entry& e : n.entries) {
      std::string name = "fs." + e.key;
      if (e.key == "read" || e.key == "write" || e.key == "deny")
        read_set(e.value, name, [&](const Node& item) { return path_item(item, profile_key(name), e.key != "deny"); });
      else if (e.key == "private")
        read_private(e.value, "fs.private", false);
    }
  }

  void read_private(const Node& n, const std::string& key, bool old) {
    if (!is_map(n, profile_key(key))) return;
    Setting s = setting(n);
    s.value = json::Object();
    for (const Entry& e : n.entries) {
      auto path = private_path(e.key);
      if (!path) {
        fault(path.error().code, e.key_at, path.error().what, path.error().evidence);
        continue;
      }
      const Node* kind = &e.value;
      if (old || kind->kind == Node::Kind::MAP) {
        if (!is_map(e.value, profile_key(key))) continue;
        check_keys(e.value, profile_key(key), {"kind", "persist"}, {"kind"});
        kind = e.value.find("kind");
        if (!kind) {
          fault(Errc::POLICY_VALUE, e.value.at, "`" + profile_key(key) + "` lacks kind", "write fs.private: { " + e.key + ": cache }");
          continue;
        }
        if (kind->kind == Node::Kind::TEXT && kind->text == "private") {
          fault(Errc::POLICY_NO_EQUIVALENT, kind->at, "the kind `private` has no equivalent", "instead: cache (kept between runs) or scratch (emptied at each run)");
          continue;
        }
      }
      auto t = word_of(*kind, profile_key("fs.private"), {"cache", "scratch"});
      if (!t) continue;
      if (s.value.object().contains(*path)) {
        fault(Errc::POLICY_VALUE, e.key_at, "`" + *path + "` stands twice in fs.private", "two spellings of one path");
        continue;
      }
      s.items.emplace_back(*path, e.key_at);
      s.value[*path] = *t;
    }
    for (const auto& [a, at] : s.items)
      for (const auto& [b, unused] : s.items)
        if (a != b && beneath(a, b))
          fault(Errc::POLICY_PATH, at, "`" + a + "` lies inside `" + b + "`", "private paths do not nest");
    put("fs.private", std::move(s));
  }

  void read_net(const Node& n) {
    if (!is_map(n, profile_key("net"))) return;
    check_keys(n, profile_key("net"), kNet, kNet);
    for (const Entry& e : n.entries) {
      Setting s = setting(e.value);
      std::string name = "net." + e.key;
      if (e.key == "mode") {
        if (auto t = word_of(e.value, profile_key(name), {"deny", "host"})) s.value = *t, put(name, std::move(s));
      } else if (e.key == "egress") {
        read_egress(e.value);
      } else if (e.key == "unix") {
        if (auto b = boolean(e.value, profile_key(name))) s.value = *b, put(name, std::move(s));
      } else if (e.key == "loopback") {
        read_loopback(e.value);
      }
    }
  }

  void read_egress(const Node& n) {
    if (n.kind != Node::Kind::LIST) return expected(n, profile_key("net.egress"), "a list of rules");
    if (n.items.size() > kMaxItems) return fault(Errc::POLICY_LIMIT, n.at, "net.egress has too many rules", "limit " + std::to_string(kMaxItems));
    Setting s = setting(n);
    std::vector<EgressRule> rules;
    for (const Node& item : n.items) {
      const Node* to = &item;
      bool private_ok = false;
      if (item.kind == Node::Kind::MAP) {
        check_keys(item, profile_key("net.egress"), {"to", "private"}, {"to", "private"});
        to = item.find("to");
        if (!to) {
          fault(Errc::POLICY_VALUE, item.at, "a rule that is a map lacks `to`", "write { to: \"HOST:PORT\", private: true }");
          continue;
        }
        if (const Node* p = item.find("private")) private_ok = boolean(*p, profile_key("net.egress.private")).value_or(false);
      }
      auto t = text(*to, profile_key("net.egress"), "a list of rules, each text or a map");
      if (!t) continue;
      if (toml_ && t->size() > 1 && (*t)[0] == '.') *t = "*" + *t;  // the predecessor's other spelling of a wildcard
      auto rule = parse_egress(*t, private_ok);
      if (!rule) {
        fault(rule.error().code, to->at, rule.error().what, rule.error().evidence);
        continue;
      }
      s.items.emplace_back(rule->text(), to->at);
      rules.push_back(std::move(*rule));
    }
    sort_rules(rules);
    s.value = json::Array();
    for (const EgressRule& r : rules) s.value.push(r.to_json());
    put("net.egress", std::move(s));
  }

  void read_loopback(const Node& n) {
    if (n.kind != Node::Kind::LIST) return expected(n, profile_key("net.loopback"), "a list of ports");
    Setting s = setting(n);
    std::set<int64_t> ports;
    for (const Node& item : n.items) {
      if (item.kind != Node::Kind::INTEGER) expected(item, profile_key("net.loopback"), "a list of ports");
      else if (item.integer < 1 || item.integer > 65535) fault(Errc::POLICY_VALUE, item.at, "`" + item.text + "` is not a port", "1 to 65535");
      else ports.insert(item.integer);
    }
    s.value = json::Array();
    for (int64_t p : ports) s.value.push(p);
    put("net.loopback", std::move(s));
  }

  void read_resources(const Node& n) {
    if (!is_map(n, profile_key("resources"))) return;
    check_keys(n, profile_key("resources"), kResources, kResources);
    for (const Entry& e : n.entries)
      if (std::find(kResources.begin(), kResources.end(), e.key) != kResources.end()) read_resource(e.key, e.value);
  }

  void read_resource(const std::string& name, const Node& n) {
    std::string key = profile_key("resources." + name);
    Setting s = setting(n);
    if (name == "cpus") {
      double v = n.kind == Node::Kind::INTEGER ? static_cast<double>(n.integer) : n.real;
      if (n.kind != Node::Kind::INTEGER && n.kind != Node::Kind::REAL) return expected(n, key, "a number of processors, for example 2 or 0.5");
      bool in_range = v >= 0.01 && v <= kMaxCpus;  // false for TOML's nan and inf too, before anything is converted
      double hundredths = in_range ? v * 100 : 0;
      if (!in_range || hundredths != static_cast<double>(static_cast<int64_t>(hundredths + 0.5)))
        return fault(Errc::POLICY_VALUE, n.at, "`" + key + "` does not take " + n.text, "0.01 to 4096, in hundredths");
      s.value = n.kind == Node::Kind::INTEGER ? Json(n.integer) : v == static_cast<double>(static_cast<int64_t>(v)) ? Json(static_cast<int64_t>(v)) : Json(v);
      return put("resources." + name, std::move(s));
    }
    bool duration = name == "cpu" || name == "wall", count = name == "procs" || name == "inodes";
    std::string shape = duration ? "a duration, for example 90s, 30m or 1h" : count ? "a count, for example 256 or 500k" : "a size, for example 512M or 4G";
    std::string written = n.text;
    bool fits = n.kind == Node::Kind::TEXT || (n.kind == Node::Kind::INTEGER && !duration);
    if (!fits) return expected(n, key, shape, duration && n.kind == Node::Kind::INTEGER ? "write the unit: " + written + "s" : "");
    auto v = duration ? parse_duration(written) : count ? parse_count(written) : parse_size(written);
    if (!v) return fault(Errc::POLICY_VALUE, n.at, "`" + key + "` does not take `" + written.substr(0, 60) + "`", "expected " + shape + "; sizes take K M G T, counts k m, durations s m h");
    // Nothing can run with none of these; `output: 0` keeps nothing and is meant.
    if (*v == 0 && name != "output")
      return fault(Errc::POLICY_VALUE, n.at, "`" + key + "` is 0", name == "mem" || name == "procs" || name == "wall" || name == "cpu" ? "nothing could run; leave it out to inherit" : "nothing could be written; leave it out for no limit");
    s.value = *v;
    put("resources." + name, std::move(s));
  }

  std::optional<std::string> env_name(const Node& n, const std::string& key) {
    auto t = text(n, key, "a list of variable names");
    if (!t) return {};
    return check_env_name(*t, n.at) ? t : std::nullopt;
  }
  bool check_env_name(const std::string& name, Mark at) {
    if (is_secret_source(name)) {
      fault(Errc::POLICY_VALUE, at, "`" + name + "` is where the host keeps a secret", "grant it under secrets instead");
      return false;
    }
    if (valid_env_name(name)) return true;
    bool exported_function = name.substr(0, 10) == "BASH_FUNC_";
    fault(exported_function ? Errc::POLICY_ENV_DANGEROUS : Errc::POLICY_VALUE, at, "`" + name.substr(0, 100) + "` is not a variable's name",
          exported_function ? "an exported shell function is code" : "letters, digits and `_`, not beginning with a digit; no patterns");
    return false;
  }

  void read_env(const Node& n) {
    if (!is_map(n, profile_key("env"))) return;
    check_keys(n, profile_key("env"), kEnv, kEnv);
    for (const Entry& e : n.entries) {
      std::string name = "env." + e.key;
      if (e.key == "pass" || e.key == "dangerous") {
        read_set(e.value, name, [&](const Node& item) { return env_name(item, profile_key(name)); });
      } else if (e.key == "set") {
        if (!is_map(e.value, profile_key(name))) continue;
        Setting s = setting(e.value);
        s.value = json::Object();
        for (const Entry& v : e.value.entries) {
          if (!check_env_name(v.key, v.key_at)) continue;
          auto t = text(v.value, profile_key(name) + "." + v.key);
          if (!t) continue;
          if (t->size() > kMaxEnvValue) {
            fault(Errc::POLICY_LIMIT, v.value.at, "the value of " + v.key + " is too long", "limit " + std::to_string(kMaxEnvValue));
            continue;
          }
          if (t->find('\0') != std::string::npos) {
            fault(Errc::POLICY_VALUE, v.value.at, "the value of " + v.key + " holds a NUL", "an environment cannot carry one");
            continue;
          }
          s.value[v.key] = *t;
          s.items.emplace_back(v.key, v.key_at);
        }
        put(name, std::move(s));
      }
    }
  }

  // `secrets` is a map of grants; the predecessor had a list of names and a map `secret`.
  void read_secrets(const Node* secrets, const Node* old) {
    if (!secrets && !old) return;
    Setting s = setting(secrets ? *secrets : *old);
    s.value = json::Object();
    if (secrets && secrets->kind == Node::Kind::LIST) {
      for (const Node& item : secrets->items)
        if (auto t = text(item, profile_key("secrets"), "a map of grants, or a list of names"))
          if (check_env_name(*t, item.at)) s.value[*t] = default_grant(*t);
    } else if (secrets && is_map(*secrets, profile_key("secrets"))) {
      read_grants(*secrets, s);
    }
    if (old && is_map(*old, profile_key("secret"))) read_grants(*old, s);
    put("secrets", std::move(s));
  }
  static Json default_grant(const std::string& name) {
    return json::Object{{"source", "env:H5I_SECRET_" + name}, {"inject", "env"}};
  }
  void read_grants(const Node& map, Setting& s) {
    for (const Entry& e : map.entries) {
      if (!check_env_name(e.key, e.key_at)) continue;
      std::string key = profile_key("secrets." + e.key);
      Json grant = default_grant(e.key);
      s.items.emplace_back(e.key, e.key_at);
      if (e.value.kind != Node::Kind::NONE) {
        if (!is_map(e.value, key)) continue;
        check_keys(e.value, key, kSecret, kSecret);
        if (const Node* source = e.value.find("source"))
          if (auto t = secret_source(*source, key + ".source")) grant["source"] = *t;
        if (const Node* inject = e.value.find("inject"))
          if (auto t = word_of(*inject, key + ".inject", {"env", "file"})) grant["inject"] = *t;
        if (const Node* ttl = e.value.find("ttl"))
          if (auto t = text(*ttl, key + ".ttl", "a duration, for example 15m")) {
            auto v = parse_duration(*t);
            if (v && *v > 0) grant["ttl"] = *v;
            else fault(Errc::POLICY_VALUE, ttl->at, "`" + key + ".ttl` does not take `" + t->substr(0, 60) + "`", "a duration, for example 15m");
          }
      }
      s.value[e.key] = grant;
    }
  }
  std::optional<std::string> secret_source(const Node& n, const std::string& key) {
    auto t = text(n, key, "env:NAME, file:/PATH or command:/PROGRAM ARG...");
    if (!t) return {};
    if (t->substr(0, 4) == "env:" && valid_env_name(std::string_view(*t).substr(4))) return t;
    if (t->substr(0, 5) == "file:") {
      auto path = expand_path(std::string_view(*t).substr(5), roots_);
      if (path && (*path)[0] == '/') return "file:" + *path;
      fault(Errc::POLICY_PATH, n.at, "`" + key + "` does not take `" + t->substr(0, 100) + "`", path ? "a secret does not lie in the work tree" : path.error().evidence);
      return {};
    }
    if (t->substr(0, 9) == "command:/" && printable(*t) == *t) return t;
    fault(Errc::POLICY_VALUE, n.at, "`" + key + "` does not take `" + t->substr(0, 100) + "`", "expected env:NAME, file:/PATH or command:/PROGRAM ARG...");
    return {};
  }

  void read_auth(const Node& n) {
    if (n.kind != Node::Kind::LIST) return expected(n, profile_key("auth"), "a list of maps");
    Setting s = setting(n);
    s.value = json::Array();
    std::set<std::string> hosts;
    for (const Node& item : n.items) {
      std::string key = profile_key("auth");
      if (!is_map(item, key)) continue;
      Words known = kAuth;
      known.push_back("credential_env");
      check_keys(item, key, known, kAuth);
      Json entry = json::Object();
      bool whole = true;
      for (std::string_view field : kAuth) {
        const Node* v = item.find(field);
        bool old = !v && field == "credential";
        if (old) v = item.find("credential_env");
        if (!v) {
          fault(Errc::POLICY_VALUE, item.at, "an entry of auth lacks `" + std::string(field) + "`", "all of: " + joined(kAuth));
          whole = false;
          continue;
        }
        auto t = text(*v, key + "." + std::string(field));
        if (!t) {
          whole = false;
          continue;
        }
        if (old) *t = "env:" + *t;
        std::string wrong;
        if (field == "host") {
          auto rule = parse_egress(*t);
          if (!rule || rule->kind != EgressRule::Kind::NAME || t->find(':') != std::string::npos) wrong = "a bare host name, for example api.github.com";
          else *t = rule->name;
        } else if (field == "credential") {
          if (t->substr(0, 4) != "env:" || !valid_env_name(std::string_view(*t).substr(4))) wrong = "env:NAME";
        } else if (!valid_env_name(*t)) {
          wrong = "a variable's name";
        }
        if (!wrong.empty()) {
          fault(Errc::POLICY_VALUE, v->at, "`" + key + "." + std::string(field) + "` does not take `" + t->substr(0, 100) + "`", "expected " + wrong);
          whole = false;
        }
        entry[field] = *t;
      }
      if (!whole) continue;
      if (!hosts.insert(entry["host"].string()).second) {
        fault(Errc::POLICY_VALUE, item.at, "auth names `" + entry["host"].string() + "` twice", "one credential a host");
        continue;
      }
      s.items.emplace_back(entry["host"].string(), item.at);
      s.value.push(entry);
    }
    put("auth", std::move(s));
  }

  void read_browser(const Node& n) {
    if (!is_map(n, profile_key("browser"))) return;
    check_keys(n, profile_key("browser"), {"deny"}, {"deny"});
    const Node* deny = n.find("deny");
    if (!deny) return;
    read_set(*deny, "browser.deny", [&](const Node& item) -> std::optional<std::string> {
      if (item.kind == Node::Kind::TEXT && item.text == "snapshot") {
        fault(Errc::POLICY_VALUE, item.at, "`snapshot` cannot be denied", "browser control reads the page by it before every other verb");
        return {};
      }
      return word_of(item, profile_key("browser.deny"), kBrowserVerbs);
    });
  }

  std::optional<std::string> image_name(const Node& n, const std::string& key) {
    auto t = text(n, key, "an image's name");
    if (!t) return {};
    if (valid_image_name(*t)) return t;
    fault(Errc::POLICY_VALUE, n.at, "`" + t->substr(0, 100) + "` is not an image's name", kImageForm);
    return {};
  }

  const std::string& file_;
  bool toml_;
  const PathRoots& roots_;
  std::vector<Error>& errors_;
  FileModel model_;
  Profile* profile_ = nullptr;
};

}  // namespace

const std::vector<std::string_view> kResources = {"mem", "procs", "cpus", "cpu", "wall", "fsize", "disk", "inodes", "output"};
const std::vector<std::string_view> kFields = {
    "isolation", "tools", "fs.read", "fs.write", "fs.deny", "fs.private", "net.mode", "net.egress", "net.unix",
    "net.loopback", "resources.mem", "resources.procs", "resources.cpus", "resources.cpu", "resources.wall",
    "resources.fsize", "resources.disk", "resources.inodes", "resources.output", "env.pass", "env.set", "env.dangerous",
    "secrets", "command_extractors", "auth", "container.image", "browser.deny", "audit.capture"};

bool valid_image_name(std::string_view s) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("._/:@+-").find(c) != std::string_view::npos;
  };
  return !s.empty() && s.size() <= kMaxImage && std::string_view("-.:@+").find(s[0]) == std::string_view::npos &&
         std::all_of(s.begin(), s.end(), allowed) && s.find("..") == std::string_view::npos;
}

FileModel read_model(const Node& root, const std::string& file, bool toml, const PathRoots& roots, std::vector<Error>& errors) {
  return Reader(file, toml, roots, errors).read(root);
}

FileModel read_config(std::string_view bytes, const std::string& file, bool toml, const PathRoots& roots,
                      std::vector<Error>& errors) {
  auto root = toml ? read_toml(bytes, file) : read_yaml(bytes, file);
  if (!root) {
    errors.push_back(std::move(root).error());
    FileModel empty;
    empty.file = file;
    return empty;
  }
  return read_model(*root, file, toml, roots, errors);
}

std::string Setting::where() const {
  return builtin() ? profile + " (built-in)" : (profile.empty() ? "" : profile + " ") + "(" + place(file, at) + ")";
}

std::string Setting::where_item(const std::string& item) const {
  if (!builtin())
    for (const auto& [name, mark] : items)
      if (name == item) return (profile.empty() ? "" : profile + " ") + "(" + place(file, mark) + ")";
  return where();
}

std::string resource_text(std::string_view name, const Json& value) {
  if (value.is_null()) return "none";
  if (name == "cpus") return json::canonical(value);
  if (name == "cpu" || name == "wall") return duration_text(value.integer());
  if (name == "procs" || name == "inodes") return count_text(value.integer());
  return size_text(value.integer());
}

}  // namespace h5i::policy
