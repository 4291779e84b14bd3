// What a message did that it should not: each kind once, with the offset of its first case and how often it was seen, so
// that the list is bounded by the number of kinds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace h5i::websec {

enum class OddityId : uint8_t {
#define H5I_ODDITY(NAME, ID, WEIGHT, MEANING) NAME,
#include "plugins/websec-http/http/oddities.def"
#undef H5I_ODDITY
};
enum class OddityWeight : uint8_t { NOTE, STRICT, FATAL };

std::string_view oddity_id(OddityId id);       // "te-and-cl"
std::string_view oddity_meaning(OddityId id);  // one line
OddityWeight oddity_weight(OddityId id);
std::optional<OddityId> oddity_from_id(std::string_view id);
size_t oddity_kinds();

struct Oddity {
  OddityId id;
  uint64_t offset = 0;  // in the bytes of this message, as they came
  uint32_t count = 1;
  std::string detail;  // at most kDetail bytes of what was there, raw: not for a terminal
};

class Oddities {
 public:
  static constexpr size_t kDetail = 80;
  explicit Oddities(bool strict) : strict_(strict) {}
  // False: reading stops here.
  bool add(OddityId id, uint64_t offset, std::string_view detail = {});
  bool has(OddityId id) const;
  bool refused() const { return refusal_.has_value(); }
  std::optional<OddityId> refusal() const { return refusal_; }  // the first that stopped the reading
  bool ambiguous() const { return ambiguous_; }                 // something was read that strict mode refuses
  const std::vector<Oddity>& list() const { return list_; }

 private:
  bool strict_;
  bool ambiguous_ = false;
  std::optional<OddityId> refusal_;
  std::vector<Oddity> list_;
};

}  // namespace h5i::websec
