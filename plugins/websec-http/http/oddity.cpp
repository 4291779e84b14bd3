#include "plugins/websec-http/http/oddity.hpp"

#include <iterator>

namespace h5i::websec {
namespace {

struct Row {
  std::string_view id;
  OddityWeight weight;
  std::string_view meaning;
};
constexpr Row kRows[] = {
#define H5I_ODDITY(NAME, ID, WEIGHT, MEANING) {ID, OddityWeight::WEIGHT, MEANING},
#include "plugins/websec-http/http/oddities.def"
#undef H5I_ODDITY
};
const Row& row(OddityId id) { return kRows[static_cast<size_t>(id)]; }

}  // namespace

std::string_view oddity_id(OddityId id) { return row(id).id; }
std::string_view oddity_meaning(OddityId id) { return row(id).meaning; }
OddityWeight oddity_weight(OddityId id) { return row(id).weight; }
size_t oddity_kinds() { return std::size(kRows); }
std::optional<OddityId> oddity_from_id(std::string_view id) {
  for (size_t i = 0; i < std::size(kRows); i++)
    if (kRows[i].id == id) return static_cast<OddityId>(i);
  return std::nullopt;
}

bool Oddities::add(OddityId id, uint64_t offset, std::string_view detail) {
  bool stops = row(id).weight == OddityWeight::FATAL || (strict_ && row(id).weight == OddityWeight::STRICT);
  if (row(id).weight != OddityWeight::NOTE) ambiguous_ = true;
  if (stops && !refusal_) refusal_ = id;
  for (Oddity& seen : list_)
    if (seen.id == id) {
      if (seen.count != UINT32_MAX) seen.count++;
      return !stops;
    }
  list_.push_back({id, offset, 1, std::string(detail.substr(0, kDetail))});
  return !stops;
}

bool Oddities::has(OddityId id) const {
  for (const Oddity& seen : list_)
    if (seen.id == id) return true;
  return false;
}

}  // namespace h5i::websec
