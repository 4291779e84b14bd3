#include "core/git/config_file.hpp"

#include "core/base/text.hpp"
#include "core/os/beneath.hpp"

namespace h5i::git {
namespace {

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  Result<std::vector<Setting>> run() {
    while (!done()) {
      char c = text_[at_];
      if (c == '\n') next_line();
      else if (is_space(c)) at_++;
      else if (c == '#' || c == ';') skip_comment();
      else if (c == '[') H5I_TRY(section());
      else H5I_TRY(key());
    }
    return std::move(out_);
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  void next_line() {
    at_++;
    line_++;
  }
  void skip_comment() {
    while (!done() && text_[at_] != '\n') at_++;
  }
  Error wrong(const char* what) const { return make_error(Errc::GIT_FAILED, "the configuration cannot be read: " + printable(file_), "line " + std::to_string(line_) + ": " + what); }

  Result<void> section() {
    at_++;
    prefix_.clear();
    for (; !done() && (is_alpha(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '-' || text_[at_] == '.'); at_++) prefix_ += lower(text_[at_]);
    while (!done() && is_space(text_[at_])) at_++;
    if (!done() && text_[at_] == '"') {
      prefix_ += '.';
      for (at_++;; at_++) {
        if (done() || text_[at_] == '\n') return wrong("a subsection has no end");
        if (text_[at_] == '"') break;
        if (text_[at_] == '\\' && ++at_ >= text_.size()) return wrong("a subsection has no end");
        if (text_[at_] == '\n') return wrong("a subsection has no end");
        prefix_ += text_[at_];
      }
      at_++;
      while (!done() && is_space(text_[at_])) at_++;
    }
    if (done() || text_[at_] != ']' || prefix_.empty() || prefix_[0] == '.') return wrong("a section's name is wrong");
    at_++;
    return {};
  }

  Result<void> key() {
    if (prefix_.empty()) return wrong("a key stands before any section");
    if (!is_alpha(text_[at_])) return wrong("a key begins with a letter");
    Setting s{prefix_ + ".", "true"};
    for (; !done() && (is_alpha(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '-'); at_++) s.name += lower(text_[at_]);
    while (!done() && is_space(text_[at_])) at_++;
    if (!done() && text_[at_] == '=') {
      at_++;
      s.value = H5I_TRY(value());
    } else if (!done() && text_[at_] != '\n' && text_[at_] != '#' && text_[at_] != ';') {
      return wrong("a key is followed by neither '=' nor the end of the line");
    }
    out_.push_back(std::move(s));
    return {};
  }

  // To the end of the line; leaves the newline.
  Result<std::string> value() {
    std::string v;
    size_t kept = 0;  // spaces after this are those before a comment or the end, and no part of the value
    bool quoted = false;
    while (!done() && (text_[at_] == ' ' || text_[at_] == '\t')) at_++;
    for (; !done() && text_[at_] != '\n'; at_++) {
      char c = text_[at_];
      if (c == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n')) continue;
      if (c == '"') {
        quoted = !quoted;
        kept = v.size();
        continue;
      }
      if (!quoted && (c == '#' || c == ';')) {
        skip_comment();
        break;
      }
      if (c == '\\') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '\r' && at_ + 2 < text_.size() && text_[at_ + 2] == '\n') at_++;
        if (++at_ >= text_.size()) return wrong("a value ends in a backslash");
        if (text_[at_] == '\n') {
          line_++;
          continue;
        }
        constexpr std::string_view kFrom = "ntb\"\\", kTo = "\n\t\b\"\\";
        size_t i = kFrom.find(text_[at_]);
        if (i == std::string_view::npos) return wrong("a value holds a backslash before something else than n, t, b, a quote or a backslash");
        v += kTo[i];
        kept = v.size();
        continue;
      }
      v += c;
      if (quoted || !is_space(c)) kept = v.size();
    }
    if (quoted) return wrong("a quote has no end");
    v.resize(kept);
    return v;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  uint64_t line_ = 1;
  std::string prefix_;
  std::vector<Setting> out_;
};

}  // namespace

Result<std::vector<Setting>> parse_config(std::string_view text, const std::string& file) { return Reader(text, file).run(); }

Result<std::vector<Setting>> read_config(const std::string& common_dir) {
  std::string file = common_dir + "/config";
  UniqueFd dir = H5I_TRY(os::open_directory(common_dir));
  auto text = os::read_file_beneath(dir, "config", kMaxConfigFile);
  if (text) return parse_config(*text, file);
  if (text.error().sys_errno == ENOENT) return std::vector<Setting>{};
  return make_error(Errc::GIT_UNSUPPORTED, "the configuration cannot be read: " + printable(file), text.error().what + ": " + text.error().evidence, "make it a regular file in the git directory");
}

const std::string* last_value(const std::vector<Setting>& settings, std::string_view name) {
  for (auto it = settings.rbegin(); it != settings.rend(); ++it)
    if (it->name == name) return &it->value;
  return nullptr;
}

}  // namespace h5i::git
