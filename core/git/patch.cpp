#include "core/git/patch.hpp"

#include "core/base/text.hpp"
#include "core/git/handles.hpp"
#include "core/git/library.hpp"

namespace h5i::git {
namespace {

std::string octal(uint32_t mode) {
  char buf[16];
  snprintf(buf, sizeof buf, "%06o", mode);
  return buf;
}

std::string header(const Change& c) {
  std::string a = quoted_path("a/" + c.path), b = quoted_path("b/" + c.path);
  std::string out = "diff --git " + a + " " + b + "\n";
  if (c.old_mode == 0) out += "new file mode " + octal(c.new_mode) + "\n";
  else if (c.new_mode == 0) out += "deleted file mode " + octal(c.old_mode) + "\n";
  else if (c.old_mode != c.new_mode) out += "old mode " + octal(c.old_mode) + "\nnew mode " + octal(c.new_mode) + "\n";
  if (c.old_oid != c.new_oid) {
    out += "index " + c.old_oid.hex() + ".." + c.new_oid.hex();
    if (c.old_mode == c.new_mode) out += " " + octal(c.new_mode);
    out += "\n";
  }
  return out;
}

// The half of a binary patch that rebuilds one side: its length and the deflated bytes in lines of base 85.
std::string literal(const git_diff_binary_file& f) {
  std::string out = (f.type == GIT_DIFF_BINARY_DELTA ? "delta " : "literal ") + std::to_string(f.inflatedlen) + "\n";
  std::string_view data(f.data, f.datalen);
  for (size_t i = 0; i < data.size(); i += 52) {
    std::string_view line = data.substr(i, 52);
    out += static_cast<char>(line.size() <= 26 ? 'A' + line.size() - 1 : 'a' + line.size() - 27);
    out += base85(line) + "\n";
  }
  return out + "\n";
}

struct Building {
  FilePatch patch;
  std::string names;  // the ---/+++ lines, written before the first hunk
  bool full_binary = false;
};

int on_binary(const git_diff_delta*, const git_diff_binary* b, void* payload) {
  auto& out = *static_cast<Building*>(payload);
  out.patch.binary = true;
  if (out.full_binary && b->contains_data) out.patch.text += "GIT binary patch\n" + literal(b->new_file) + literal(b->old_file);
  return 0;
}

int on_hunk(const git_diff_delta*, const git_diff_hunk* h, void* payload) {
  auto& out = *static_cast<Building*>(payload);
  out.patch.text += out.names;
  out.names.clear();
  out.patch.text.append(h->header, h->header_len);
  return 0;
}

int on_line(const git_diff_delta*, const git_diff_hunk*, const git_diff_line* l, void* payload) {
  auto& out = *static_cast<Building*>(payload);
  if (l->origin == GIT_DIFF_LINE_ADDITION) out.patch.added++;
  if (l->origin == GIT_DIFF_LINE_DELETION) out.patch.removed++;
  if (l->origin == GIT_DIFF_LINE_CONTEXT || l->origin == GIT_DIFF_LINE_ADDITION || l->origin == GIT_DIFF_LINE_DELETION) out.patch.text += l->origin;
  out.patch.text.append(l->content, l->content_len);
  return 0;
}

Change half(const Change& c, bool old) {
  return old ? Change{ChangeKind::DELETED, c.path, c.old_mode, 0, c.old_oid, {}} : Change{ChangeKind::ADDED, c.path, 0, c.new_mode, {}, c.new_oid};
}

}  // namespace

std::string quoted_path(const std::string& path) {
  bool plain = true;
  for (char ch : path) {
    auto c = static_cast<unsigned char>(ch);
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') plain = false;
  }
  if (plain) return path;
  std::string out = "\"";
  char buf[8];
  for (char ch : path) {
    auto c = static_cast<unsigned char>(ch);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (c < 0x20 || c >= 0x7f) {
          snprintf(buf, sizeof buf, "\\%03o", c);
          out += buf;
        } else {
          out += ch;
        }
    }
  }
  return out + "\"";
}

std::string base85(std::string_view bytes) {
  static const char k[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    uint32_t v = 0;
    for (size_t j = 0; j < 4; j++) v = v << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    char digits[5];
    for (int j = 4; j >= 0; j--) {
      digits[j] = k[v % 85];
      v /= 85;
    }
    out.append(digits, 5);
  }
  return out;
}

Result<FilePatch> patch_of(const Change& c, const std::string& before, const std::string& after, bool full_binary) {
  H5I_TRY(ready());
  // git writes a change of kind (file to link, say) as a removal and an addition, and takes nothing else.
  if (c.kind == ChangeKind::TYPE) {
    FilePatch first = H5I_TRY(patch_of(half(c, true), before, "", full_binary)), second = H5I_TRY(patch_of(half(c, false), "", after, full_binary));
    first.text += second.text;
    first.added += second.added;
    first.removed += second.removed;
    first.binary = first.binary || second.binary;
    return first;
  }
  Building out;
  out.full_binary = full_binary;
  out.patch.text = header(c);
  std::string a = quoted_path("a/" + c.path), b = quoted_path("b/" + c.path);
  // A name with a space needs a tab at its end, or git takes the space for the beginning of a timestamp.
  auto name = [](const std::string& p, bool there) { return there ? p + (p[0] != '"' && p.find(' ') != std::string::npos ? "\t" : "") : std::string("/dev/null"); };
  out.names = "--- " + name(a, c.old_mode != 0) + "\n+++ " + name(b, c.new_mode != 0) + "\n";
  if (c.old_oid == c.new_oid) return out.patch;
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.context_lines = 3;
  if (full_binary) options.flags |= GIT_DIFF_SHOW_BINARY;
  // Links and gitlinks are text to git whatever bytes they hold.
  if (plain_mode(c.new_mode ? c.new_mode : c.old_mode) == kLink) options.flags |= GIT_DIFF_FORCE_TEXT;
  if (git_diff_buffers(before.data(), before.size(), nullptr, after.data(), after.size(), nullptr, &options, nullptr, on_binary, on_hunk, on_line, &out) < 0)
    return library_error(Errc::GIT_FAILED, "no difference could be computed for " + printable(c.path));
  if (out.patch.binary && !full_binary)
    out.patch.text += "Binary files " + (c.old_mode ? a : "/dev/null") + " and " + (c.new_mode ? b : "/dev/null") + " differ\n";
  return out.patch;
}

}  // namespace h5i::git
