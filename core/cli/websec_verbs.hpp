// What the verbs of web sessions share. Each answers with the engine's document: its "lines" are for people, the rest for programs.
#pragma once
#include "core/cli/command.hpp"
#include "core/session/web_session.hpp"

namespace h5i::cli {

// The refusal, and the status of this noun for it: 64 usage, 69 when the session has ended, 2 when it could not be looked at.
int refuse_web(Context& ctx, const Error& e);
Result<session::WebSession> web_session(const std::string& name);
// Runs the act and prints its answer. `looking`: it sends nothing, and goes on after the session's end.
int act_and_print(Context& ctx, const std::string& session, const std::string& act, Json words, bool looking, int64_t timeout_ms = -1);

int websec_open(Context& ctx, const Parsed& words);
int websec_ls(Context& ctx, const Parsed& words);
int websec_send(Context& ctx, const Parsed& words);
int websec_show(Context& ctx, const Parsed& words);
int websec_hist(Context& ctx, const Parsed& words);
int websec_scope(Context& ctx, const Parsed& words);
int websec_jar(Context& ctx, const Parsed& words);
int websec_finding(Context& ctx, const Parsed& words);
int websec_import(Context& ctx, const Parsed& words);
int websec_export(Context& ctx, const Parsed& words);
int websec_close(Context& ctx, const Parsed& words);
int websec_diff(Context& ctx, const Parsed& words);
int websec_match(Context& ctx, const Parsed& words);
int websec_experiment(Context& ctx, const Parsed& words);
int websec_sequence(Context& ctx, const Parsed& words);
int websec_replay(Context& ctx, const Parsed& words);
int websec_ident(Context& ctx, const Parsed& words);

}  // namespace h5i::cli
