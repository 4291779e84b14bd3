#include "core/cli/websec_words.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/base/text.hpp"
#include "core/os/fs.hpp"

namespace h5i::cli {

Result<int64_t> number_word(const Parsed& words, const char* option, int64_t fallback, int64_t least, int64_t most, const std::string& verb) {
  std::string text = words.get(option);
  if (text.empty() && !words.has(option)) return fallback;
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos || std::stoll(text) < least || std::stoll(text) > most)
    return make_error(Errc::USAGE, std::string(option) + " is not a number from " + std::to_string(least) + " to " + std::to_string(most), printable(text), "h5i websec " + verb + " --help");
  return std::stoll(text);
}

Result<std::string> hex_of_file(const std::string& path) {
  const std::string bytes = H5I_TRY(os::read_file(path, kMostWebBytes));
  return hex(bytes.data(), bytes.size());
}

Result<Json> edit_words(const std::vector<std::string>& edits) {
  Json out = json::Array{};
  for (const std::string& text : edits) {
    if (!valid_utf8(text)) return make_error(Errc::INVALID, "an edit is not UTF-8", printable(text.substr(0, text.find('='))), "body=@FILE takes any bytes");
    Json word = json::Object{{"text", text}};
    const std::string_view edit = std::string_view(text).substr(text.starts_with('+') ? 1 : 0);
    const size_t at = text.find("=@");
    if (at != std::string::npos && (edit.starts_with("body=@") || (edit.starts_with("multipart.") && text.find('=') == at))) word["file_hex"] = H5I_TRY(hex_of_file(text.substr(at + 2)));
    out.push(std::move(word));
  }
  return out;
}

Result<Json> utf8_list(const std::vector<std::string>& words, const char* what) {
  Json out = json::Array{};
  for (const std::string& w : words) {
    if (!valid_utf8(w)) return make_error(Errc::INVALID, std::string(what) + " is not UTF-8", printable(w.substr(0, std::min(w.find(':'), size_t{40}))));
    out.push(w);
  }
  return out;
}

Result<Json> secrets_of(const session::WebSession& session, const std::vector<std::string>& identities) {
  Json out = json::Object{};
  if (identities.empty()) return out;
  session::WebAct look{.act = "ident", .words = json::Object{{"do", "list"}}, .timeout_ms = kWebPatienceMs};
  const Json all = H5I_TRY(session::look_at_session(session, look)).document;
  for (const Json& i : all["identities"].array()) {
    if (std::find(identities.begin(), identities.end(), i["name"].string()) == identities.end()) continue;
    for (const Json& name : i["secrets"].array()) {
      const char* value = ::getenv(name.string().c_str());
      if (!value || !*value)
        return make_error(Errc::NOT_FOUND, "the identity " + i["name"].string() + " has no value for $" + printable(name.string()), "it is not set in the environment of this command", "export " + printable(name.string()) + "=...");
      if (!valid_utf8(value)) return make_error(Errc::INVALID, "the value of $" + printable(name.string()) + " is not UTF-8", "a header holds text");
      out[name.string()] = value;
    }
  }
  return out;
}

}  // namespace h5i::cli
