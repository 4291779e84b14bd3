// Terminal-safe text: everything printed for a person passes here (invariant I7).
#pragma once
#include <string>
#include <string_view>

namespace h5i {

struct TextRules {
  bool newlines = false;  // keep \n and \t; otherwise they are shown as \n, \t
  bool colour = false;    // keep SGR sequences (ESC [ digits ; m) but "conceal", and nothing else that begins with ESC
  size_t limit = 0;       // bytes of output after which "…" ends it; 0: no limit
};

// C0, C1 and DEL controls, invalid UTF-8, bidirectional controls, zero-width and tag characters are replaced by a
// visible spelling (\x1b, \u{202e}); what is left is valid UTF-8 that moves no cursor and hides nothing.
std::string printable(std::string_view raw, const TextRules& rules = {});

// Streaming form for output that arrives in chunks: a sequence or character cut by a chunk's edge is held back. At the end
// colours are reset, so that what follows is not shown in them.
class TextFilter {
 public:
  explicit TextFilter(TextRules rules) : rules_(rules) {}
  std::string feed(std::string_view chunk);
  std::string finish();

 private:
  TextRules rules_;
  std::string held_;
  bool coloured_ = false;
};

bool valid_utf8(std::string_view s);
std::string hex(const void* data, size_t n);
bool unhex(std::string_view text, std::string* out);
std::string base64(std::string_view raw);
bool unbase64(std::string_view text, std::string* out);
// For Markdown: control-safe and no active markup, tables, HTML or code fences.
std::string markdown_escape(std::string_view raw);

}  // namespace h5i
