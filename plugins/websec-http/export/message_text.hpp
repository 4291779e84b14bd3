// Heads of messages as text: which header values are masked, and how bytes become text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/export/exchange.hpp"

namespace h5i::websec {

// Set-Cookie, and what `rules` calls a credential; never with rules.with_credentials.
bool is_masked(std::string_view header_name, const ExportRules& rules);

// "[18 bytes]".
std::string mask_of(size_t bytes);

// A head with the masked values as numbers of bytes. A bare CR ends a line here as well, and a line that begins with a blank goes on with the one
// before. `names`: the masked headers, each once, as written.
std::string masked_head(std::string_view head, const ExportRules& rules, std::vector<std::string>* names = nullptr);

struct HeaderText {
  std::string name, value;  // bytes as received; a folded value on one line
};
// Behind the first line; a line without a colon is a name without a value.
std::vector<HeaderText> header_texts(std::string_view head);
std::string_view first_line(std::string_view head);

bool same_name(std::string_view a, std::string_view b);  // without regard to case
bool is_utf8(std::string_view bytes);
// UTF-8 as it is; other bytes each as the character of that number, which is how browsers hand out header values.
std::string to_text(std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace h5i::websec
