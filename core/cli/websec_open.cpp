#include "core/base/text.hpp"
#include "core/cli/caller.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/os/fs.hpp"
#include "core/policy/quantity.hpp"
#include "core/session/placement.hpp"

namespace h5i::cli {
namespace {

constexpr int64_t kReadScopeMs = 5000;
constexpr size_t kLargestAuthorities = 1u << 20;
constexpr int64_t kLongest = 90 * 24 * 3600;

Result<int64_t> lifetime(const std::string& text) {
  auto seconds = policy::parse_duration(text);
  if (seconds && *seconds >= 1 && *seconds <= kLongest) return *seconds;
  return make_error(Errc::USAGE, "not a time that a session can last: " + printable(text), "as 30m or 8h, at most " + policy::duration_text(kLongest), "h5i websec open --help");
}

// What the session may use up; null when nothing was named.
Result<Json> budget_of(const Parsed& words) {
  Json out;
  auto take = [&](const char* option, const char* name, std::optional<int64_t> (*read)(std::string_view), const char* as) -> Result<void> {
    if (!words.has(option)) return {};
    auto n = read(words.get(option));
    if (!n || *n < 1) return make_error(Errc::USAGE, std::string("not what ") + option + " takes: " + printable(words.get(option)), as, "h5i websec open --help");
    out[name] = *n;
    return {};
  };
  H5I_TRY(take("--max-sends", "sends", policy::parse_count, "a number from 1, as 500 or 20k"));
  H5I_TRY(take("--max-wire", "wire_bytes", policy::parse_size, "a size, as 200M"));
  H5I_TRY(take("--max-decoded", "decoded_bytes", policy::parse_size, "a size, as 1G"));
  H5I_TRY(take("--max-time", "time_s", policy::parse_duration, "a time, as 90s or 2h"));
  return out;
}

Result<std::string> authorities(const std::string& path) {
  std::string pem = H5I_TRY(os::read_file(path, kLargestAuthorities));
  if (pem.find("-----BEGIN CERTIFICATE-----") != std::string::npos && valid_utf8(pem)) return pem;
  return make_error(Errc::USAGE, "no certificate in " + printable(path), "PEM, as openssl writes it", "h5i websec open --help");
}

Json list_of(const Parsed& words, const char* option) {
  Json out = json::Array{};
  if (auto it = words.options.find(option); it != words.options.end())
    for (const std::string& v : it->second) out.push(v);
  return out;
}

Result<std::pair<session::WebSession, Json>> open(const Parsed& words) {
  session::WebOpen wanted;
  wanted.name = words.arguments[0];
  if (!session::valid_web_name(wanted.name))
    return make_error(Errc::INVALID, "not a session's name: " + printable(wanted.name), "[a-z0-9][a-z0-9._-]{0,63}", "h5i websec open --help");
  wanted.lifetime_s = H5I_TRY(lifetime(words.get("--for", "8h")));
  session::UserDirs dirs = H5I_TRY(session::UserDirs::from_environment());
  plugin::PluginInfo engine = H5I_TRY(session::find_engine());
  session::WebAct read{.act = "read-scope", .words = json::Object{{"allow", list_of(words, "--scope")}, {"deny", list_of(words, "--deny")}}, .timeout_ms = kReadScopeMs};
  auto answer = H5I_TRY(session::act_alone(engine, read));
  wanted.scope = answer.document["scope"];
  wanted.options = json::Object{{"capture", words.has("--capture")}, {"suffix_list", answer.document["suffix_list"]}};
  if (words.has("--durable")) wanted.options["durable"] = true;
  if (Json budget = H5I_TRY(budget_of(words)); budget.is_object()) wanted.options["budget"] = std::move(budget);
  if (words.has("--in")) {
    const std::string here = H5I_TRY(current_directory());
    wanted.box = H5I_TRY(session::find_box(words.get("--in"), here, dirs));
  }
  if (words.has("--ca")) wanted.options["ca_pem"] = H5I_TRY(authorities(words.get("--ca")));
  auto session = H5I_TRY(session::open_web_session(dirs, engine, wanted));
  return std::make_pair(std::move(session), answer.document["lines"]);
}

}  // namespace

int websec_open(Context& ctx, const Parsed& words) {
  auto opened = open(words);
  if (!opened) return refuse_web(ctx, opened.error());
  const session::WebSession& s = opened->first;
  Json out = json::Object{{"schema", "h5i.websec-open/1"}, {"session", s.name}, {"id", s.manifest["id"]}, {"scope", s.manifest["scope"]}, {"expires", s.manifest["expires"]}, {"capture", words.has("--capture")}, {"durable", words.has("--durable")}, {"path", s.dir}, {"placement", session::placement_text(s.manifest)}};
  const Json& budget = s.manifest["options"]["budget"];
  if (budget.is_object()) out["budget"] = budget;
  ctx.result(std::move(out));
  if (ctx.json) return 0;
  ctx.line("session " + s.name + ", until " + s.manifest["expires"].string() + ", " + session::placement_text(s.manifest));
  for (const Json& line : opened->second.array()) ctx.line("  " + line.string());
  for (const auto& [name, most] : budget.object()) ctx.line("  at most " + std::to_string(most.integer()) + " " + (name == "sends" ? "sends" : name == "time_s" ? "seconds of sending" : name == "wire_bytes" ? "bytes on the wire" : "decoded bytes"));
  ctx.line("  log   " + s.log());
  ctx.line("next: h5i websec send " + s.name + " URL");
  return 0;
}

}  // namespace h5i::cli
