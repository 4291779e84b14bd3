// Words of the verbs of web sessions that more than one of them takes.
#pragma once
#include "core/cli/command.hpp"
#include "core/session/web_session.hpp"

namespace h5i::cli {

constexpr size_t kMostWebBytes = 4u << 20;  // of a file that goes to the engine in a document
constexpr int64_t kWebPatienceMs = 60'000;  // for names that are looked up, and a busy machine
constexpr int64_t kMostFollow = 20, kMostSeconds = 3600;

// USAGE when it is no number from `least` to `most`; `fallback` when it is not given.
Result<int64_t> number_word(const Parsed& words, const char* option, int64_t fallback, int64_t least, int64_t most, const std::string& verb);
Result<std::string> hex_of_file(const std::string& path);
// A list of {"text"} and, of an edit that names a file, its bytes in "file_hex".
Result<Json> edit_words(const std::vector<std::string>& edits);
Result<Json> utf8_list(const std::vector<std::string>& words, const char* what);
// The values of these identities' secrets, from this process's environment: {NAME: value}. NOT_FOUND names the first that is unset; no other variable
// is looked at. Names of no identity are left to the engine.
Result<Json> secrets_of(const session::WebSession& session, const std::vector<std::string>& identities);

}  // namespace h5i::cli
