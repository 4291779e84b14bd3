// A websec session on disk and one act of it: what was asked of it goes to its engine, h5i-engine, which writes the session's log itself.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/evidence/log.hpp"
#include "core/plugin/registry.hpp"
#include "core/session/box.hpp"

namespace h5i::session {

enum class WebState { LIVE, CLOSED, EXPIRED };
std::string_view web_state_name(WebState s);  // "live" ...

// <state>/websec/NAME, mode 0700.
struct WebSession {
  std::string name, dir;
  Json manifest;  // schema "h5i.websec-session/1", in session.json
  std::string log() const { return dir + "/log.jsonl"; }
  WebState state(int64_t realtime_ns) const;
};

// The names of a session: as a box's slug.
bool valid_web_name(std::string_view name);

// `scope` and `options` are what the engine made of the words it was given. Whole or not at all; EXISTS when there is one of that name.
struct WebOpen {
  std::string name;
  Json scope;    // the engine's canonical document
  Json options;  // of the session: whether messages are kept, ...
  int64_t lifetime_s = 0;
  std::optional<BoxEntry> box;  // that its wire is to be in; none: not contained
};
Result<WebSession> open_web_session(const UserDirs& dirs, const plugin::PluginInfo& engine, const WebOpen& open);
Result<WebSession> find_web_session(const UserDirs& dirs, const std::string& name);  // NOT_FOUND
// By name; folders that are no sessions are left out.
std::vector<WebSession> list_web_sessions(const UserDirs& dirs);
// Sets the mark; the log gets a last record of the core's. Closing what is closed changes nothing and is told by false.
Result<bool> close_web_session(WebSession& session);

// The engine that is installed: NOT_FOUND names the package.
Result<plugin::PluginInfo> find_engine();

struct WebAnswer {
  Json document;
  int code = 0;  // 0 held, 1 did not, 2 could not look
};
struct WebAct {
  std::string act;
  Json words = json::Object{};
  int64_t timeout_ms = -1;
  std::function<void(const std::string& text)> progress;
};
// One act that sends. While it goes on no other does: BUSY. Before it, that an earlier engine was killed is recorded. CANCELLED when the session has
// ended (closed, expired).
Result<WebAnswer> act_in_session(WebSession& session, const WebAct& act);
// One that only reads the log; also beside an act that sends, and after the session's end.
Result<WebAnswer> look_at_session(const WebSession& session, const WebAct& act);
// An act that needs no session, such as reading a scope.
Result<WebAnswer> act_alone(const plugin::PluginInfo& engine, const WebAct& act);

}  // namespace h5i::session
