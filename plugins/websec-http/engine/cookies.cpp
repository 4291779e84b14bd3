#include "plugins/websec-http/engine/cookies.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "plugins/websec-http/url/utf8.hpp"

namespace h5i::websec {
namespace {

constexpr const char* kSystemLists[] = {"/usr/share/publicsuffix/public_suffix_list.dafsa", "/usr/share/publicsuffix/public_suffix_list.dat"};
constexpr size_t kLargestJar = 64u << 20;

int64_t now() { return ::time(nullptr); }

// "" with errno when it cannot be read.
std::optional<std::string> read_whole(const char* path, size_t most, struct stat* st) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string out;
  bool good = fstat(fd, st) == 0 && S_ISREG(st->st_mode) && static_cast<uint64_t>(st->st_size) <= most;
  if (!good) errno = EFBIG;
  char piece[65536];
  while (good) {
    ssize_t n = read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      good = n == 0;
      break;
    }
    out.append(piece, static_cast<size_t>(n));
    if (out.size() > most) good = false;
  }
  const int err = errno;
  ::close(fd);
  errno = err;
  return good ? std::optional<std::string>(std::move(out)) : std::nullopt;
}

sdk::Failure failed(const std::string& what) { return sdk::failure(H5I_E_SYSTEM, what + ": " + strerror(errno)); }

// An origin may name and fill a cookie with any bytes, and the file is JSON: each byte is the character of that number.
std::string as_characters(std::string_view bytes) {
  std::string out;
  for (char c : bytes) json::detail::append_utf8(out, static_cast<unsigned char>(c));
  return out;
}
std::optional<std::string> as_bytes(std::string_view characters) {
  std::string out;
  for (size_t i = 0; i < characters.size(); i++) {
    auto c = static_cast<unsigned char>(characters[i]);
    if (c < 0x80) {
      out += characters[i];
      continue;
    }
    if ((c != 0xc2 && c != 0xc3) || i + 1 == characters.size()) return std::nullopt;
    out += static_cast<char>((c & 3) << 6 | (characters[++i] & 0x3f));
  }
  return out;
}

json::Value json_of(const Cookie& c) {
  json::Value v = json::Object{{"name", as_characters(c.name)}, {"value", as_characters(c.value)}, {"domain", c.domain}, {"path", as_characters(c.path)}, {"host_only", c.host_only}, {"secure", c.secure}, {"http_only", c.http_only},
                               {"same_site", static_cast<int64_t>(c.same_site)}, {"created", c.created}, {"used", c.used}, {"order", c.order}};
  if (c.expires) v["expires"] = *c.expires;
  return v;
}

// A jar's file is this user's own; what stands in it goes into a head all the same.
bool harmless(const std::string& text) {
  for (char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f || c == ';') return false;
  return true;
}

}  // namespace

sdk::Result<SuffixList> system_suffix_list() {
  for (const char* path : kSystemLists) {
    struct stat st {};
    auto bytes = read_whole(path, kLargestJar, &st);
    if (!bytes) continue;
    char date[16] = "";
    tm t{};
    if (gmtime_r(&st.st_mtime, &t)) strftime(date, sizeof date, "%F", &t);
    if (auto list = SuffixList::from_bytes(*bytes, date); list.ok()) return list;
  }
  return SuffixList::builtin();
}

sdk::Result<std::unique_ptr<CookieStore>> CookieStore::open(const std::string& identity) {
  for (char c : identity)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.')) return sdk::failure(H5I_E_INVALID, "not an identity's name");
  if (identity.size() > 64) return sdk::failure(H5I_E_INVALID, "not an identity's name");
  std::unique_ptr<CookieStore> out(new CookieStore(identity.empty() ? "state/jar.json" : "state/jar-" + identity + ".json", H5I_SDK_TRY(system_suffix_list())));
  H5I_SDK_TRY(out->load());
  return out;
}

sdk::Status CookieStore::load() {
  struct stat st {};
  auto text = read_whole(file_.c_str(), kLargestJar, &st);
  if (!text && errno == ENOENT) return {};
  if (!text) return failed("the jar " + file_);
  auto corrupt = [&] { return sdk::failure(H5I_E_CORRUPT, "the jar " + file_ + " is not what was saved: h5i websec jar --clear begins a new one"); };
  auto v = json::parse(*text);
  if (!v || (*v)["schema"].string() != "h5i.websec-jar/1") return corrupt();
  std::vector<Cookie> cookies;
  for (const json::Value& c : (*v)["cookies"].array()) {
    Cookie k;
    auto called = as_bytes(c["name"].string()), filled = as_bytes(c["value"].string()), below = as_bytes(c["path"].string());
    if (!called || !filled || !below) return corrupt();
    k.name = std::move(*called);
    k.value = std::move(*filled);
    k.path = std::move(*below);
    k.domain = c["domain"].string();
    k.host_only = c["host_only"].boolean();
    k.secure = c["secure"].boolean();
    k.http_only = c["http_only"].boolean();
    const int64_t same_site = c["same_site"].integer();
    if (same_site < 0 || same_site > static_cast<int64_t>(SameSite::STRICT)) return corrupt();
    k.same_site = static_cast<SameSite>(same_site);
    k.created = c["created"].integer();
    k.used = c["used"].integer();
    k.order = static_cast<uint64_t>(c["order"].integer());
    if (c["expires"].is_int()) k.expires = c["expires"].integer();
    if (k.domain.empty() || !harmless(k.name) || !harmless(k.value) || !harmless(k.domain) || !harmless(k.path)) return corrupt();
    cookies.push_back(std::move(k));
  }
  if (cookies.size() > kMaxCookies) return corrupt();
  jar_.restore(std::move(cookies));
  return {};
}

