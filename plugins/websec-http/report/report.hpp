// Findings of a session as a document for people. What an origin wrote is text in it and nothing else: no link, no image, no markup, no script.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::websec {

struct CitedSend {
  uint64_t number = 0;
  std::string time, method, url, peer, ended, identity;
  int status = 0;  // 0: none came
  std::string request_head_sha256, request_body_sha256, response_head_sha256, response_body_sha256;  // empty: unknown
  std::optional<std::string> request_head, response_head;  // kept ones, masked
};

struct Withdrawal {
  uint64_t number = 0;
  std::string time, reason;
};

struct Finding {
  uint64_t number = 0;  // of its line in the log
  std::string time, title, severity, note;
  std::vector<uint64_t> cites;
  std::optional<Withdrawal> withdrawn;
};

struct Report {
  std::string session, id, created, engine, scope;
  std::string log;          // its id
  uint64_t records = 0;     // how many there were
  std::string head_sha256;  // of the last of them
  std::vector<Finding> findings;
  std::vector<CitedSend> sends;  // each cited one once, by number
};

// 0 "info" ... 3 "high"; -1: no severity.
int severity_rank(std::string_view severity);

std::string report_markdown(const Report& report);
std::string report_html(const Report& report);

// One field in Markdown: a code span whose fence no text ends.
std::string code_span(std::string_view text);
// Words of the tester's in Markdown: each mark of punctuation loses its meaning.
std::string markdown_words(std::string_view text);

}  // namespace h5i::websec
