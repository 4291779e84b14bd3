#include "core/cli/websec_verbs.hpp"

#include "core/base/text.hpp"
#include "core/session/placement.hpp"

namespace h5i::cli {
namespace {

enum { kCouldNotLook = 2, kUsage = 64, kEnded = 69 };

}  // namespace

int refuse_web(Context& ctx, const Error& e) {
  ctx.refuse(e);
  if (e.code == Errc::USAGE || e.code == Errc::INVALID) return kUsage;
  return e.code == Errc::CANCELLED ? kEnded : kCouldNotLook;
}

Result<session::WebSession> web_session(const std::string& name) {
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  return session::find_web_session(dirs, name);
}

int act_and_print(Context& ctx, const std::string& name, const std::string& act, Json words, bool looking, int64_t timeout_ms) {
  auto session = web_session(name);
  if (!session) return refuse_web(ctx, session.error());
  session::WebAct wanted{.act = act, .words = std::move(words), .timeout_ms = timeout_ms};
  wanted.progress = [&](const std::string& text) { ctx.detail(text); };
  auto answer = looking ? session::look_at_session(*session, wanted) : session::act_in_session(*session, wanted);
  if (!answer) return refuse_web(ctx, answer.error());
  Json out = std::move(answer->document);
  Json lines = out["lines"];
  out.make_object().erase("lines");
  out["schema"] = "h5i.websec-" + act + "/1";
  out["session"] = name;
  ctx.result(out);
  if (!ctx.json)
    for (const Json& line : lines.array()) ctx.line(line.string());
  return answer->code;
}

int websec_ls(Context& ctx, const Parsed&) {
  auto dirs = session::UserDirs::from_environment();
  if (!dirs) return refuse_web(ctx, dirs.error());
  Json list = json::Array{};
  const int64_t now = realtime_ns();
  for (const session::WebSession& s : session::list_web_sessions(*dirs)) {
    const std::string state(session::web_state_name(s.state(now)));
    list.push(json::Object{{"session", s.name}, {"state", state}, {"created", s.manifest["created"]}, {"expires", s.manifest["expires"]}, {"path", s.dir}, {"placement", session::placement_text(s.manifest)}});
    if (!ctx.json) ctx.line(s.name + "  " + state + "  created " + s.manifest["created"].string() + ", ends " + s.manifest["expires"].string() + ", " + session::placement_text(s.manifest));
  }
  if (!ctx.json && list.array().empty()) ctx.line("no web session");
  ctx.result(json::Object{{"schema", "h5i.websec-ls/1"}, {"sessions", list}});
  return 0;
}

int websec_show(Context& ctx, const Parsed& words) {
  return act_and_print(ctx, words.arguments[0], "show", json::Object{{"number", words.arguments[1]}, {"bytes", words.has("--bytes")}}, true);
}

int websec_hist(Context& ctx, const Parsed& words) {
  Json filters = json::Array{};
  for (size_t i = 1; i < words.arguments.size(); i++) filters.push(words.arguments[i]);
  const std::string& name = words.arguments[0];
  auto session = web_session(name);
  if (!session) return refuse_web(ctx, session.error());
  session::WebAct wanted{.act = "hist", .words = json::Object{{"filters", filters}, {"last", words.get("--last")}, {"lines", !ctx.json}}, .timeout_ms = -1};
  wanted.progress = [&](const std::string& text) { ctx.detail(text); };
  Json rows = json::Array{};
  bool cut = false;
  // An answer is one document of limited size; what does not fit into it comes with the next.
  for (bool more = true; more && ctx.output_errno() == 0;) {
    auto answer = session::look_at_session(*session, wanted);
    if (!answer) return refuse_web(ctx, answer.error());
    Json& piece = answer->document;
    cut = cut || piece["cut"].boolean();
    for (Json& row : piece["rows"].make_array()) rows.push(std::move(row));
    if (!ctx.json)
      for (const Json& line : piece["lines"].array()) ctx.line(line.string());
    more = piece["cursor"].is_object();
    if (more && piece["cursor"] == wanted.words["cursor"]) return refuse_web(ctx, make_error(Errc::PLUGIN_PROTOCOL, "the engine gave the same piece of a history twice"));
    wanted.words["cursor"] = piece["cursor"];
  }
  ctx.result(json::Object{{"schema", "h5i.websec-hist/1"}, {"session", name}, {"rows", std::move(rows)}, {"cut", cut}, {"placement", session::placement_text(session->manifest)}});
  if (cut) ctx.note("there are more before these: --last N or --last all shows them");
  return 0;
}

int websec_scope(Context& ctx, const Parsed& words) {
  Json asked = json::Object{};
  if (words.arguments.size() > 1) asked["url"] = words.arguments[1];
  return act_and_print(ctx, words.arguments[0], "scope", std::move(asked), true);
}

int websec_jar(Context& ctx, const Parsed& words) {
  Json asked = json::Object{{"clear", words.has("--clear")}};
  if (words.has("--as")) asked["as"] = words.get("--as");
  return act_and_print(ctx, words.arguments[0], "jar", std::move(asked), !words.has("--clear"));
}

int websec_close(Context& ctx, const Parsed& words) {
  auto session = web_session(words.arguments[0]);
  auto closed = session ? session::close_web_session(*session) : Result<bool>(session.error());
  if (!closed) return refuse_web(ctx, closed.error());
  ctx.result(json::Object{{"schema", "h5i.websec-close/1"}, {"session", session->name}, {"closed", session->manifest["closed"]}, {"changed", *closed}, {"placement", session::placement_text(session->manifest)}});
  if (!ctx.json) ctx.line(session->name + (*closed ? " is closed; its log is " : " was closed already; its log is ") + session->log() + "; " + session::placement_text(session->manifest));
  return 0;
}

}  // namespace h5i::cli
