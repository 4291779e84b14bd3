#include "canary.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace h5i::confined {
namespace {

using json::Object;

constexpr int64_t kCanaryTimeoutMs = 20000;

json::Value acts_of(const std::vector<Act>& acts) {
  json::Array out;
  for (const Act& act : acts) {
    json::Array words;
    for (const std::string& w : act) words.push_back(w);
    out.push_back(std::move(words));
  }
  return out;
}

}  // namespace

json::Value inside(const json::Value& plan, const std::vector<Act>& acts) {
  json::Value p = plan;
  p.make_object().erase("exec");
  p.make_object().erase("argv");
  p["canary"] = acts_of(acts);
  if (p["network"].is_object()) p["network"]["uplink"] = "observed";
  return p;
}

json::Value outside(const Request& request, const std::vector<Act>& acts) {
  return Object{{"schema", "h5i.plan/1"},
                {"tier", request.tier->id},
                {"ids", Object{{"inside_uid", request.uid},
                               {"inside_gid", request.gid},
                               {"outside_uid", request.uid},
                               {"outside_gid", request.gid}}},
                {"cwd", "/"},
                {"env", Object{}},
                {"capabilities", "keep"},
                {"canary", acts_of(acts)},
                {"not_enforced", json::Array{}}};
}

sdk::Result<std::vector<Line>> perform(const sdk::Host& host, const json::Value& plan, size_t count) {
  uint64_t handle = H5I_SDK_TRY(host.start(plan, H5I_SPAWN_CANARY));
  auto ended = host.wait(handle, kCanaryTimeoutMs);
  if (!ended) {
    (void)host.kill(handle);
    return ended.error();
  }
  const h5i_spawn_result& raw = ended->raw;
  if (raw.setup_errno != 0 || raw.status == H5I_OUTCOME_SETUP_FAILED)
    return sdk::failure(
        H5I_E_TIER_SETUP,
        "set-up failed at: " + std::string(raw.setup_text, strnlen(raw.setup_text, sizeof raw.setup_text)),
        raw.setup_errno);
  std::vector<Line> lines;
  std::optional<Line> report;
  std::string_view rest = ended->output;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    if (auto v = json::parse(rest.substr(0, end)); v && v->is_object()) {
      Line line{(*v)["ok"].boolean(), (*v)["errno"].string(), (*v)["value"]};
      if ((*v)["act"].string() == "network") report = std::move(line);  // the spawner's, in no act's place
      else lines.push_back(std::move(line));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string lost = raw.status == H5I_OUTCOME_SIGNALED ? "killed by signal " + std::to_string(raw.code) : "no answer";
  while (lines.size() < count) lines.push_back({false, lost, {}});
  if (report) lines.push_back(std::move(*report));
  return lines;
}

}  // namespace h5i::confined
