#include "core/broker/client_hello.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/address.hpp"
#include "core/policy/egress.hpp"

namespace h5i::broker {
namespace {

constexpr uint8_t kChangeCipher = 20, kAlert = 21, kHandshake = 22, kData = 23;
constexpr size_t kRecordHead = 5, kMaxRecord = 16384 + 256;
constexpr uint16_t kServerName = 0, kEncryptedHello = 0xfe0d, kEncryptedName = 0xffce;
constexpr size_t kMaxExtensions = 64;
constexpr uint8_t kServerHello = 2;
// RFC 8446 section 4.1.3: the random of a ServerHello that asks for a second hello.
constexpr std::string_view kRetryRandom("\xCF\x21\xAD\x74\xE5\x9A\x61\x11\xBE\x1D\x8C\x02\x1E\x65\xB8\x91"
                                        "\xC2\xA2\x11\x16\x7A\xBB\x8C\x5E\x07\x9E\x09\xE2\xC8\xA8\x33\x9C",
                                        32);

uint8_t at(std::string_view b, size_t i) { return static_cast<uint8_t>(b[i]); }
size_t two(std::string_view b, size_t i) { return static_cast<size_t>(at(b, i) << 8 | at(b, i + 1)); }

// Takes lengths and what they measure from the front; after the first that does not fit it gives nothing more.
class Reader {
 public:
  explicit Reader(std::string_view b) : b_(b) {}
  std::string_view bytes(size_t n) {
    if (!ok_ || n > b_.size()) return ok_ = false, std::string_view();
    std::string_view out = b_.substr(0, n);
    b_.remove_prefix(n);
    return out;
  }
  size_t number(int width) {
    std::string_view s = bytes(static_cast<size_t>(width));
    size_t n = 0;
    for (size_t i = 0; i < s.size(); i++) n = n << 8 | at(s, i);
    return n;
  }
  std::string_view sized(int width) { return bytes(number(width)); }
  bool ok() const { return ok_; }
  bool empty() const { return b_.empty(); }

 private:
  std::string_view b_;
  bool ok_ = true;
};

std::string_view server_name(std::string_view value, std::string& name) {
  Reader whole(value);
  Reader list(whole.sized(2));
  if (!whole.ok() || !whole.empty()) return "hello";
  size_t type = list.number(1);
  std::string_view host = list.sized(2);
  if (!list.ok()) return "hello";
  // One name, and of the only kind there is: a second one would be another reader's choice.
  if (!list.empty() || type != 0 || host.empty() || host.back() == '.') return "server-name";
  auto canonical = policy::canonical_host(host);
  if (!canonical || parse_ipv4(host)) return "server-name";
  name = std::move(*canonical);
  return {};
}

std::string_view read_message(std::string_view body, std::string& name) {
  Reader r(body);
  r.bytes(2 + 32);  // version and random
  bool session = r.sized(1).size() <= 32;
  std::string_view suites = r.sized(2), compression = r.sized(1);
  if (!r.ok() || !session || suites.empty() || suites.size() % 2 || compression.empty()) return "hello";
  if (r.empty()) return "no-server-name";
  Reader extensions(r.sized(2));
  if (!r.ok() || !r.empty()) return "hello";
  std::vector<size_t> seen;
  std::optional<std::string_view> names;
  bool encrypted = false;
  while (!extensions.empty()) {
    size_t id = extensions.number(2);
    std::string_view value = extensions.sized(2);
    if (!extensions.ok() || seen.size() == kMaxExtensions || std::find(seen.begin(), seen.end(), id) != seen.end()) return "hello";
    seen.push_back(id);
    if (id == kServerName) names = value;
    encrypted = encrypted || id == kEncryptedHello || id == kEncryptedName;
  }
  if (encrypted) return "encrypted-hello";
  if (!names) return "no-server-name";
  return server_name(*names, name);
}

}  // namespace

HelloRead read_client_hello(std::string_view bytes) {
  HelloRead out;
  std::string message;
  for (size_t from = 0;;) {
    std::string_view head = bytes.substr(from);
    // As much as is there must fit: what is no TLS is refused at its first byte.
    if (!head.empty() && at(head, 0) != kHandshake) return out.fault = "not-tls", out;
    if (head.size() > 1 && at(head, 1) != 3) return out.fault = "not-tls", out;
    if (head.size() > 2 && at(head, 2) > 4) return out.fault = "not-tls", out;
    if (head.size() >= kRecordHead) {
      size_t length = two(head, 3);
      if (length == 0 || length > kMaxRecord) return out.fault = "hello", out;
      if (from + kRecordHead + length > kMaxHello) return out.fault = "too-long", out;
      message += head.substr(kRecordHead, length);
      if (!message.empty() && at(message, 0) != 1) return out.fault = "hello", out;
      if (message.size() >= 4) {
        size_t whole = 4 + (static_cast<size_t>(at(message, 1)) << 16 | two(message, 2));
        if (whole > kMaxHello) return out.fault = "too-long", out;
        if (message.size() > whole) return out.fault = "hello", out;  // another message in the same record
        if (message.size() == whole && head.size() >= kRecordHead + length) {
          out.fault = read_message(std::string_view(message).substr(4), out.name);
          out.used = out.fault.empty() ? from + kRecordHead + length : 0;
          return out;
        }
      }
      if (head.size() >= kRecordHead + length) {
        from += kRecordHead + length;
        continue;
      }
    }
    return out;
  }
}

void HelloWatch::server_says(std::string_view bytes) {
  while (answer_ == Answer::UNKNOWN && !bytes.empty()) {
    if (server_left_ == 0) {
      size_t n = std::min(kRecordHead - partial_.size(), bytes.size());
      partial_ += bytes.substr(0, n);
      bytes.remove_prefix(n);
      if (partial_.size() < kRecordHead) return;
      type_ = at(partial_, 0);
      server_left_ = two(partial_, 3);
      partial_.clear();
      // An alert may come before it; anything else is no handshake that goes on.
      if (type_ != kHandshake && type_ != kAlert) answer_ = Answer::OTHER;
      continue;
    }
    size_t n = std::min(server_left_, bytes.size());
    if (type_ == kHandshake) heard_ += bytes.substr(0, n);
    server_left_ -= n;
    bytes.remove_prefix(n);
    if (heard_.size() < 4 + 2 + kRetryRandom.size()) continue;
    answer_ = at(heard_, 0) == kServerHello && heard_.substr(6, kRetryRandom.size()) == kRetryRandom ? Answer::RETRY : Answer::OTHER;
    heard_.clear();
  }
}

size_t HelloWatch::take(std::string_view bytes, std::string_view* fault) {
  size_t used = 0;
  while (!done_ && answer_ != Answer::OTHER && used < bytes.size()) {
    if (client_left_) {
      size_t n = std::min(client_left_, bytes.size() - used);
      client_left_ -= n;
      used += n;
      continue;
    }
    std::string_view rest = bytes.substr(used);
    uint8_t type = at(rest, 0);
    if (type < kChangeCipher || type > kData) return *fault = "not-tls", used;
    if (type == kHandshake) {
      if (answer_ == Answer::UNKNOWN) return used;
      HelloRead second = read_client_hello(rest);
      if (second.fault.empty() && second.used && second.name != name_) second.fault = "server-name";
      if (!second.fault.empty()) return *fault = second.fault, used;
      if (!second.used) return used;
      done_ = true;
      break;
    }
    if (rest.size() < kRecordHead) return used;
    client_left_ = kRecordHead + two(rest, 3);
  }
  return done_ || answer_ == Answer::OTHER ? bytes.size() : used;
}

}  // namespace h5i::broker
