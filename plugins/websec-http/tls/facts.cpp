#include "plugins/websec-http/tls/facts.hpp"

#include <algorithm>
#include <iterator>

#include "plugins/websec-http/text/show.hpp"

namespace h5i::websec {
namespace {

struct Row {
  std::string_view id, meaning;
};
constexpr Row kRows[] = {
#define H5I_TLS_FACT(NAME, ID, MEANING) {ID, MEANING},
#include "plugins/websec-http/tls/facts.def"
#undef H5I_TLS_FACT
};

constexpr std::string_view kOldVersions[] = {"SSLv2", "SSLv3", "TLSv1", "TLSv1.1"};
// Parts of the names that OpenSSL gives to suites that hide or prove nothing, or not any more.
constexpr std::string_view kWeakParts[] = {"NULL", "ADH", "AECDH", "EXP", "RC4", "RC2", "DES", "IDEA", "MD5"};

bool weak_cipher(std::string_view cipher) {
  for (std::string_view part : kWeakParts)
    for (size_t at = cipher.find(part); at != std::string_view::npos; at = cipher.find(part, at + 1))
      if (at == 0 || cipher[at - 1] == '-' || cipher[at - 1] == '_') return true;
  return false;
}

void add_text(json::Object* to, const char* key, std::string_view raw) {
  if (!raw.empty()) (*to)[key] = show_field(raw);
}

json::Value value_of(const Certificate& c) {
  json::Object o;
  o["sha256"] = c.sha256;
  if (!c.readable) {
    o["unreadable_bytes"] = c.bytes;
    return o;
  }
  o["subject"] = c.subject;
  o["issuer"] = c.issuer;
  json::Array names;
  for (const std::string& n : c.names) names.push_back(n);
  o["names"] = std::move(names);
  o["names_total"] = c.names_total;
  if (c.not_before) o["not_before"] = utc_text(*c.not_before);
  if (c.not_after) o["not_after"] = utc_text(*c.not_after);
  if (!c.key.empty()) {
    o["key"] = c.key;
    o["key_bits"] = c.key_bits;
  }
  o["signature"] = c.signature;
  o["self_signed"] = c.self_signed;
  return o;
}

}  // namespace

std::string_view tls_fact_id(TlsFactId id) { return kRows[static_cast<size_t>(id)].id; }
std::string_view tls_fact_meaning(TlsFactId id) { return kRows[static_cast<size_t>(id)].meaning; }
size_t tls_fact_kinds() { return std::size(kRows); }

bool TlsReport::has(TlsFactId id) const {
  return std::any_of(facts.begin(), facts.end(), [&](const TlsFact& f) { return f.id == id; });
}

TlsReport read_tls(const TlsPeer& peer, int64_t now, const TlsLimits& limits) {
  TlsReport out;
  out.chain_total = peer.chain.size();
  auto fact = [&](bool holds, TlsFactId id, size_t at = 0) {
    if (holds) out.facts.push_back({id, at});
  };
  fact(std::find(std::begin(kOldVersions), std::end(kOldVersions), peer.version) != std::end(kOldVersions), TlsFactId::OLD_VERSION);
  fact(weak_cipher(peer.cipher), TlsFactId::WEAK_CIPHER);
  fact(peer.chain.empty(), TlsFactId::NO_CERTIFICATE);
  fact(peer.chain.size() > limits.chain, TlsFactId::CHAIN_LONG);

  for (size_t i = 0; i < peer.chain.size() && i < limits.chain; i++) {
    CertificateLimits bounds = limits.certificate;
    if (i > 0) bounds.names = std::min(bounds.names, limits.names_of_issuers);
    out.chain.push_back(read_certificate(peer.chain[i], bounds));
  }
  for (size_t i = 0; i < out.chain.size(); i++) {
    const Certificate& c = out.chain[i];
    fact(!c.readable, TlsFactId::UNREADABLE, i);
    if (!c.readable) continue;
    bool next = i + 1 < out.chain.size() && out.chain[i + 1].readable;
    fact(c.trailing > 0, TlsFactId::TRAILING_BYTES, i);
    fact(next && c.raw_issuer != out.chain[i + 1].raw_subject, TlsFactId::CHAIN_ORDER, i);
    fact(c.not_after && now > *c.not_after, TlsFactId::EXPIRED, i);
    fact(c.not_before && now < *c.not_before, TlsFactId::NOT_YET_VALID, i);
    fact(!c.not_before || !c.not_after || *c.not_after < *c.not_before, TlsFactId::VALIDITY, i);
    fact(c.weak_key, TlsFactId::WEAK_KEY, i);
    fact(c.key.empty(), TlsFactId::KEY_UNREADABLE, i);
    fact(c.weak_signature && !(i > 0 && c.self_issued), TlsFactId::WEAK_SIGNATURE, i);
    fact(i == 0 && c.names_total > c.names.size(), TlsFactId::MANY_NAMES, i);
    fact(c.names_unreadable, TlsFactId::NAMES_UNREADABLE, i);
    fact(c.name_bytes, TlsFactId::NAME_BYTES, i);
    if (i > 0) continue;
    fact(!certificate_is_for(peer.chain[0], peer.name), TlsFactId::NAME_MISMATCH);
    fact(c.names_total == 0 && !c.names_unreadable, TlsFactId::NO_NAMES);
    fact(c.self_signed, TlsFactId::SELF_SIGNED);
  }
  return out;
}

json::Value tls_value(const TlsPeer& peer, const TlsReport& report) {
  json::Object o;
  add_text(&o, "version", peer.version);
  add_text(&o, "cipher", peer.cipher);
  add_text(&o, "alpn", peer.alpn);
  add_text(&o, "verify", peer.verify);
  add_text(&o, "name", peer.name);
  json::Array chain, facts;
  for (const Certificate& c : report.chain) chain.push_back(value_of(c));
  for (const TlsFact& f : report.facts) facts.push_back(json::Object{{"id", tls_fact_id(f.id)}, {"at", f.at}});
  o["chain"] = std::move(chain);
  o["chain_total"] = report.chain_total;
  o["facts"] = std::move(facts);
  return o;
}

}  // namespace h5i::websec
