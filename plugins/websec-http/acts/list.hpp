// The acts, one declaration each; acts.cpp has their names.
#pragma once
#include "h5i/plugin.hpp"
#include "plugins/websec-http/engine/box.hpp"
#include "plugins/websec-http/engine/history.hpp"
#include "plugins/websec-http/engine/send.hpp"
#include "plugins/websec-http/scope/scope.hpp"

namespace h5i::websec {

using Answer = sdk::Websec::Answer;

sdk::Result<Answer> read_scope(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> scope_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> send_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> hist(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> show_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> export_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> export_note(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> candidates_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> import_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> finding_add(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> finding_list(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> finding_report(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> finding_withdraw(const sdk::Host& host, const json::Value& session, const json::Value& words);

sdk::Result<Answer> jar_act(const sdk::Host& host, const json::Value& session, const json::Value& words);

// What the sends of one act have in common: scope, recorder, connections, the jar of the identity that words["as"] names;
// words["reuse"]: connections serve more than one send.
struct Tools {
  Tools(const sdk::Host& host, Scope s, TlsContext::Options trust, bool reuse, Placement p)
      : placement(std::move(p)), recorder(host, placement.text), scope(std::move(s)), transport(host, std::move(trust), reuse) {}
  Placement placement;
  Recorder recorder;
  Scope scope;
  Transport transport;
  std::unique_ptr<CookieStore> cookies;  // none: the words ask for none
  std::unique_ptr<Box> box;              // that the wire is in; none: it is here
};
sdk::Result<std::unique_ptr<Tools>> tools_of(const sdk::Host& host, const json::Value& session, const json::Value& words);
// follow, timeout_s, lenient, max_bytes, as; capture and the session's end from its facts. It borrows from the tools.
SendOptions options_of(const json::Value& session, const json::Value& words, Tools& tools);

// What they share.
sdk::Result<Scope> scope_of(const json::Value& session);
sdk::Result<std::string> unhex(const std::string& digits);
void add_lines(const std::string& text, json::Value& lines);     // each line of a text
std::string line_of(const Row& row);                             // of a send that was just made
// Of one in the log. `session`: says of the sends of an act that is at work that they are under way.
std::string line_of(const PastSend& sent, const json::Value& session = {});
json::Value json_of(const PastSend& sent, const json::Value& session = {});
// What the box said and may not, for the core; nothing where there is none.
void add_forged(const Tools& tools, json::Value& document);
// What the session has used up of its budget; nothing where there is none.
void add_budget(const Tools& tools, json::Value& document);
// Rows and lines of sends that were just made, as `send` answers with them.
void add_rows(Sends sends, json::Value& rows, json::Value& lines);

sdk::Result<Answer> replay_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> diff_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> match_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> experiment_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> sequence_act(const sdk::Host& host, const json::Value& session, const json::Value& words);
sdk::Result<Answer> ident_act(const sdk::Host& host, const json::Value& session, const json::Value& words);

// Edits as words of an act: each {"text"} with the bytes of its file, when it names one, in "file_hex".
sdk::Status apply_words(Request& request, const json::Value& edits);
// For tools_of() and options_of(), of an act that says something again: the jar is that of the identity, and of nobody else none, since the bytes
// that are said again have their cookies.
json::Value words_of_sender(const json::Value& words);

}  // namespace h5i::websec
