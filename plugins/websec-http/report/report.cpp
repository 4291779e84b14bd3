#include "plugins/websec-http/report/report.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMostField = 4096;       // of what an origin wrote in one field
constexpr size_t kMostHead = 16 << 10;    // of a head
constexpr size_t kMostWords = 256 << 10;  // of what the tester wrote
constexpr const char* kSeverities[] = {"info", "low", "medium", "high"};

std::string shown(std::string_view raw, size_t cap, bool lines = false, bool html = false) {
  Shown s = show(raw, {.lines = lines, .html = html, .cap = cap});
  return s.cut ? s.text + (lines ? "\n..." : "...") : s.text;
}

std::string escaped(std::string_view raw, size_t cap = kMostField) { return shown(raw, cap, false, true); }

// The longest run of backticks.
size_t longest_run(std::string_view text) {
  size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

std::string code_block(std::string_view text) {
  const std::string fence(std::max<size_t>(3, longest_run(text) + 1), '`');
  std::string out = fence + "text\n" + std::string(text);
  if (!out.ends_with('\n')) out += '\n';
  return out + fence + "\n";
}

std::vector<const Finding*> ordered(const Report& report, bool withdrawn) {
  std::vector<const Finding*> out;
  for (const Finding& f : report.findings)
    if (f.withdrawn.has_value() == withdrawn) out.push_back(&f);
  std::stable_sort(out.begin(), out.end(), [](const Finding* a, const Finding* b) { return severity_rank(a->severity) > severity_rank(b->severity); });
  return out;
}

const CitedSend* send_of(const Report& report, uint64_t number) {
  auto at = std::lower_bound(report.sends.begin(), report.sends.end(), number, [](const CitedSend& s, uint64_t n) { return s.number < n; });
  return at == report.sends.end() || at->number != number ? nullptr : &*at;
}

std::string answer_of(const CitedSend& s) {
  if (s.status == 0) return "no answer (" + s.ended + ")";
  return std::to_string(s.status) + (s.ended == "complete" ? "" : " (" + s.ended + ")");
}

// What stands beside a send, name and value.
std::vector<std::pair<const char*, std::string>> facts_of(const CitedSend& s) {
  std::vector<std::pair<const char*, std::string>> out = {{"time", s.time}, {"address", s.peer}, {"answer", answer_of(s)}};
  if (!s.identity.empty()) out.emplace_back("identity", s.identity);
  for (const auto& [name, digest] : {std::pair<const char*, const std::string&>{"SHA-256 of the request's head", s.request_head_sha256}, {"of the request's body", s.request_body_sha256}, {"of the answer's head", s.response_head_sha256}, {"of the answer's body as it came", s.response_body_sha256}})
    if (!digest.empty()) out.emplace_back(name, digest);
  return out;
}

std::string verify_text(const Report& r) {
  return "h5i log verify " + r.session + "\nhead -n " + std::to_string(r.records) + " log.jsonl | tail -n 1 | tr -d '\\n' | sha256sum";
}

constexpr std::string_view kStyle =
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}code,pre{font-family:monospace;background:#f2f2f2;overflow-wrap:anywhere}pre{white-space:pre-wrap;padding:.5rem}"
    "dt{font-weight:bold}.note{white-space:pre-wrap}";

std::string style_digest() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(kStyle.data(), kStyle.size(), digest, &size, EVP_sha256(), nullptr);
  std::string out(size / 3 * 4 + 5, '\0');
  out.resize(static_cast<size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), digest, static_cast<int>(size))));
  return out;
}

}  // namespace

int severity_rank(std::string_view severity) {
  for (int i = 0; i < 4; i++)
    if (severity == kSeverities[i]) return i;
  return -1;
}

std::string code_span(std::string_view text) {
  std::string safe = shown(text, kMostField);
  if (safe.empty()) return "(empty)";
  const std::string fence(longest_run(safe) + 1, '`');
  return fence + " " + safe + " " + fence;
}

std::string markdown_words(std::string_view text) {
  std::string out;
  bool begins = true;
  for (char c : shown(text, kMostWords)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (c == ' ' && begins) continue;  // four of them begin a block of code
    if (!letter && c > 0x20 && c < 0x7f) out += '\\';
    out += c;
    begins = false;
  }
  return out;
}

