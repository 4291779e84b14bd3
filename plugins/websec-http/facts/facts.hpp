// Facts that one exchange shows by itself.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/http/head.hpp"

namespace h5i::websec {

enum class PassiveId : uint8_t {
#define H5I_PASSIVE(NAME, ID, MEANING) NAME,
#include "plugins/websec-http/facts/facts.def"
#undef H5I_PASSIVE
};
std::string_view passive_id(PassiveId id);       // "cookie-no-secure"
std::string_view passive_meaning(PassiveId id);  // one line
size_t passive_kinds();

enum class FactPlace : uint8_t { REQUEST_HEAD, RESPONSE_HEAD, BODY };

struct PassiveFact {
  PassiveId id;
  FactPlace place = FactPlace::RESPONSE_HEAD;
  uint64_t offset = 0;  // in the head or the decoded body
  std::string detail;   // at most kDetail raw bytes: a name, a host, a product; never a secret's value
};

struct Exchange {
  bool secure = false;            // over https
  std::string_view origin;        // "https://a.test", as an Origin header would have it
  std::string_view request_head;  // the bytes that were sent
  const ResponseHead* response = nullptr;
  std::string_view body;          // decoded; as much of it as was kept
};

class PassiveFacts {
 public:
  static constexpr size_t kDetail = 120;
  static constexpr size_t kOfAKind = 8;  // placed; a page that repeats itself is one fact many times
  void add(PassiveId id, FactPlace place, uint64_t offset, std::string_view detail = {});
  const std::vector<PassiveFact>& list() const { return list_; }
  uint32_t count(PassiveId id) const { return counts_[static_cast<size_t>(id)]; }  // those that were not placed, too

 private:
  std::vector<PassiveFact> list_;
  uint32_t counts_[256] = {};
};

PassiveFacts passive_facts(const Exchange& exchange);

// The two halves, for what has only one of them.
void facts_of_headers(const Exchange& exchange, bool page, PassiveFacts* out);
void facts_of_body(const Exchange& exchange, bool page, PassiveFacts* out);

// Private, loopback and link-local IPv4 addresses in a text.
void facts_of_addresses(std::string_view text, FactPlace place, uint64_t offset, PassiveFacts* out);

}  // namespace h5i::websec