sdk::Result<std::unique_ptr<CookieStore>> CookieStore::far(Far& far) {
  std::unique_ptr<CookieStore> out(new CookieStore({}, H5I_SDK_TRY(system_suffix_list())));
  out->far_ = &far;
  return out;
}

Selection CookieStore::select(const Url& url, const Requester& requester) {
  if (far_) {
    auto answer = far_->ask({json::Object{{"op", "cookies"}, {"url", url.href_without_fragment()}, {"same_site", requester.same_site}, {"navigation", requester.navigation}, {"safe_method", requester.safe_method}}, {}});
    Selection out;
    if (!answer.ok() || answer->bytes.empty()) return out;
    out.header = std::move(answer->bytes[0]);
    for (const json::Value& v : answer->say["verdicts"].array()) out.verdicts.push_back({v["name"].string(), {}, {}, static_cast<CookieReason>(v["reason"].integer())});
    return out;
  }
  std::lock_guard lock(one_);
  return jar_.select(url, requester, list_, now());
}

json::Value CookieStore::store(const Url& url, const std::vector<std::string_view>& lines) {
  if (far_) {
    auto answer = far_->ask({json::Object{{"op", "set-cookies"}, {"url", url.href_without_fragment()}}, {lines.begin(), lines.end()}});
    return answer.ok() ? answer->say["kept"] : json::Value(json::Array{});
  }
  std::lock_guard lock(one_);
  json::Value out = json::Array{};
  for (std::string_view line : lines) {
    StoreResult r = jar_.store(url, line, Requester{}, list_, now());
    changed_ = changed_ || r.stored() || r.reason == CookieReason::DELETED;
    json::Value told = json::Object{{"cookie", to_valid_utf8(std::string_view(r.cookie_name).substr(0, 100))}, {"kept", r.stored()}, {"why", name(r.reason)}};
    if (r.made_host_only) told["host_only"] = "its domain is a public suffix";
    out.push(std::move(told));
  }
  return out;
}

sdk::Status CookieStore::save() {
  std::lock_guard lock(one_);
  if (!changed_) return {};
  json::Value cookies = json::Array{};
  for (const Cookie& c : jar_.cookies()) cookies.push(json_of(c));
  const std::string text = json::canonical(json::Object{{"schema", "h5i.websec-jar/1"}, {"suffix_list", list_.date() + " " + list_.digest()}, {"cookies", std::move(cookies)}}) + "\n";
  const std::string fresh = file_ + ".new";
  (void)::unlink(fresh.c_str());
  int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed("the jar could not be saved: " + fresh);
  FILE* file = ::fdopen(fd, "w");
  bool good = file != nullptr && fwrite(text.data(), 1, text.size(), file) == text.size();
  int err = errno;
  if ((file ? fclose(file) : ::close(fd)) != 0 && good) {
    good = false;
    err = errno;
  }
  if (!good) {
    (void)::unlink(fresh.c_str());
    errno = err;
    return failed("the jar could not be saved: " + fresh);
  }
  if (::rename(fresh.c_str(), file_.c_str()) != 0) return failed("the jar could not be saved: " + file_);
  changed_ = false;
  return {};
}

json::Value CookieStore::list() {
  std::lock_guard lock(one_);
  json::Value out = json::Array{};
  for (const Cookie& c : jar_.cookies()) {
    json::Value v = json_of(c);
    v["name"] = to_valid_utf8(c.name);
    v["path"] = to_valid_utf8(c.path);
    v["value_bytes"] = c.value.size();
    auto& o = v.make_object();
    o.erase("value");
    o.erase("order");
    v["same_site"] = c.same_site == SameSite::STRICT ? "strict" : c.same_site == SameSite::LAX ? "lax" : c.same_site == SameSite::NONE ? "none" : "default";
    out.push(std::move(v));
  }
  return out;
}

void CookieStore::clear() {
  std::lock_guard lock(one_);
  jar_.clear();
  changed_ = true;
}

}  // namespace h5i::websec
