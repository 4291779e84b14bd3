#include "core/policy/host_policy.hpp"

#include <algorithm>

#include "core/policy/adapters.hpp"
#include "core/policy/egress.hpp"
#include "core/policy/model.hpp"
#include "core/policy/nearest.hpp"
#include "core/os/owned_file.hpp"
#include "core/policy/quantity.hpp"

namespace h5i::policy {
namespace {

using Words = std::vector<std::string_view>;

const Words kTop = {"tiers", "resources", "net", "env", "fs", "secrets", "audit", "gate"};
const Words kGate = {"files", "bytes", "file_bytes", "depth"};

// A host's file is short and its owner is at hand: the first fault ends it.
class HostReader {
 public:
  HostReader(const std::string& name) : name_(name) { c_.file = name; }

  Result<HostPolicy> read(const Node& root) {
    for (const Entry& e : root.entries)
      if (e.key == "plugins")
        return make_error(Errc::POLICY_HOST_FILE, place(name_, e.key_at) + ": `plugins` is not said here",
                          "instead: /etc/h5i/plugin-directories, one absolute path a line");
    H5I_TRY(map(root, "", kTop));
    for (const Entry& e : root.entries) {
      if (e.key == "tiers") H5I_TRY(tiers(e.value));
      else if (e.key == "resources") H5I_TRY(resources(e.value));
      else if (e.key == "net") H5I_TRY(net(e.value));
      else if (e.key == "env") H5I_TRY(env(e.value));
      else if (e.key == "fs") H5I_TRY(fs(e.value));
      else if (e.key == "secrets") H5I_TRY(secrets(e.value));
      else if (e.key == "audit") H5I_TRY(audit(e.value));
      else if (e.key == "gate") H5I_TRY(gate(e.value));
    }
    out_.ceilings.push_back(std::move(c_));
    out_.files.push_back(name_);
    return std::move(out_);
  }

 private:
  Error wrong(const Node& n, const std::string& key, const std::string& expected) {
    std::string found = n.text.empty() ? std::string(kind_name(n.kind)) : "`" + n.text.substr(0, 100) + "`";
    return make_error(Errc::POLICY_HOST_FILE, place(name_, n.at) + ": `" + key + "` is " + expected, "found " + found);
  }
  Result<void> map(const Node& n, const std::string& key, const Words& known) {
    if (n.kind != Node::Kind::MAP) return wrong(n, key.empty() ? "the file" : key, "a map");
    for (const Entry& e : n.entries) {
      if (std::find(known.begin(), known.end(), e.key) == known.end()) {
        std::string near = nearest(e.key, known), full = key.empty() ? e.key : key + "." + e.key;
        return make_error(Errc::POLICY_HOST_FILE, place(name_, e.key_at) + ": unknown key `" + full + "`",
                          "expected one of: " + joined(known) + (near.empty() ? "" : "; nearest: " + near));
      }
      c_.lines[key.empty() ? e.key : key + "." + e.key] = e.key_at.line;
    }
    return {};
  }
  Result<std::vector<std::string>> list(const Node& n, const std::string& key) {
    if (n.kind != Node::Kind::LIST) return wrong(n, key, "a list of text");
    std::vector<std::string> out;
    for (const Node& item : n.items) {
      if (item.kind != Node::Kind::TEXT || item.text.empty()) return wrong(item, key, "a list of text");
      out.push_back(item.text);
    }
    return out;
  }
  Result<bool> flag(const Node& n, const std::string& key) {
    if (n.kind != Node::Kind::BOOL) return wrong(n, key, "true or false");
    return n.boolean;
  }

  Result<void> tiers(const Node& n) {
    H5I_TRY(map(n, "tiers", {"allowed", "order", "allow_unconfined"}));
    if (const Node* v = n.find("allowed")) c_.tiers = H5I_TRY(list(*v, "tiers.allowed"));
    if (const Node* v = n.find("order")) out_.tiers_order = H5I_TRY(list(*v, "tiers.order"));
    if (const Node* v = n.find("allow_unconfined")) out_.allow_unconfined = H5I_TRY(flag(*v, "tiers.allow_unconfined"));
    return {};
  }

  Result<void> resources(const Node& n) {
    H5I_TRY(map(n, "resources", kResources));
    for (const Entry& e : n.entries) {
      std::string key = "resources." + e.key;
      std::optional<int64_t> v;
      bool scalar = e.value.kind == Node::Kind::TEXT || e.value.kind == Node::Kind::INTEGER;
      if (e.key == "cpus") {
        double x = e.value.kind == Node::Kind::INTEGER ? static_cast<double>(e.value.integer) : e.value.kind == Node::Kind::REAL ? e.value.real : 0;
        if (x >= 0.01 && x <= 4096) v = static_cast<int64_t>(x * 100 + 0.5);
      } else if (scalar) {
        bool duration = e.key == "cpu" || e.key == "wall", count = e.key == "procs" || e.key == "inodes";
        v = duration ? parse_duration(e.value.text) : count ? parse_count(e.value.text) : parse_size(e.value.text);
      }
      if (!v) return wrong(e.value, key, "a size, count or duration as in a profile");
      c_.resources[e.key] = *v;
    }
    return {};
  }

