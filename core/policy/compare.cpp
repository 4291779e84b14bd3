#include "core/policy/compare.hpp"

#include <algorithm>

#include "core/policy/egress.hpp"
#include "core/policy/model.hpp"

namespace h5i::policy {
namespace {

using Texts = std::vector<std::string>;

Texts texts(const Json& list) {
  Texts out;
  for (const Json& v : list.array()) out.push_back(v.is_int() ? std::to_string(v.integer()) : v.string());
  return out;
}

bool any_above(const Texts& grants, const std::string& path) {
  return std::any_of(grants.begin(), grants.end(), [&](const std::string& g) { return beneath(path, g); });
}

class Comparison {
 public:
  Comparison(const Json& from, const Json& to) : a_(from["profile"]), b_(to["profile"]), from_(from), to_(to) {}

  std::vector<Change> run() {
    constant("tier", from_["tier"], to_["tier"]);
    constant("isolation", a_["isolation"], b_["isolation"]);
    tools();
    file_system();
    network();
    for (std::string_view name : kResources) limit(std::string(name));
    environment();
    grants("secrets", a_["secrets"].object(), b_["secrets"].object());
    flag("command_extractors", a_["command_extractors"].boolean(), b_["command_extractors"].boolean());
    auth();
    constant("container.image", a_["container"]["image"], b_["container"]["image"]);
    refusals("browser.deny", texts(a_["browser"]["deny"]), texts(b_["browser"]["deny"]));
    audit();
    return std::move(out_);
  }

 private:
  void add(std::string field, Direction d, std::string detail) { out_.push_back({std::move(field), d, std::move(detail)}); }

  void constant(const std::string& field, const Json& x, const Json& y) {
    if (x == y) return;
    auto shown = [](const Json& v) { return v.is_null() ? std::string("none") : v.is_string() ? v.string() : json::canonical(v); };
    add(field, Direction::CHANGED, shown(x) + " -> " + shown(y));
  }
  void flag(const std::string& field, bool x, bool y) {
    if (x != y) add(field, y ? Direction::WIDENED : Direction::NARROWED, std::string(x ? "true" : "false") + " -> " + (y ? "true" : "false"));
  }
  // What is admitted on each side and not on the other.
  template <class Covered>
  void admitted(const std::string& field, const Texts& x, const Texts& y, Covered covered) {
    for (const std::string& v : y)
      if (!covered(x, v)) add(field, Direction::WIDENED, "+ " + v);
    for (const std::string& v : x)
      if (!covered(y, v)) add(field, Direction::NARROWED, "- " + v);
  }
  void members(const std::string& field, const Texts& x, const Texts& y) {
    admitted(field, x, y, [](const Texts& set, const std::string& v) { return std::find(set.begin(), set.end(), v) != set.end(); });
  }
  // A list of what is refused: more of it is narrower.
  void refusals(const std::string& field, const Texts& x, const Texts& y) {
    for (const std::string& v : y)
      if (std::find(x.begin(), x.end(), v) == x.end()) add(field, Direction::NARROWED, "+ " + v);
    for (const std::string& v : x)
      if (std::find(y.begin(), y.end(), v) == y.end()) add(field, Direction::WIDENED, "- " + v);
  }

  void tools() {
    const Json *x = a_.object().find("tools"), *y = b_.object().find("tools");
    if (x && y) return members("tools", texts(*x), texts(*y));
    if (x) add("tools", Direction::WIDENED, "a list -> any");
    if (y) add("tools", Direction::NARROWED, "any -> " + std::to_string(y->array().size()) + " named");
  }

  void file_system() {
    const Json &x = a_["fs"], &y = b_["fs"];
    Texts xw = texts(x["write"]), yw = texts(y["write"]), xr = texts(x["read"]), yr = texts(y["read"]);
    Texts x_seen = xr, y_seen = yr;  // what is writable is readable
    x_seen.insert(x_seen.end(), xw.begin(), xw.end());
    y_seen.insert(y_seen.end(), yw.begin(), yw.end());
    admitted("fs.read", x_seen, y_seen, any_above);
    admitted("fs.write", xw, yw, any_above);
    // What lies in no grant is not there anyway, so denying it changes nothing.
    for (const std::string& d : texts(y["deny"]))
      if (!any_above(texts(x["deny"]), d) && any_above(x_seen, d)) add("fs.deny", Direction::NARROWED, "+ " + d);
    for (const std::string& d : texts(x["deny"]))
      if (!any_above(texts(y["deny"]), d) && any_above(y_seen, d)) add("fs.deny", Direction::WIDENED, "- " + d);
    for (const auto& [path, kind] : y["private"].object())
      if (!(x["private"][path] == kind)) add("fs.private", Direction::CHANGED, path + ": " + kind.string());
    for (const auto& [path, kind] : x["private"].object())
      if (!y["private"].object().contains(path)) add("fs.private", Direction::CHANGED, "- " + path);
  }

