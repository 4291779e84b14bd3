// The documents that a session's sends can be written as. Each is made of a beginning, one piece for each send and an end, so that no more than one
// send is held. The same sends give the same bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/export/exchange.hpp"

namespace h5i::websec {

enum class ExportFormat { HAR, JSONL, WARC, CURL };
std::optional<ExportFormat> export_format(std::string_view name);  // "har", "jsonl", "warc", "curl"
std::string_view name_of(ExportFormat format);
// Of these a refusal is a row too: it says that it was not sent. In the others it would look like a send, and is left out.
bool tells_refusals(ExportFormat format);

struct ExportSource {
  std::string session, id;  // name and id of the session
  std::string engine;       // its version
  std::string created;      // of the session, RFC 3339
};

std::string export_begin(ExportFormat format, const ExportSource& source);
// `first`: no send came before it in this document.
std::string export_piece(ExportFormat format, const ExportSource& source, const ExportedSend& exchange, const ExportRules& rules, bool first);
std::string export_end(ExportFormat format);

// The pieces by themselves.
std::string har_entry(const ExportedSend& exchange, const ExportRules& rules);         // one object of log.entries (HAR 1.2)
std::string json_line(const ExportedSend& exchange);                                   // h5i.websec-line/1, without a line break
std::string warc_records(const ExportSource& source, const ExportedSend& exchange, const ExportRules& rules);  // WARC 1.1
std::string curl_command(const ExportedSend& exchange, const ExportRules& rules);      // lines for bash, zsh or ksh
std::string shell_quoted(std::string_view bytes);                                  // one word; bytes without NUL

}  // namespace h5i::websec