  Result<void> net(const Node& n) {
    H5I_TRY(map(n, "net", {"egress", "host"}));
    if (const Node* v = n.find("host")) c_.host_network = H5I_TRY(flag(*v, "net.host"));
    const Node* egress = n.find("egress");
    if (!egress) return {};
    if (egress->kind != Node::Kind::LIST) return wrong(*egress, "net.egress", "a list of rules");
    Json rules = json::Array();
    for (const Node& item : egress->items) {
      const Node* to = &item;
      bool private_ok = false;
      if (item.kind == Node::Kind::MAP) {
        H5I_TRY(map(item, "net.egress", {"to", "private"}));
        to = item.find("to");
        if (!to) return wrong(item, "net.egress", "a list of rules, each text or { to: RULE, private: true }");
        if (const Node* p = item.find("private")) private_ok = H5I_TRY(flag(*p, "net.egress.private"));
      }
      if (to->kind != Node::Kind::TEXT) return wrong(*to, "net.egress", "a list of rules");
      auto rule = parse_egress(to->text, private_ok);
      if (!rule) return make_error(Errc::POLICY_HOST_FILE, place(name_, to->at) + ": " + rule.error().what, rule.error().evidence);
      rules.push(rule->to_json());
    }
    c_.egress = std::move(rules);
    return {};
  }
  Result<void> env(const Node& n) {
    H5I_TRY(map(n, "env", {"dangerous"}));
    if (const Node* v = n.find("dangerous")) c_.env_dangerous = H5I_TRY(flag(*v, "env.dangerous"));
    return {};
  }
  Result<void> fs(const Node& n) {
    H5I_TRY(map(n, "fs", {"credentials"}));
    if (const Node* v = n.find("credentials")) out_.credentials = H5I_TRY(flag(*v, "fs.credentials"));
    return {};
  }
  Result<void> secrets(const Node& n) {
    H5I_TRY(map(n, "secrets", {"sources", "command_extractors"}));
    if (const Node* v = n.find("sources")) {
      c_.secret_sources = H5I_TRY(list(*v, "secrets.sources"));
      for (const std::string& s : *c_.secret_sources)
        if (s != "env" && s != "file" && s != "command") return wrong(*v, "secrets.sources", "a list of env, file and command");
    }
    if (const Node* v = n.find("command_extractors")) {
      c_.command_extractors = H5I_TRY(flag(*v, "secrets.command_extractors"));
      out_.command_extractors = *c_.command_extractors;
    }
    return {};
  }
  Result<void> audit(const Node& n) {
    H5I_TRY(map(n, "audit", {"capture"}));
    const Node* v = n.find("capture");
    if (!v) return {};
    if (v->text != "all" && v->text != "signal" && v->text != "none") return wrong(*v, "audit.capture", "one of all, signal, none");
    c_.audit = v->text;
    return {};
  }
  // The run path looks for plugins and reads no YAML (docs/adr/0011).
  Result<void> gate(const Node& n) {
    H5I_TRY(map(n, "gate", kGate));
    for (const Entry& e : n.entries) {
      bool size = e.key == "bytes" || e.key == "file_bytes";
      auto v = e.value.kind != Node::Kind::TEXT && e.value.kind != Node::Kind::INTEGER ? std::nullopt
               : size ? parse_size(e.value.text) : parse_count(e.value.text);
      if (!v || *v == 0) return wrong(e.value, "gate." + e.key, size ? "a size" : "a count");
      out_.gate[e.key] = *v;
    }
    return {};
  }

  const std::string& name_;
  Ceiling c_;
  HostPolicy out_;
};

bool says(const HostPolicy& p, const char* key) { return !p.ceilings.empty() && p.ceilings[0].lines.count(key); }

// `root` holds where it says something; the user's file fills the rest. Ceilings hold both.
HostPolicy combine(HostPolicy root, HostPolicy user) {
  HostPolicy out = root;
  if (!says(root, "tiers.order")) out.tiers_order = user.tiers_order;
  if (!says(root, "tiers.allow_unconfined")) out.allow_unconfined = user.allow_unconfined;
  if (!says(root, "secrets.command_extractors")) out.command_extractors = user.command_extractors;
  if (!says(root, "fs.credentials")) out.credentials = user.credentials;
  for (const auto& [name, limit] : user.gate) out.gate.emplace(name, limit);
  out.ceilings.insert(out.ceilings.end(), user.ceilings.begin(), user.ceilings.end());
  out.files.insert(out.files.end(), user.files.begin(), user.files.end());
  return out;
}

Result<HostPolicy> load_one(const std::string& file, uint32_t uid) {
  if (file.empty()) return HostPolicy{};
  auto bytes = H5I_TRY(os::read_owned_file(file, uid, kMaxConfigBytes, Errc::POLICY_HOST_FILE));
  if (!bytes) return HostPolicy{};
  return parse_host_policy(*bytes, file);
}

}  // namespace

Result<HostPolicy> parse_host_policy(std::string_view bytes, const std::string& name) {
  auto root = read_yaml(bytes, name);
  if (!root) return make_error(Errc::POLICY_HOST_FILE, root.error().what, root.error().evidence);
  return HostReader(name).read(*root);
}

Result<HostPolicy> load_host_policy(const std::string& etc_file, const std::string& user_file, uint32_t uid) {
  HostPolicy root = H5I_TRY(load_one(etc_file, 0));
  HostPolicy user = H5I_TRY(load_one(user_file, uid));
  return combine(std::move(root), std::move(user));
}

}  // namespace h5i::policy
