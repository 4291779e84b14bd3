#include "plugins/websec-http/http/multipart.hpp"

#include <algorithm>
#include <vector>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

// The value of a parameter behind the first semicolon: name=token or name="quoted \" string".
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != std::string_view::npos && at < header.size()) {
    size_t equals = header.find_first_of("=;", at + 1);
    if (equals == std::string_view::npos) return std::nullopt;
    if (header[equals] == ';') {
      at = equals;
      continue;
    }
    std::string_view key = syntax::trimmed(header.substr(at + 1, equals - at - 1));
    std::string value;
    size_t i = equals + 1;
    while (i < header.size() && syntax::is(header[i], syntax::kSpace)) i++;
    if (i < header.size() && header[i] == '"') {
      for (i++; i < header.size() && header[i] != '"'; i++) {
        if (header[i] == '\\' && i + 1 < header.size()) i++;
        value += header[i];
      }
      at = header.find(';', i);
    } else {
      at = header.find(';', i);
      value = syntax::trimmed(header.substr(i, at == std::string_view::npos ? at : at - i));
    }
    if (syntax::same(key, name)) return value;
  }
  return std::nullopt;
}

struct Part {
  size_t begin = 0;  // of its delimiter line
  size_t content = 0, end = 0;
  bool bare = false;  // the empty line behind its headers is that of the next delimiter
  std::string name;
};

// The parts and where the closing delimiter begins; nothing when the body is not what the boundary says.
std::optional<std::vector<Part>> parts_of(std::string_view body, std::string_view boundary, size_t* close) {
  std::string delimiter = "--" + std::string(boundary);
  std::vector<Part> out;
  size_t at = body.starts_with(delimiter) ? 0 : body.find("\r\n" + delimiter);
  if (at == std::string_view::npos) return std::nullopt;
  if (at > 0) at += 2;
  for (;;) {
    size_t after = at + delimiter.size();
    if (body.substr(after, 2) == "--") {
      *close = at;
      return out;
    }
    size_t line = body.find("\r\n", after);
    if (line == std::string_view::npos || !syntax::trimmed(body.substr(after, line - after)).empty()) return std::nullopt;
    size_t next = body.find("\r\n" + delimiter, line);
    size_t content = body.find("\r\n\r\n", line);
    if (next == std::string_view::npos || content == std::string_view::npos || content > next) return std::nullopt;
    Part p{at, std::min(content + 4, next), next, content + 4 > next, {}};
    for (size_t h = line + 2; h < content + 2;) {
      size_t end = body.find("\r\n", h);
      std::string_view header = body.substr(h, end - h);
      if (size_t colon = header.find(':'); colon != std::string_view::npos && syntax::same(header.substr(0, colon), "content-disposition"))
        p.name = parameter(header, "name").value_or("");
      h = end + 2;
    }
    out.push_back(std::move(p));
    at = next + 2;
  }
}

// As browsers write names: what would end the quotes or the line is percent-encoded.
std::string quoted(std::string_view s) {
  std::string out;
  for (char c : s) out += c == '"' ? "%22" : c == '\r' ? "%0D" : c == '\n' ? "%0A" : std::string(1, c);
  return out;
}

}  // namespace

std::optional<std::string> multipart_boundary(std::string_view content_type) {
  if (!syntax::same(syntax::trimmed(content_type.substr(0, content_type.find(';'))), "multipart/form-data")) return std::nullopt;
  auto boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > 70) return std::nullopt;
  return boundary;
}

std::string free_boundary(std::string_view bytes) {
  for (unsigned n = 0;; n++)
    if (std::string b = "h5i-part-" + std::to_string(n); bytes.find(b) == std::string_view::npos) return b;
}

Refused edit_multipart(std::string* body, std::string_view boundary, EditAct act, std::string_view name, std::string_view value, std::string_view filename) {
  std::string delimiter = "--" + std::string(boundary);
  if (act != EditAct::REMOVE && (value.starts_with(delimiter) || value.find("\r\n" + delimiter) != std::string_view::npos))
    return Refusal{"multipart-boundary", "the value holds the boundary of the body; exact bytes are sent with --raw"};
  if (body->empty()) *body = delimiter + "--\r\n";
  size_t close = 0;
  auto parts = parts_of(*body, boundary, &close);
  if (!parts) return Refusal{"not-multipart", "the body is not what its boundary says"};
  std::string added = delimiter + "\r\nContent-Disposition: form-data; name=\"" + quoted(name) + "\"";
  if (!filename.empty()) added += "; filename=\"" + quoted(filename) + "\"\r\nContent-Type: application/octet-stream";
  added += "\r\n\r\n" + std::string(value) + "\r\n";
  if (act == EditAct::ADD) {
    body->insert(close, added);
    return std::nullopt;
  }
  // From the end, so that the places of the parts before stay true.
  bool any = false;
  size_t first = parts->size();
  for (size_t i = parts->size(); i-- > 0;)
    if ((*parts)[i].name == name) first = i;
  for (size_t i = parts->size(); i-- > 0;) {
    const Part& p = (*parts)[i];
    if (p.name != name) continue;
    any = true;
    if (act == EditAct::SET && i == first) {
      body->replace(p.content, p.end - p.content, (p.bare ? "\r\n" : "") + std::string(value));
    } else {
      body->erase(p.begin, p.end + 2 - p.begin);
    }
  }
  if (!any && act == EditAct::REMOVE) return Refusal{"nothing-to-remove", "there is no part of that name"};
  if (!any) body->insert(close, added);
  return std::nullopt;
}

}  // namespace h5i::websec
