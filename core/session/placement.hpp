// The wire half of a web engine in a box: where a session is placed, and one run of that box whose program is h5i-engine. The recorder stays on the host.
#pragma once
#include <sys/types.h>

#include <string>

#include "core/base/json.hpp"
#include "core/base/unique_fd.hpp"
#include "core/plugin/client.hpp"
#include "core/plugin/registry.hpp"
#include "core/session/box.hpp"

namespace h5i::session {

inline constexpr const char* kNotContained = "not contained";

// {"text":"not contained"}, or of a box {"text","box","tier","dir","log","policy_digest","network"}; network is "none", "host" or "rules".
Json not_placed();
// Refused, with what is missing, where a tier does not keep the engine from other processes: TIER_PROBE_MISSING. BOX_STATE: aborted.
Result<Json> placement_in(const BoxEntry& box);
// The box of a placement, when it is still the one that the session was opened in. CANCELLED says what became of it.
Result<BoxEntry> box_of(const Json& placement);
bool is_placed(const Json& manifest);
// In words, of a session's manifest.
const std::string& placement_text(const Json& manifest);

// The box's run with the engine in it, by a process of its own: this one has the session to look after meanwhile. Its end ends the run.
class EngineInBox {
 public:
  // Returns when the engine in the box has said which it is; every refusal of the run (a busy box, a missing component) is this call's.
  static Result<EngineInBox> start(const BoxEntry& box, const plugin::PluginInfo& engine);
  EngineInBox(EngineInBox&& other) noexcept;
  EngineInBox& operator=(EngineInBox&&) = delete;
  ~EngineInBox();

  // To the half in the box. Whoever serves the session gets it, and nobody else may have a copy while that one is to see its end.
  UniqueFd take_channel() { return std::move(channel_); }
  // The run is over, or is ended: {"run","receipt","status","outcome","network"}, the receipt by the digest of its record in the box's log.
  Result<Json> finish();

 private:
  EngineInBox() = default;
  Result<Json> report(int64_t patience_ms);

  UniqueFd channel_, told_;
  pid_t runner_ = -1;
};

}  // namespace h5i::session
