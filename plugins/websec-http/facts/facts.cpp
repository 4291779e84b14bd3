#include "plugins/websec-http/facts/facts.hpp"

#include <iterator>

#include "plugins/websec-http/http/syntax.hpp"

namespace h5i::websec {
namespace {

struct Row {
  std::string_view id, meaning;
};
constexpr Row kRows[] = {
#define H5I_PASSIVE(NAME, ID, MEANING) {ID, MEANING},
#include "plugins/websec-http/facts/facts.def"
#undef H5I_PASSIVE
};
static_assert(std::size(kRows) <= 256);

bool is_page(const FieldBlock& fields) {
  auto type = fields.first("content-type");
  if (!type) return false;
  std::string_view media = syntax::trimmed(type->value.substr(0, type->value.find(';')));
  return syntax::same(media, "text/html") || syntax::same(media, "application/xhtml+xml");
}

}  // namespace

std::string_view passive_id(PassiveId id) { return kRows[static_cast<size_t>(id)].id; }
std::string_view passive_meaning(PassiveId id) { return kRows[static_cast<size_t>(id)].meaning; }
size_t passive_kinds() { return std::size(kRows); }

void PassiveFacts::add(PassiveId id, FactPlace place, uint64_t offset, std::string_view detail) {
  uint32_t& n = counts_[static_cast<size_t>(id)];
  if (n < kOfAKind) list_.push_back({id, place, offset, std::string(detail.substr(0, kDetail))});
  if (n != UINT32_MAX) n++;
}

void facts_of_addresses(std::string_view text, FactPlace place, uint64_t offset, PassiveFacts* out) {
  auto digit = [&](size_t i) { return i < text.size() && syntax::is(text[i], syntax::kDigit); };
  auto joins = [&](size_t i) { return i < text.size() && (syntax::is(text[i], syntax::kDigit) || text[i] == '.'); };
  for (size_t i = 0; i < text.size(); i++) {
    if (!digit(i)) continue;
    // Four numbers with dots between them and nothing of the kind around them; version numbers have other lengths.
    size_t at = i;
    unsigned part[4] = {};
    int n = 0;
    for (; n < 4; n++) {
      size_t begin = at;
      while (digit(at) && at - begin < 3) part[n] = part[n] * 10 + static_cast<unsigned>(text[at++] - '0');
      if (at == begin || part[n] > 255 || (n < 3 && (at >= text.size() || text[at] != '.'))) break;
      if (n < 3) at++;
    }
    bool whole = n == 4 && !(joins(at) && (text[at] != '.' || joins(at + 1)));
    bool inner = part[0] == 10 || part[0] == 127 || (part[0] == 172 && part[1] >= 16 && part[1] <= 31) ||
                 (part[0] == 192 && part[1] == 168) || (part[0] == 169 && part[1] == 254);
    if (whole && inner) out->add(PassiveId::LEAK_ADDRESS, place, offset + i, text.substr(i, at - i));
    while (joins(i)) i++;
  }
}

PassiveFacts passive_facts(const Exchange& exchange) {
  PassiveFacts out;
  if (!exchange.response) return out;
  bool page = is_page(exchange.response->fields);
  facts_of_headers(exchange, page, &out);
  facts_of_body(exchange, page, &out);
  return out;
}

}  // namespace h5i::websec
