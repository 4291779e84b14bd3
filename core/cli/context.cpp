// The only ways to print: text goes through the sanitizer, JSON is escaped so that it moves no cursor either.
#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "core/base/text.hpp"
#include "core/cli/command.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kRefusalLine = 4096;  // a hostile name cannot flood the terminal

bool write_all(int fd, std::string_view bytes, int* error) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      // Somebody who shares the descriptor made it non-blocking; a full pipe is still only a slow reader.
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    if (n < 0) {
      *error = errno;
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void append_escape(std::string& out, uint32_t code) {
  char buffer[16];
  if (code > 0xFFFF) {
    code -= 0x10000;
    snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
  } else {
    snprintf(buffer, sizeof buffer, "\\u%04x", code);
  }
  out += buffer;
}

// JSON text that is safe on a terminal and still the same value: what the sanitizer would replace is written as an
// escape. Bytes that are not UTF-8 are spelled \xNN, as in the log, because JSON cannot carry them.
std::string json_for_output(const Json& v) {
  std::string raw = json::canonical(v), out;
  out.reserve(raw.size() + 1);
  for (size_t i = 0; i < raw.size();) {
    auto c = static_cast<unsigned char>(raw[i]);
    if (c < 0x7F) {
      out += raw[i++];
      continue;
    }
    int n = json::detail::utf8_len(raw, i);
    if (n == 0) {
      char spelled[8];
      snprintf(spelled, sizeof spelled, "\\\\x%02x", c);
      out += spelled;
      i++;
      continue;
    }
    std::string_view character(raw.data() + i, static_cast<size_t>(n));
    if (printable(character) == character) {
      out += character;
    } else {
      uint32_t code = n == 1 ? c : n == 2 ? c & 0x1F : n == 3 ? c & 0x0F : c & 0x07;
      for (int k = 1; k < n; k++) code = code << 6 | (static_cast<unsigned char>(character[static_cast<size_t>(k)]) & 0x3F);
      append_escape(out, code);
    }
    i += static_cast<size_t>(n);
  }
  return out;
}

void to_stderr(const std::string& text) {
  int ignored = 0;  // nowhere is left to complain
  write_all(STDERR_FILENO, text, &ignored);
}

}  // namespace

void Context::write_out(const std::string& bytes) {
  printed_ = true;
  if (output_errno_ != 0) return;
  write_all(STDOUT_FILENO, bytes, &output_errno_);
}

void Context::line(const std::string& text) { write_out(printable(text) + "\n"); }

void Context::block(const std::string& text) {
  std::string out = printable(text, {.newlines = true});
  if (out.empty() || out.back() != '\n') out += '\n';
  write_out(out);
}

void Context::raw(const std::string& bytes) { write_out(bytes); }

void Context::result(const Json& object) {
  if (json) write_out(json_for_output(object) + "\n");
}

void Context::note(const std::string& text) {
  if (!quiet) to_stderr(printable(text, {.newlines = true}) + "\n");
}

void Context::detail(const std::string& text) {
  if (verbose) to_stderr(printable(text, {.newlines = true}) + "\n");
}

int Context::refuse(const Error& e) {
  std::string evidence = e.evidence;
  if (e.sys_errno != 0 && evidence.find(strerror(e.sys_errno)) == std::string::npos)
    evidence += (evidence.empty() ? "" : ": ") + std::string(strerror(e.sys_errno));
  if (evidence.empty()) evidence = "nothing more is known";
  if (json) {
    Json body = json::Object{{"id", e.id()},
                             {"code", static_cast<int>(e.code)},
                             {"what", e.what},
                             {"evidence", evidence},
                             {"next", e.remedy()}};
    if (e.sys_errno != 0) body["errno"] = e.sys_errno;
    result(json::Object{{"error", body}});
  } else {
    TextRules rules{.limit = kRefusalLine};
    bool refused = errc_class(e.code) == ExitClass::REFUSED;
    to_stderr(std::string(refused ? "refused: " : "failed: ") + printable(e.what, rules) + " [" + std::string(e.id()) + "]\n" +
              "  because: " + printable(evidence, rules) + "\n" + "  see: " + printable(e.remedy(), rules) + "\n");
  }
  // What is not installed is told apart from what is refused by number too, whatever the verb (docs/MANUAL.md).
  if (e.code == Errc::TIER_NOT_INSTALLED) return 125;
  return errc_class(e.code) == ExitClass::USAGE ? 2 : 1;
}

}  // namespace h5i::cli
