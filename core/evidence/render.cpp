#include "core/evidence/render.hpp"

#include <vector>

#include "core/base/text.hpp"
#include "core/evidence/denial_words.hpp"

namespace h5i::evidence {
namespace {

constexpr size_t kLongest = 2000;  // bytes of one value; the record itself holds all of it

// What a receipt says, before it has a form. A row without a label continues a list.
struct Row {
  std::string label, value;
  bool item = false;
};
struct Section {
  std::string title;
  std::vector<Row> rows;
};

std::string seconds(const Json& us) {
  if (!us.is_int() || us.integer() < 0) return "not recorded";
  int64_t ms = us.integer() / 1000;
  char buf[48];
  snprintf(buf, sizeof buf, "%lld.%03lld s", static_cast<long long>(ms / 1000), static_cast<long long>(ms % 1000));
  return buf;
}

std::string text_of(const Json& v) {
  if (v.is_string()) return v.string().empty() ? "not recorded" : v.string();
  if (v.is_null()) return "not recorded";
  return json::canonical(v);
}

Section what_ran(const Json& r) {
  Section s{"What ran", {}};
  s.rows.push_back({"session", text_of(r["session"])});
  s.rows.push_back({"box", text_of(r["box"])});
  s.rows.push_back({"command", command_words(r["command"])});
  if (!r["cwd"].string().empty()) s.rows.push_back({"directory", r["cwd"].string()});
  const Json& o = r["outcome"];
  std::string outcome = text_of(o["status"]);
  if (o["status"].string() == "exited" || o["status"].string() == "signaled") outcome += " " + text_of(o["code"]);
  if (!o["reason"].string().empty()) outcome += " [" + o["reason"].string() + "]";
  s.rows.push_back({"outcome", outcome});
  if (!o["detail"].string().empty()) s.rows.push_back({"because", o["detail"].string()});
  s.rows.push_back({"exit status", text_of(r["exit_status"])});
  s.rows.push_back({"time", text_of(r["started"]) + " to " + text_of(r["ended"])});
  return s;
}

Section enforced_by(const Json& r) {
  Section s{"Under what", {}};
  s.rows.push_back({"policy digest", text_of(r["policy_digest"])});
  s.rows.push_back({"effective digest", text_of(r["effective_digest"])});
  s.rows.push_back({"tier", text_of(r["tier"])});
  const Json& p = r["plugin"];
  s.rows.push_back({"plugin", text_of(p["id"]) + " " + text_of(p["version"])});
  s.rows.push_back({"plugin digest", text_of(p["digest"])});
  const Json& k = r["kernel"];
  s.rows.push_back(
      {"kernel", text_of(k["release"]) + " " + text_of(k["arch"]) + ", Landlock ABI " + text_of(k["landlock_abi"])});
  return s;
}

Section not_enforced(const Json& r) {
  Section s{"Not enforced", {}};
  for (const Json& n : r["not_enforced"].array()) {
    std::string why = text_of(n["reason"]);
    if (!n["detail"].string().empty()) why += ": " + n["detail"].string();
    s.rows.push_back({text_of(n["field"]), why, true});
  }
  if (!r["not_enforced"].is_array())
    s.rows.push_back({"", "not recorded"});
  else if (s.rows.empty())
    s.rows.push_back({"", "nothing: every field of the policy was enforced"});
  return s;
}

Section denied(const Json& r) {
  Section s{"Denied (host-observed)", {}};
  for (const Json& d : r["denials"].array()) {
    std::string said = text_of(d["count"]) + " times, " + text_of(d["errno"]);
    std::string kinds;
    for (const Json& k : d["sockets"].array()) kinds += (kinds.empty() ? ": " : ", ") + text_of(k["kind"]) + " " + text_of(k["count"]);
    said += kinds;
    if (std::string_view words = denial_words(d["syscall"].string()); !words.empty()) said += "; " + std::string(words);
    s.rows.push_back({text_of(d["syscall"]), std::move(said), true});
  }
  for (const Json& l : r["limits_reached"].array()) s.rows.push_back({"limit reached: " + text_of(l["field"]), text_of(l["count"]) + " times", true});
  if (s.rows.empty())
    s.rows.push_back({"", r["denials"].is_array() ? "nothing that the tier can see" : "not recorded"});
  for (const Json& u : r["unobserved"].array())
    s.rows.push_back({"not observed: " + text_of(u["what"]), text_of(u["reason"]), true});
  return s;
}

// Where packets went, in the words of who held the rules.
Section network(const Json& r) {
  Section s{"Network (host-observed)", {}};
  const Json& n = r["network"];
  for (const Json& a : n["allowed"].array())
    s.rows.push_back({"let through: " + text_of(a["about"]), text_of(a["packets"]) + " packets, " + text_of(a["bytes"]) + " bytes", true});
  for (const Json& e : n["refused"].array()) s.rows.push_back({"refused: " + text_of(e["to"]), text_of(e["packets"]) + " packets, first at " + text_of(e["first"]), true});
  if (n["refused_others"].integer() > 0) s.rows.push_back({"refused: others", text_of(n["refused_others"]) + " packets to destinations beyond those that are told", true});
  if (n["lost"].boolean()) s.rows.push_back({"", "some refused packets were not told: the counts are lower bounds"});
  if (n["changed"].boolean()) s.rows.push_back({"", "the rules were not what they were at the start"});
  for (const Json& c : n["changes"].array()) {
    std::string rules;
    for (const Json& rule : c["rules"].array()) rules += (rules.empty() ? "" : ", ") + text_of(rule);
    s.rows.push_back({std::string("the host ") + (c["do"].string() == "add" ? "added " : "removed ") + rules, text_of(c["at"]) + ", effective digest then " + text_of(c["effective_digest"]), true});
  }
  for (const Json& a : n["added"].array()) s.rows.push_back({"from the host's allow-list", text_of(a), true});
  for (const Json& a : n["not_pinned"].array()) s.rows.push_back({"not pinned: " + text_of(a["rule"]), text_of(a["address"]) + ", where no box may go", true});
  if (s.rows.empty()) s.rows.push_back({"", n["allowed"].is_array() ? "no packet left the box" : "not recorded"});
  return s;
}

void add_members(Section& s, const char* label, const Json& members) {
  for (const auto& [key, value] : members.object()) s.rows.push_back({std::string(label) + key, text_of(value), true});
}

Section seen(const Json& r) {
  Section s{"Who observed", {}};
  add_members(s, "seen from outside: ", r["attested"]);
  add_members(s, "said by the box's own start: ", r["self_reported"]);
  if (s.rows.empty()) s.rows.push_back({"", "not recorded"});
  return s;
}

Row stream(const char* name, const Json& o) {
  std::string v = text_of(o["bytes"]) + " bytes, " + text_of(o["captured"]) + " kept";
  if (o["truncated"].boolean()) v += " (cut)";
  if (o["captured"].integer() > 0) v += ", SHA-256 " + text_of(o["sha256"]);
  return {name, v};
}

Section cost(const Json& r) {
  Section s{"What it cost", {}};
  const Json& u = r["usage"];
  s.rows.push_back({"time", seconds(u["wall_us"]) + " (user " + seconds(u["user_us"]) + ", system " +
                                seconds(u["system_us"]) + ")"});
  const char* of = u["source"].string() == "cgroup" ? " KiB, the most of the whole box" : " KiB, the largest process that was waited for";
  s.rows.push_back({"memory", u["max_rss_kib"].is_int() ? std::to_string(u["max_rss_kib"].integer()) + of : std::string("not recorded")});
  s.rows.push_back({"read from", text_of(u["source"])});
  s.rows.push_back(stream("stdout", r["output"]["stdout"]));
  s.rows.push_back(stream("stderr", r["output"]["stderr"]));
  for (const auto& [rule, n] : r["redactions"].object()) s.rows.push_back({"redacted: " + rule, text_of(n), true});
  for (const Json& p : r["survivors"].array()) s.rows.push_back({"survived and was killed", text_of(p), true});
  return s;
}

Section offline() {
  return {"Verify offline",
          {{"", "h5i log verify LOG.jsonl --key HOST.pub"},
           {"", "LOG.jsonl with LOG.jsonl.seal beside it; docs/evidence.md says how to do it without h5i"}}};
}

std::vector<Section> sections(const Json& r) {
  std::vector<Section> out = {what_ran(r), enforced_by(r), not_enforced(r), denied(r)};
  if (r["network"].is_object()) out.push_back(network(r));
  for (Section s : {seen(r), cost(r), offline()}) out.push_back(std::move(s));
  return out;
}

std::string safe(const std::string& s) { return printable(s, {.limit = kLongest}); }

}  // namespace

std::string command_words(const Json& argv) {
  if (!argv.is_array()) return "not recorded";
  std::string out;
  for (const Json& w : argv.array()) {
    const std::string& word = w.string();
    bool plain = !word.empty() &&
                 word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") ==
                     std::string::npos;
    if (!out.empty()) out += ' ';
    if (plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::string receipt_text(const Json& receipt) {
  std::string out;
  for (const Section& s : sections(receipt)) {
    out += s.title + "\n";
    for (const Row& row : s.rows) {
      std::string label = safe(row.label);
      if (row.item)
        out += "  - " + label + ": " + safe(row.value) + "\n";
      else if (label.empty())
        out += "  " + safe(row.value) + "\n";
      else
        out += "  " + label + std::string(label.size() < 17 ? 17 - label.size() : 1, ' ') + safe(row.value) + "\n";
    }
  }
  return out;
}

}  // namespace h5i::evidence
