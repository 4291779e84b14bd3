#include "plugins/websec-http/engine/history.hpp"

#include <map>

#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {
namespace {

std::optional<int64_t> number(std::string_view text) {
  if (text.empty() || text.size() > 15 || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoll(std::string(text));
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::optional<Url> url_of(const PastSend& s) {
  auto u = Url::parse(s.body["url"].string());
  return u.ok() ? std::optional<Url>(*u) : std::nullopt;
}

}  // namespace

std::string PastSend::ended() const {
  if (refused) return body["why"].string();
  return outcome.is_null() ? "unknown-outcome" : outcome["ended"].string();
}

sdk::Result<std::vector<PastSend>> history(const sdk::Host& host) {
  std::vector<PastSend> out;
  std::map<uint64_t, size_t> at;
  H5I_SDK_TRY(host.records(0, [&](const json::Value& r) {
    const std::string& kind = r["kind"].string();
    if (r["lane"].string() != "engine-claimed") return true;  // what a box says is no send of ours
    if (kind == "send" || kind == "refused") {
      PastSend s;
      s.seq = static_cast<uint64_t>(r["seq"].integer());
      s.refused = kind == "refused";
      s.time = r["time"].string();
      s.body = r["body"];
      at[s.seq] = out.size();
      out.push_back(std::move(s));
    } else if (kind == "outcome") {
      if (auto found = at.find(static_cast<uint64_t>(r["body"]["of"].integer())); found != at.end()) out[found->second].outcome = r["body"];
    }
    return true;
  }));
  return out;
}

sdk::Result<Filter> parse_filter(const std::string& text) {
  auto bad = [&](const char* why) { return sdk::failure(H5I_E_INVALID, "filter " + text.substr(0, 100) + ": " + why); };
  const size_t at = text.find_first_of(":>");
  if (at == std::string::npos) return bad("not name:value or name>number");
  const std::string name = text.substr(0, at), value = text.substr(at + 1);
  if (text[at] == '>') {
    auto n = number(value);
    if (!n) return bad("not a number");
    if (name == "size") return Filter([n = *n](const PastSend& s) { return s.outcome["body_bytes"].integer() > n; });
    if (name == "time") return Filter([n = *n](const PastSend& s) { return s.outcome["times"]["total_us"].integer() > n * 1000; });
    return bad("only size and time are compared");
  }
  if (value.empty()) return bad("nothing after the colon");
  if (name == "host") return Filter([value](const PastSend& s) { auto u = url_of(s); return u && holds(u->hostname(), value); });
  if (name == "path") return Filter([value](const PastSend& s) { auto u = url_of(s); return u && holds(u->path(), value); });
  if (name == "method") return Filter([value](const PastSend& s) { return s.body["method"].string() == value; });
  if (name == "ended") return Filter([value](const PastSend& s) { return s.ended() == value; });
  if (name == "refused") {
    if (value != "yes" && value != "no") return bad("yes or no");
    return Filter([yes = value == "yes"](const PastSend& s) { return s.refused == yes; });
  }
  if (name == "seq") {
    auto n = number(value);
    if (!n) return bad("not a number");
    return Filter([n = static_cast<uint64_t>(*n)](const PastSend& s) { return s.seq == n; });
  }
  if (name == "status") {
    if (value.size() != 3 || value[0] < '1' || value[0] > '9' || (value.substr(1) != "xx" && !number(value))) return bad("404 or 4xx");
    return Filter([value](const PastSend& s) {
      std::string status = std::to_string(s.status());
      return s.status() != 0 && (status == value || (value.ends_with("xx") && status[0] == value[0] && status.size() == 3));
    });
  }
  return bad("there is no such field: host, path, method, status, ended, refused, seq, size, time");
}

}  // namespace h5i::websec
