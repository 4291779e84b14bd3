#include "core/evidence/findings.hpp"

#include <algorithm>
#include <iterator>

#include "core/base/text.hpp"

namespace h5i::evidence {
namespace {

// Sorted. What is not here is about processes: their privileges, each other, and the kernel.
constexpr std::string_view kNet[] = {"accept",     "accept4", "bind",       "connect",  "getpeername", "getsockname",
                                     "getsockopt", "listen",  "recvfrom",   "recvmmsg", "recvmsg",     "sendmmsg",
                                     "sendmsg",    "sendto",  "setsockopt", "shutdown", "socket",      "socketpair"};
constexpr std::string_view kFs[] = {"chmod",
                                    "chown",
                                    "chroot",
                                    "fanotify_init",
                                    "fchmod",
                                    "fchmodat",
                                    "fchown",
                                    "fchownat",
                                    "fsconfig",
                                    "fsmount",
                                    "fsopen",
                                    "fspick",
                                    "lchown",
                                    "link",
                                    "linkat",
                                    "mkdir",
                                    "mkdirat",
                                    "mknod",
                                    "mknodat",
                                    "mount",
                                    "mount_setattr",
                                    "move_mount",
                                    "name_to_handle_at",
                                    "open",
                                    "open_by_handle_at",
                                    "open_tree",
                                    "openat",
                                    "openat2",
                                    "pivot_root",
                                    "quotactl",
                                    "rename",
                                    "renameat",
                                    "renameat2",
                                    "rmdir",
                                    "swapoff",
                                    "swapon",
                                    "symlink",
                                    "symlinkat",
                                    "truncate",
                                    "umount2",
                                    "unlink",
                                    "unlinkat"};
constexpr std::string_view kResource[] = {
    "ioprio_set",    "mbind",       "migrate_pages",     "mlock",         "mlock2",         "mlockall",
    "move_pages",    "prlimit64",   "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler",
    "set_mempolicy", "setpriority", "setrlimit"};

// A log may say anything; a sum of what it says must not wrap.
void add_to(uint64_t& sum, uint64_t n) { sum = sum > UINT64_MAX - n ? UINT64_MAX : sum + n; }

template <Lane L>
void put(Pressure<L>& p, Boundary b, const std::string& what, uint64_t n, bool new_record) {
  auto& c = p.at[b];
  add_to(c.denials, n);
  if (new_record) c.records++;
  constexpr size_t kMostKinds = 1000;
  std::string key = printable(what, {.limit = 80});
  if (c.by_what.count(key) || c.by_what.size() < kMostKinds) add_to(c.by_what[key], n);
}

uint64_t positive(const Json& v) { return v.integer(1) > 0 ? static_cast<uint64_t>(v.integer(1)) : 1; }

std::string syscall_of(const Json& d) {
  const Json& s = d["syscall"];
  return s.is_int() ? "system call " + std::to_string(s.integer()) : s.string();
}

std::string what_of(const Json& record) {
  const Json& body = record["body"].is_object() ? record["body"] : record;
  for (const char* key : {"syscall", "rule", "id", "what", "claim"})
    if (body[key].is_string() && !body[key].string().empty()) return body[key].string();
  return record["kind"].string();
}

template <Lane L>
Json pressure_json(const Pressure<L>& p) {
  Json out = json::Object{};
  for (const auto& [b, c] : p.at) {
    Json by = json::Object{};
    for (const auto& [what, n] : c.by_what) by[what] = n;
    out[b == Boundary::NONE ? "none" : boundary_name(b)] =
        json::Object{{"denials", c.denials}, {"records", c.records}, {"by", by}};
  }
  return out;
}

template <Lane L>
void pressure_lines(const Pressure<L>& p, std::vector<std::string>& out) {
  for (const auto& [b, c] : p.at) {
    std::string line = std::string(b == Boundary::NONE ? "-" : boundary_name(b)) + " [" + std::string(lane_name(L)) +
                       "]: " + std::to_string(c.denials) + " denied";
    std::string sep = ": ";
    size_t shown = 0;
    for (const auto& [what, n] : c.by_what) {
      if (shown++ == 8) {
        line += ", ...";
        break;
      }
      line += sep + what + " " + std::to_string(n);
      sep = ", ";
    }
    out.push_back(line);
  }
}

}  // namespace

Boundary boundary_of_syscall(std::string_view name) {
  auto in = [&](const auto& list) { return std::binary_search(std::begin(list), std::end(list), name); };
  return in(kNet) ? Boundary::NET : in(kFs) ? Boundary::FS : in(kResource) ? Boundary::RESOURCE : Boundary::PROC;
}

void FindingsBuilder::add(const Json& record) {
  const std::string& kind = record["kind"].string();
  const std::string& lane = record["lane"].string();
  const Json& body = record["body"];
  Boundary boundary = boundary_from(record["boundary"].string());
  if (kind == "receipt" && lane == lane_name(Lane::HOST_OBSERVED)) {
    const std::string& session = record["session"].string();
    with_receipt_.insert(session);
    live_.erase(session);
    bool first = true;
    for (const Json& d : body["denials"].array()) {
      std::string what = syscall_of(d);
      put(out_.host_observed, boundary_of_syscall(what), what, positive(d["count"]), first);
      first = false;
    }
    for (const Json& u : body["unobserved"].array())
      if (!u["what"].string().empty())
        out_.unobserved[printable(u["what"].string(), {.limit = 80})] = printable(u["reason"].string(), {.limit = 200});
    return;
  }
  if (kind == "unobserved" && lane == lane_name(Lane::HOST_OBSERVED) && !body["what"].string().empty())
    out_.unobserved[printable(body["what"].string(), {.limit = 80})] =
        printable(body["reason"].string(), {.limit = 200});
  if (lane == lane_name(Lane::BOX_CLAIMED)) {
    add_to(out_.claims, 1);
    const Json& claim = body["body"];
    if (claim["kind"].string() == "denial")
      put(out_.box_claimed, boundary_from(claim["boundary"].string()), what_of(claim), positive(claim["count"]), true);
    return;
  }
  if (kind != "denial" && kind != "violation") return;
  std::string what = body["syscall"].is_int() ? syscall_of(body) : what_of(record);
  if (lane == lane_name(Lane::ENGINE_CLAIMED)) {
    put(out_.engine_claimed, boundary, what, positive(body["count"]), true);
  } else if (lane == lane_name(Lane::HOST_OBSERVED)) {
    bool system_call = kind == "denial" && !body["syscall"].is_null();
    if (!system_call) {
      put(out_.host_observed, boundary, what, positive(body["count"]), true);
    } else if (with_receipt_.count(record["session"].string()) == 0) {
      live_[record["session"].string()].push_back(
          {boundary == Boundary::NONE ? boundary_of_syscall(what) : boundary, what, positive(body["count"])});
    }
  }
}

Findings FindingsBuilder::take() {
  for (const auto& [session, denials] : live_)
    for (const Denial& d : denials) put(out_.host_observed, d.boundary, d.what, d.count, true);
  live_.clear();
  return std::move(out_);
}

Json findings_json(const Findings& f) {
  Json unobserved = json::Object{};
  for (const auto& [what, why] : f.unobserved) unobserved[what] = why;
  return json::Object{{lane_name(Lane::HOST_OBSERVED).data(), pressure_json(f.host_observed)},
                      {lane_name(Lane::ENGINE_CLAIMED).data(), pressure_json(f.engine_claimed)},
                      {lane_name(Lane::BOX_CLAIMED).data(), pressure_json(f.box_claimed)},
                      {"claims", f.claims},
                      {"unobserved", unobserved}};
}

std::vector<std::string> findings_lines(const Findings& f) {
  std::vector<std::string> out;
  pressure_lines(f.host_observed, out);
  pressure_lines(f.engine_claimed, out);
  pressure_lines(f.box_claimed, out);
  if (f.claims > 0)
    out.push_back(std::to_string(f.claims) +
                  " records are claims of the box itself: nobody outside it observed what they say");
  for (const auto& [what, why] : f.unobserved) out.push_back("not observed: " + what + " (" + why + ")");
  return out;
}

}  // namespace h5i::evidence