std::string report_markdown(const Report& r) {
  std::string out = "# Findings of the web session " + markdown_words(r.session) + "\n\n";
  out += "- session: " + code_span(r.id) + ", opened " + code_span(r.created) + "\n- engine: " + code_span(r.engine) + "\n- log: " + code_span(r.log) + ", " + std::to_string(r.records) + " records, the last with SHA-256 " + code_span(r.head_sha256) +
         "\n- what is cited is the engine's own word (engine-claimed)\n\nTo verify, with the session's log:\n\n" + code_block(verify_text(r)) + "\nScope:\n\n" + code_block(shown(r.scope, kMostWords, true));
  const auto open = ordered(r, false), gone = ordered(r, true);
  if (open.empty()) out += "\nNo finding.\n";
  for (const Finding* f : open) {
    out += "\n## " + markdown_words(f->severity) + ": " + markdown_words(f->title) + "\n\nRecord " + std::to_string(f->number) + ", " + code_span(f->time) + "\n";
    if (!f->note.empty()) {
      out += "\n";
      for (size_t at = 0; at <= f->note.size();) {
        size_t end = std::min(f->note.find('\n', at), f->note.size());
        out += "> " + markdown_words(std::string_view(f->note).substr(at, end - at)) + "\n";
        at = end + 1;
      }
    }
    for (uint64_t number : f->cites) {
      const CitedSend* s = send_of(r, number);
      if (!s) continue;
      out += "\n### Record " + std::to_string(number) + "\n\n- request: " + code_span(s->method + " " + s->url) + "\n";
      for (const auto& [name, value] : facts_of(*s)) out += std::string("- ") + name + ": " + code_span(value) + "\n";
      for (const auto* head : {&s->request_head, &s->response_head})
        if (*head) out += "\n" + code_block(shown(**head, kMostHead, true));
    }
  }
  if (!gone.empty()) out += "\n## Withdrawn\n\n";
  for (const Finding* f : gone)
    out += "- record " + std::to_string(f->number) + ": " + markdown_words(f->title) + " (" + markdown_words(f->severity) + "), withdrawn by record " + std::to_string(f->withdrawn->number) + ": " + markdown_words(f->withdrawn->reason) + "\n";
  return out;
}

std::string report_html(const Report& r) {
  auto row = [](const std::string& name, const std::string& value) { return "<dt>" + name + "</dt><dd><code>" + escaped(value) + "</code></dd>\n"; };
  auto block = [](std::string_view text, size_t cap) { return "<pre>" + shown(text, cap, true, true) + "</pre>\n"; };
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-" + style_digest() +
                    "'; base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>Findings of " + escaped(r.session) + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n";
  out += "<h1>Findings of the web session " + escaped(r.session) + "</h1>\n<dl>\n" + row("session", r.id) + row("opened", r.created) + row("engine", r.engine) + row("log", r.log) + row("records", std::to_string(r.records)) +
         row("SHA-256 of the last", r.head_sha256) + "</dl>\n<p>What is cited is the engine's own word (engine-claimed). To verify, with the session's log:</p>\n" + block(verify_text(r), kMostWords) + "<p>Scope:</p>\n" + block(r.scope, kMostWords);
  const auto open = ordered(r, false), gone = ordered(r, true);
  if (open.empty()) out += "<p>No finding.</p>\n";
  for (const Finding* f : open) {
    out += "<section>\n<h2>" + escaped(f->severity) + ": " + escaped(f->title, kMostWords) + "</h2>\n<p>Record " + std::to_string(f->number) + ", " + escaped(f->time) + "</p>\n";
    if (!f->note.empty()) out += "<p class=\"note\">" + shown(f->note, kMostWords, true, true) + "</p>\n";
    for (uint64_t number : f->cites) {
      const CitedSend* s = send_of(r, number);
      if (!s) continue;
      out += "<h3>Record " + std::to_string(number) + "</h3>\n<dl>\n" + row("request", s->method + " " + s->url);
      for (const auto& [name, value] : facts_of(*s)) out += row(name, value);
      out += "</dl>\n";
      for (const auto* head : {&s->request_head, &s->response_head})
        if (*head) out += block(**head, kMostHead);
    }
    out += "</section>\n";
  }
  if (!gone.empty()) {
    out += "<h2>Withdrawn</h2>\n<ul>\n";
    for (const Finding* f : gone)
      out += "<li>record " + std::to_string(f->number) + ": " + escaped(f->title, kMostWords) + " (" + escaped(f->severity) + "), withdrawn by record " + std::to_string(f->withdrawn->number) + ": " + escaped(f->withdrawn->reason, kMostWords) + "</li>\n";
    out += "</ul>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace h5i::websec
