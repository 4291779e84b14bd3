#include "core/policy/allow_list.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/os/beneath.hpp"
#include "core/os/owned_file.hpp"

namespace h5i::policy {
namespace {

constexpr uint64_t kMaxFile = 256u << 10;
constexpr size_t kMaxRules = 4096;
constexpr std::string_view kPrivate = " private";

std::string_view trimmed(std::string_view s) {
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

}  // namespace

Result<EgressRule> parse_allow_entry(std::string_view line) {
  line = trimmed(line);
  bool private_ok = line.size() > kPrivate.size() && line.substr(line.size() - kPrivate.size()) == kPrivate;
  if (private_ok) line = trimmed(line.substr(0, line.size() - kPrivate.size()));
  return parse_egress(line, private_ok);
}

std::string allow_entry_text(const EgressRule& rule) {
  bool said = rule.kind == EgressRule::Kind::NETWORK && classify(rule.network).reach == Reach::PRIVATE;
  return rule.text() + (rule.private_ok && !said ? std::string(kPrivate) : "");
}

Result<std::vector<EgressRule>> parse_allow_list(std::string_view bytes, const std::string& name) {
  std::vector<EgressRule> rules;
  int line = 1;
  for (size_t i = 0; i < bytes.size(); line++) {
    size_t end = std::min(bytes.find('\n', i), bytes.size());
    std::string_view text = bytes.substr(i, end - i);
    i = end + 1;
    text = trimmed(text.substr(0, text.find('#')));
    if (text.empty()) continue;
    auto rule = parse_allow_entry(text);
    if (!rule)
      return make_error(Errc::POLICY_EGRESS, name + ":" + std::to_string(line) + ": " + rule.error().what, rule.error().evidence,
                        "correct the line, or remove the rule: h5i box allow --remove RULE");
    rules.push_back(std::move(*rule));
    if (rules.size() > kMaxRules) return make_error(Errc::POLICY_LIMIT, name + " has too many rules", "limit " + std::to_string(kMaxRules));
  }
  sort_rules(rules);
  return rules;
}

std::string allow_list_text(std::vector<EgressRule> rules) {
  sort_rules(rules);
  std::string out = "# Hosts that every box with egress rules of its own may reach too. Edit with: h5i box allow\n";
  for (const EgressRule& r : rules) out += allow_entry_text(r) + "\n";
  return out;
}

MergedEgress merge_allow_list(const std::vector<EgressRule>& profile, const std::vector<EgressRule>& host) {
  MergedEgress m;
  m.rules = profile;
  if (profile.empty()) {
    m.ignored = !host.empty();
    return m;
  }
  for (const EgressRule& h : host) {
    bool covered = std::any_of(profile.begin(), profile.end(), [&](const EgressRule& p) { return covers(p, h); });
    if (covered) continue;
    m.added.push_back(h);
    m.rules.push_back(h);
  }
  sort_rules(m.rules);
  sort_rules(m.added);
  return m;
}

Result<std::vector<EgressRule>> load_allow_list(const std::string& file, uint32_t uid) {
  auto bytes = H5I_TRY(os::read_owned_file(file, uid, kMaxFile, Errc::POLICY_HOST_FILE));
  if (!bytes) return std::vector<EgressRule>();
  return parse_allow_list(*bytes, file);
}

Result<void> make_allow_directory(const std::string& file) {
  std::string parent = file.substr(0, file.rfind('/'));
  if (::mkdir(parent.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return sys_error("make " + parent);
  std::string above = parent.substr(0, parent.rfind('/'));  // a fresh account has no ~/.config
  if ((::mkdir(above.c_str(), 0700) != 0 && errno != EEXIST) || ::mkdir(parent.c_str(), 0700) != 0) return sys_error("make " + parent);
  return {};
}

Result<void> save_allow_list(const std::string& file, const std::vector<EgressRule>& rules) {
  size_t slash = file.rfind('/');
  UniqueFd dir = H5I_TRY(os::open_directory(file.substr(0, slash)));
  return os::replace_file(dir, file.substr(slash + 1), allow_list_text(rules), 0600);
}

}  // namespace h5i::policy
