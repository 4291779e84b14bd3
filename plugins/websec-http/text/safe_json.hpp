// JSON that is safe to print: the same document to a parser, plain to a terminal.
#pragma once
#include <string>
#include <string_view>

namespace h5i::websec {

// A document with every deceptive character as \uXXXX. They stand only inside strings, so nothing else changes; what is not UTF-8
// becomes U+FFFD. Breaks between tokens of an indented document stay.
std::string safe_json(std::string_view document);

// Bytes as one JSON string. *lossy: they were not UTF-8, so whoever needs them exactly gives them in another form beside it.
std::string json_quoted(std::string_view raw, bool* lossy = nullptr);

}  // namespace h5i::websec