  void network() {
    const Json &x = a_["net"], &y = b_["net"];
    bool xh = x["mode"].string() == "host", yh = y["mode"].string() == "host";
    if (xh != yh) add("net.mode", yh ? Direction::WIDENED : Direction::NARROWED, x["mode"].string() + " -> " + y["mode"].string());
    std::vector<EgressRule> xs, ys;
    for (const Json& r : x["egress"].array())
      if (auto rule = egress_from_json(r)) xs.push_back(*rule);
    for (const Json& r : y["egress"].array())
      if (auto rule = egress_from_json(r)) ys.push_back(*rule);
    auto covered = [](const std::vector<EgressRule>& set, const EgressRule& r) {
      return std::any_of(set.begin(), set.end(), [&](const EgressRule& s) { return covers(s, r); });
    };
    auto shown = [](const EgressRule& r) { return r.text() + (r.private_ok && r.kind != EgressRule::Kind::NETWORK ? " (private)" : ""); };
    for (const EgressRule& r : ys)
      if (!covered(xs, r)) add("net.egress", Direction::WIDENED, "+ " + shown(r));
    for (const EgressRule& r : xs)
      if (!covered(ys, r)) add("net.egress", Direction::NARROWED, "- " + shown(r));
    if (x.object().contains("egress") != y.object().contains("egress") && xs.empty() && ys.empty())
      add("net.egress", Direction::CHANGED, y.object().contains("egress") ? "left out -> empty list" : "empty list -> left out");
    flag("net.unix", x["unix"].boolean(), y["unix"].boolean());
    members("net.loopback", texts(x["loopback"]), texts(y["loopback"]));
  }

  void limit(const std::string& name) {
    const Json &x = a_["resources"][name], &y = b_["resources"][name];
    if (x == y) return;
    bool wider = y.is_null() || (!x.is_null() && y.number() > x.number());
    add("resources." + name, wider ? Direction::WIDENED : Direction::NARROWED, resource_text(name, x) + " -> " + resource_text(name, y));
  }

  void environment() {
    const Json &x = a_["env"], &y = b_["env"];
    members("env.pass", texts(x["pass"]), texts(y["pass"]));
    for (const auto& [name, value] : y["set"].object())
      if (!(x["set"][name] == value)) add("env.set", Direction::CHANGED, name);
    for (const auto& [name, value] : x["set"].object())
      if (!y["set"].object().contains(name)) add("env.set", Direction::CHANGED, "- " + name);
    members("env.dangerous", texts(x["dangerous"]), texts(y["dangerous"]));
  }

  void grants(const std::string& field, const json::Object& x, const json::Object& y) {
    for (const auto& [name, grant] : y) {
      const Json* old = x.find(name);
      if (!old) add(field, Direction::WIDENED, "+ " + name);
      else if (!(*old == grant)) add(field, Direction::CHANGED, name);
    }
    for (const auto& [name, grant] : x)
      if (!y.contains(name)) add(field, Direction::NARROWED, "- " + name);
  }

  void auth() {
    json::Object x, y;
    for (const Json& e : a_["auth"].array()) x[e["host"].string()] = e;
    for (const Json& e : b_["auth"].array()) y[e["host"].string()] = e;
    grants("auth", x, y);
  }

  // Less of what happened is kept: the box gains, the reader loses.
  void audit() {
    auto rank = [](const std::string& s) { return s == "all" ? 2 : s == "signal" ? 1 : 0; };
    std::string x = from_["audit"]["capture"].string(), y = to_["audit"]["capture"].string();
    if (x != y) add("audit.capture", rank(y) < rank(x) ? Direction::WIDENED : Direction::NARROWED, x + " -> " + y);
  }

  const Json &a_, &b_, &from_, &to_;
  std::vector<Change> out_;
};

}  // namespace

std::string_view direction_name(Direction d) {
  return d == Direction::WIDENED ? "widened" : d == Direction::NARROWED ? "narrowed" : "changed";
}

std::vector<Change> compare(const Json& from, const Json& to) { return Comparison(from, to).run(); }

}  // namespace h5i::policy
