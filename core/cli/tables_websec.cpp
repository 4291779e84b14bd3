// The verbs of web sessions.
#include "core/cli/tables.hpp"

namespace h5i::cli {

std::vector<Command> websec_table() {
  const std::string program = "h5i-websec";
  std::vector<Command> table = {
      {.noun = "websec",
       .verb = "open",
       .usage = "websec open SESSION --scope RULE [options]",
       .summary = "Begin a web session: its scope, its log, and how long it lasts.",
       .description = "A rule is an origin (https://app.test:8443), a host (app.test, its default port over https) or *.app.test for the names below "
                      "it, each with a path where only a part of it is meant. What no rule names is not contacted, by no verb and behind no redirect. "
                      "A denial wins over every rule.",
       .options = {{"--scope", "RULE", "what may be contacted", true},
                   {"--deny", "RULE", "what may not, although a rule of the scope names it", true},
                   {"--for", "TIME", "how long it lasts: 30m, 8h (when nothing is given), 168h"},
                   {"--ca", "FILE", "certificates (PEM) that TLS trusts beside the system's"},
                   {"--capture", "", "keep whole messages, readable by this user alone"}},
       .min_args = 1,
       .max_args = 1},
      {.noun = "websec",
       .verb = "ls",
       .usage = "websec ls [options]",
       .summary = "List this user's web sessions."},
      {.noun = "websec",
       .verb = "send",
       .usage = "websec send SESSION URL [options]",
       .summary = "Send one request, after it was recorded, and say what came of it.",
       .description = "The log names the request before a byte of it leaves; without a log nothing is sent. Headers go out as they are given, in their "
                      "order and spelling; Host and Content-Length are computed where none is given, and shown as computed. Nothing is tried a second "
                      "time. Exits 0 when an answer came, 1 when it was refused by the scope or answered badly, 2 when nothing could be seen, 69 when the "
                      "session has ended.",
       .options = {{"--method", "METHOD", "GET when there is no body, else POST", false, 'X'},
                   {"--header", "LINE", "a header line, \"Name: value\", as it is to be sent", true, 'H'},
                   {"--data", "TEXT", "the body"},
                   {"--data-file", "FILE", "the body, from a file"},
                   {"--raw", "FILE", "exactly these bytes instead of a request that h5i writes"},
                   {"--follow", "N", "follow at most N redirects (at most 20), each a send of its own"},
                   {"--lenient", "", "weaker: read an answer that is not what HTTP says"},
                   {"--as", "IDENT", "with this identity's jar of cookies; without it, the session's own"},
                   {"--no-cookies", "", "neither send cookies of a jar nor keep any"},
                   {"--proxy", "URL", "through this HTTP proxy, by CONNECT; the scope needs a rule for it too"},
                   {"--proxy-header", "LINE", "a header line for the proxy alone", true},
                   {"--document", "URL", "as a script of this document would send it: Origin, preflight, SameSite; without it, as the tester, whom CORS does not bind"},
                   {"--credentials", "", "with --document: cookies go to other origins too"},
                   {"--http2", "", "speak HTTP/2: over TLS when the server agrees to it, otherwise not at all; over plain connections at once"},
                   {"--insecure", "", "weaker: whoever answers is spoken to, whatever the certificate says"},
                   {"--max-bytes", "N", "of each answer, on the wire and decoded; 67108864 when nothing is given"},
                   {"--message", "TEXT", "send this over a WebSocket (ws: and wss: URLs), in the order given", true},
                   {"--listen", "SECONDS", "how long to listen to a WebSocket (2 when nothing is given) or to a stream of events"},
                   {"--timeout", "SECONDS", "for each send, 30 when nothing is given"}},
       .min_args = 2,
       .max_args = 2},
      {.noun = "websec",
       .verb = "show",
       .usage = "websec show SESSION NUMBER [options]",
       .summary = "Show one send of the log: what was sent, when, and how it ended.",
       .options = {{"--bytes", "", "the messages too, when the session keeps them; credentials are masked"}},
       .min_args = 2,
       .max_args = 2},
      {.noun = "websec",
       .verb = "hist",
       .usage = "websec hist SESSION [FILTER...] [options]",
       .summary = "List the sends of a session, one line each, with its refusals.",
       .description = "Filters, all of which must hold: host:TEXT, path:TEXT, method:TEXT, status:404 or status:4xx, refused:yes, size>N, time>MS, seq:N.",
       .options = {{"--last", "N", "only the last N"}},
       .min_args = 1,
       .max_args = -1},
      {.noun = "websec",
       .verb = "scope",
       .usage = "websec scope SESSION [URL] [options]",
       .summary = "Show a session's scope, or what it says about one URL and why.",
       .min_args = 1,
       .max_args = 2},
      {.noun = "websec",
       .verb = "jar",
       .usage = "websec jar SESSION [options]",
       .summary = "List the cookies that a session keeps, without their values.",
       .options = {{"--as", "IDENT", "of this identity; without it, the session's own"}, {"--clear", "", "throw them away"}},
       .min_args = 1,
       .max_args = 1},
      {.noun = "websec",
       .verb = "export",
       .usage = "websec export SESSION --format FORMAT [FILTER...] [options]",
       .summary = "Write the sends of a session as a document for other programs.",
       .description = "Formats: har (HAR 1.2), jsonl (one send or refusal a line), warc (WARC 1.1), curl (commands for bash, zsh or ksh). Filters are those of hist. "
                      "Without --out the document goes to standard output. Messages are in it only when the session keeps them (open --capture). Values of "
                      "credential headers and of cookies are numbers of bytes, in a curl command variables of the shell; a body is whole. Refusals were not "
                      "sent: only jsonl has them.",
       .options = {{"--format", "FORMAT", "har, jsonl, warc or curl"},
                   {"--out", "FILE", "a new file, readable by this user alone"},
                   {"--force", "", "replace FILE when it is there"},
                   {"--with-credentials", "", "weaker: values of credential headers and cookies too; a line of the session's log says so"}},
       .min_args = 1,
       .max_args = -1},
      {.noun = "websec",
       .verb = "close",
       .usage = "websec close SESSION [options]",
       .summary = "End a session: nothing more is sent in it. Its log stays.",
       .min_args = 1,
       .max_args = 1},
      {.noun = "websec",
       .verb = "replay",
       .usage = "websec replay SESSION NUMBER [EDIT...] [options] [-- EDIT...]",
       .summary = "Say a send of the log again, as it was or edited, and show what was changed.",
       .description = "Edits: path=/x, query.NAME=V, header.NAME=V, cookie.NAME=V, json.$.a.b=V, form.NAME=V, multipart.NAME=V, body=TEXT or body=@FILE; + in front adds one "
                      "more, - takes it out (behind --, so that it is no option). They are applied in their order, and the framing is computed anew. The origin stays. "
                      "The exact bytes are known when the session keeps messages (open --capture), or when they can be rebuilt and have the digest of the send's line; "
                      "otherwise it is refused. Each send has a line of its own that says what it replays.",
       .options = {{"--as", "IDENTITY", "as somebody of the session's identities, or as none: what said who asks is dropped, and named"},
                   {"--race", "N", "N at once (at most 20): the last byte of each is held until all are ready"},
                   {"--repeat", "N", "N one after another (at most 1000), with the median and the spread of their times"},
                   {"--rate", "RATE", "with --repeat: at most so many in any window, as 20/s, 100/min or 0.5/s"},
                   {"--raw", "FILE", "exactly these bytes, to the same origin"},
                   {"--follow", "N", "follow at most N redirects (at most 20), each a send of its own"},
                   {"--lenient", "", "weaker: read an answer that is not what HTTP says"},
                   {"--insecure", "", "weaker: whoever answers is spoken to, whatever the certificate says"},
                   {"--timeout", "SECONDS", "for each send, 30 when nothing is given"}},
       .min_args = 2,
       .max_args = -1,
       .rest = true},
      {.noun = "websec",
       .verb = "experiment",
       .usage = "websec experiment SESSION [NUMBER EDIT...] [options] [-- EDIT...]",
       .summary = "Send one request once for each input of a list, or requests under each of several identities.",
       .description = "NUMBER is a send of the log; an edit with {{input}} in its value is where an input goes, one a line of --inputs FILE: inputs are the user's, none is made up. The plan is a "
                      "line of the log before its first send, and each send's line names it and its input. It stops at 1000 sends, hops counted; at --max-errors; when the target asks for less "
                      "(429, or Retry-After), and then nothing is sent again; and says exactly what is left. --resume goes on: what has a line is not sent again, also when nobody saw how it "
                      "ended. With --matrix it replays each of these sends under each identity of --as, and shows what differs. Exits 0 when all is complete, 1 when something is left.",
       .options = {{"--inputs", "FILE", "one input a line"},
                   {"--plan", "FILE", "a plan as a file (JSON, h5i.websec-plan/1): request or replay, edits, inputs and these options"},
                   {"--resume", "NAME", "go on with an experiment of this session"},
                   {"--name", "NAME", "its name: e1, e2, ... when nothing is given"},
                   {"--rate", "RATE", "at most so many sends in any window, over all threads and targets: 20/s, 100/min, 0.5/s"},
                   {"--parallel", "N", "N at once (at most 32), 1 when nothing is given"},
                   {"--max-errors", "N", "stop at N inputs that no answer came for, or a bad one"},
                   {"--stop-on", "FACT", "uniform: stop when 30 answers in a row cannot be told apart"},
                   {"--matrix", "N,N", "these sends, under each identity of --as"},
                   {"--as", "IDENTITY,...", "as somebody of the session's identities; none is nobody"},
                   {"--follow", "N", "follow at most N redirects (at most 20), each a send of its own"},
                   {"--lenient", "", "weaker: read an answer that is not what HTTP says"},
                   {"--insecure", "", "weaker: whoever answers is spoken to, whatever the certificate says"},
                   {"--timeout", "SECONDS", "for each send, 30 when nothing is given"}},
       .min_args = 1,
       .max_args = -1,
       .rest = true},
      {.noun = "websec",
       .verb = "sequence",
       .usage = "websec sequence SESSION --plan FILE [options]",
       .summary = "Send requests in an order, where what one is answered is put into a later one.",
       .description = "The file (JSON, h5i.websec-sequence-plan/1) has steps: a request or the number of a send, edits, what is taken from its answer (by a JSON path, a pattern or a header's name) and what the "
                      "answer must be. \"{{NAME}}\" in a later edit's value is what was taken. It is a secret unless the file says otherwise: by name only in the log. The session must keep messages. Exits 0 when "
                      "all steps held, 1 when it ended before.",
       .options = {{"--plan", "FILE", "the sequence"}},
       .min_args = 1,
       .max_args = 1},
      {.noun = "websec",
       .verb = "diff",
       .usage = "websec diff SESSION A B [options]",
       .summary = "Compare two sends of the log, field by field, and their bodies line by line when they are kept.",
       .description = "Exits 0 when the answers are the same: how they ended, status, headers and body. What was asked, when, and how long it took is shown and does not count.",
       .min_args = 3,
       .max_args = 3},
      {.noun = "websec",
       .verb = "match",
       .usage = "websec match SESSION NUMBER PATTERN... [options]",
       .summary = "Ask whether a send's answer is so: status, size, time, headers, and patterns on what is kept.",
       .description = "All must hold: status:404 or status:4xx, ended:complete, type:TEXT, size:N size>N size<N, time>MS time<MS, header.NAME (it is there), header.NAME~RE, head~RE, body~RE; "
                      "! in front negates. RE is a regular expression as RE2 has it, on bytes; the body is looked at without its content codings. Exits 0 when all hold, 1 when one does not, 2 when "
                      "what was asked for was not kept.",
       .min_args = 3,
       .max_args = -1},
      {.noun = "websec",
       .verb = "ident",
       .usage = "websec ident SESSION add|list|remove [NAME] [options]",
       .summary = "The identities of a session: who may be asked as, by header lines whose values are names of secrets.",
       .description = "A header that may hold a key names an environment variable: 'Authorization: Bearer $TOKEN', in single quotes. Its value is read from the environment of "
                      "each command that is run --as that identity, placed when it is sent, and in no line of the log; \"$$\" is a dollar. The name none is nobody: what says who "
                      "asks is dropped.",
       .options = {{"--header", "LINE", "with add: a header line of this identity", true, 'H'}},
       .min_args = 2,
       .max_args = 3},
  };
  for (Command& c : table) {
    c.executable = program;
    c.usage_status = 64;
    c.lost_status = 2;
    if (c.options.empty() && c.usage.find("[options]") == std::string::npos) c.usage += " [options]";
  }
  return table;
}

}  // namespace h5i::cli
