// What is told of a peer's certificates: true ones, wrong ones, hostile ones.
#include "plugins/websec-http/tls/facts.hpp"

#include <openssl/err.h>

#include "plugins/websec-http/text/show.hpp"
#include "tests/websec/certificates.hpp"

using namespace h5i;
using namespace h5i::test;
using namespace h5i::websec;

namespace {

constexpr int64_t kNow = 1'800'000'000;

EVP_PKEY* leaf_key() {
  static Key key = ec_key();
  return key.get();
}
EVP_PKEY* root_key() {
  static Key key = ec_key();
  return key.get();
}
const std::vector<NamePart> kRoot = {{NID_commonName, "Root"}};
CertificateOf leaf() {
  CertificateOf of;
  of.issuer = kRoot;
  of.names = {{GEN_DNS, "a.test"}, {GEN_DNS, "*.b.test"}, {GEN_IPADD, std::string("\xc0\0\x02\x01", 4)}};
  of.key = leaf_key();
  of.signer = root_key();
  return of;
}
CertificateOf root() {
  CertificateOf of;
  of.subject = kRoot;
  of.key = root_key();
  return of;
}
TlsPeer peer(std::vector<std::string> chain, const char* name = "a.test") {
  TlsPeer p;
  p.version = "TLSv1.3";
  p.cipher = "TLS_AES_256_GCM_SHA384";
  p.name = name;
  p.chain = std::move(chain);
  return p;
}
std::string facts(const TlsPeer& p, int64_t now = kNow) {
  std::string out;
  for (const TlsFact& f : read_tls(p, now).facts) out += (out.empty() ? "" : " ") + std::string(tls_fact_id(f.id)) + "@" + std::to_string(f.at);
  return out;
}
std::string facts_of(const CertificateOf& of, const char* name = "a.test") { return facts(peer({certificate(of), certificate(root())}, name)); }

// No control, no deceptive character, valid UTF-8, in whatever string of it.
void safe(const json::Value& v) {
  if (v.is_string()) {
    Shown s = show(v.string(), {.cap = SIZE_MAX});
    INFO(s.text);
    CHECK(s.escaped == 0);
    CHECK(s.text == v.string());
  }
  for (const json::Value& e : v.array()) safe(e);
  for (const auto& [k, e] : v.object()) safe(e);
}
json::Value told(const TlsPeer& p) {
  json::Value v = tls_value(p, read_tls(p, kNow));
  safe(v);
  std::string text;
  json::write(text, v);
  CHECK(text.size() < 32 * 1024);
  return v;
}

}  // namespace

TEST_CASE("a sound chain is told whole, and no fact of it") {
  TlsPeer p = peer({certificate(leaf()), certificate(root())});
  p.alpn = "h2";
  p.verify = "ok";
  json::Value v = told(p);
  CHECK(v["version"].string() == "TLSv1.3");
  CHECK(v["cipher"].string() == "TLS_AES_256_GCM_SHA384");
  CHECK(v["alpn"].string() == "h2");
  CHECK(v["verify"].string() == "ok");
  CHECK(v["name"].string() == "a.test");
  CHECK(v["facts"].array().empty());
  CHECK(v["chain_total"].integer() == 2);
  REQUIRE(v["chain"].array().size() == 2);
  const json::Value& c = v["chain"].array()[0];
  CHECK(c["subject"].string() == "CN=a.test");
  CHECK(c["issuer"].string() == "CN=Root");
  CHECK(c["names"].array() == json::Array{"dns:a.test", "dns:*.b.test", "ip:192.0.2.1"});
  CHECK(c["names_total"].integer() == 3);
  CHECK(c["not_before"].string() == "2023-11-14T22:13:20Z");
  CHECK(c["not_after"].string() == "2030-03-17T17:46:40Z");
  CHECK(c["key"].string() == "EC prime256v1");
  CHECK(c["key_bits"].integer() == 256);
  CHECK(c["signature"].string() == "ecdsa-with-SHA256");
  CHECK_FALSE(c["self_signed"].boolean(true));
  CHECK(v["chain"].array()[1]["self_signed"].boolean());
  unsigned char digest[32];
  EVP_Digest(p.chain[0].data(), p.chain[0].size(), digest, nullptr, EVP_sha256(), nullptr);
  char first[5];
  snprintf(first, sizeof first, "%02x%02x", digest[0], digest[1]);
  CHECK(c["sha256"].string().size() == 64);
  CHECK(c["sha256"].string().starts_with(first));
}

TEST_CASE("the name that was meant: alternative names alone count, a star is one label, an address is an address") {
  for (const char* good : {"a.test", "A.Test", "a.test.", "x.b.test", "192.0.2.1"}) CHECK(facts_of(leaf(), good) == "");
  for (const char* bad : {"b.test", "x.y.b.test", "aa.test", "192.0.2.2", "2001:db8::1", "", "test", ".a.test"})
    CHECK(facts_of(leaf(), bad) == "tls-name-mismatch@0");
  CertificateOf six = leaf();
  six.names = {{GEN_IPADD, std::string("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16)}};
  CHECK(facts_of(six, "2001:db8::1") == "");
  CHECK(facts_of(six, "[2001:db8::1]") == "");
  CHECK(told(peer({certificate(six)}))["chain"].array()[0]["names"].array() == json::Array{"ip:2001:db8:0:0:0:0:0:1"});
  // An address in a dns name is a name.
  CertificateOf dotted = leaf();
  dotted.names = {{GEN_DNS, "192.0.2.1"}};
  CHECK(facts_of(dotted, "192.0.2.1") == "tls-name-mismatch@0");
  CertificateOf partial = leaf();
  partial.names = {{GEN_DNS, "a*.test"}, {GEN_DNS, "*"}, {GEN_DNS, "*.test"}};
  CHECK(facts_of(partial, "ab.test").find("tls-name-mismatch") != std::string::npos);
  CertificateOf none = leaf();
  none.names.clear();
  CHECK(facts_of(none) == "tls-name-mismatch@0 tls-no-names@0");
}

TEST_CASE("times before and behind, and those that are none") {
  std::vector<std::string> chain = {certificate(leaf()), certificate(root())};
  CHECK(facts(peer(chain), 1'900'000'000) == "");
  CHECK(facts(peer(chain), 1'900'000'001) == "tls-expired@0 tls-expired@1");
  CHECK(facts(peer(chain), 1'700'000'000) == "");
  CHECK(facts(peer(chain), 1'699'999'999) == "tls-not-yet-valid@0 tls-not-yet-valid@1");
  CertificateOf of = leaf();
  std::swap(of.not_before, of.not_after);
  CHECK(facts_of(of) == "tls-expired@0 tls-not-yet-valid@0 tls-validity@0");
  of = leaf();
  of.raw_not_after = "never";
  CHECK(facts_of(of) == "tls-validity@0");
  CHECK_FALSE(told(peer({certificate(of)}))["chain"].array()[0].object().contains("not_after"));
  CHECK(utc_text(253402300799) == "9999-12-31T23:59:59Z");
  CHECK(utc_text(0) == "1970-01-01T00:00:00Z");
}

TEST_CASE("keys and signatures that are too weak") {
  Key small = rsa_key(1024), good = rsa_key(2048), curve = ec_key("secp192k1");
  CertificateOf of = leaf();
  of.key = small.get();
  CHECK(facts_of(of) == "tls-weak-key@0");
  CHECK(told(peer({certificate(of)}))["chain"].array()[0]["key"].string() == "RSA");
  CHECK(told(peer({certificate(of)}))["chain"].array()[0]["key_bits"].integer() == 1024);
  of.key = good.get();
  CHECK(facts_of(of) == "");
  of.key = curve.get();
  REQUIRE(of.key);
  CHECK(facts_of(of) == "tls-weak-key@0");
  for (const EVP_MD* digest : {EVP_sha1(), EVP_md5()}) {
    of = leaf();
    of.signer = good.get();
    of.digest = digest;
    CHECK(facts_of(of) == "tls-weak-signature@0");
  }
  // A root's signature on itself carries nothing.
  CertificateOf top = root();
  top.digest = EVP_sha1();
  CHECK(facts(peer({certificate(leaf()), certificate(top)})) == "");
}

TEST_CASE("a self-signed certificate, and one that only says so") {
  CertificateOf of = leaf();
  of.issuer.clear();
  of.signer = nullptr;
  CHECK(facts(peer({certificate(of)})) == "tls-self-signed@0");
  of.signer = root_key();
  CHECK(facts(peer({certificate(of)})) == "");
  CHECK_FALSE(told(peer({certificate(of)}))["chain"].array()[0]["self_signed"].boolean(true));
}

TEST_CASE("chains: none, out of order, too long, not certificates") {
  CHECK(facts(peer({})) == "tls-no-certificate@0");
  std::string one = certificate(leaf()), top = certificate(root());
  CHECK(facts(peer({one})) == "");
  CHECK(facts(peer({one, one, top})) == "tls-chain-order@0");
  std::vector<std::string> many(20, top);
  many.insert(many.begin(), one);
  CHECK(facts(peer(many)) == "tls-chain-long@0");
  CHECK(told(peer(many))["chain"].array().size() == 8);
  CHECK(told(peer(many))["chain_total"].integer() == 21);
  CHECK(facts(peer({"", top})) == "tls-certificate-unreadable@0");
  CHECK(facts(peer({"0\x82", one.substr(0, one.size() - 1)})) == "tls-certificate-unreadable@0 tls-certificate-unreadable@1");
  json::Value v = told(peer({"abc"}));
  CHECK(v["chain"].array()[0]["unreadable_bytes"].integer() == 3);
  CHECK(v["chain"].array()[0]["sha256"].string() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(facts(peer({one + "x", top})) == "tls-trailing-bytes@0");
  CHECK(told(peer({one + "x"}))["chain"].array()[0]["sha256"] == told(peer({one}))["chain"].array()[0]["sha256"]);
  CHECK(facts(peer({std::string(65537, '0')})) == "tls-certificate-unreadable@0");
}

TEST_CASE("old versions and suites that hide nothing") {
  std::vector<std::string> chain = {certificate(leaf()), certificate(root())};
  auto with = [&](const char* version, const char* cipher) {
    TlsPeer p = peer(chain);
    p.version = version;
    p.cipher = cipher;
    return facts(p);
  };
  for (const char* old : {"SSLv3", "TLSv1", "TLSv1.1"}) CHECK(with(old, "AES128-SHA") == "tls-old-version@0");
  for (const char* good : {"AES128-SHA", "ECDHE-RSA-CHACHA20-POLY1305", "TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"})
    CHECK(with("TLSv1.2", good) == "");
  for (const char* weak : {"NULL-SHA256", "ADH-AES128-SHA", "RC4-MD5", "DES-CBC3-SHA", "ECDHE-RSA-DES-CBC3-SHA", "EXP-RC2-CBC-MD5", "ECDHE-RSA-NULL-SHA"})
    CHECK(with("TLSv1.2", weak) == "tls-weak-cipher@0");
}

TEST_CASE("a NUL in a name neither ends it nor matches what stands before it") {
  CertificateOf of = leaf();
  of.names = {{GEN_DNS, std::string("a.test\0.evil.test", 17)}};
  CHECK(facts_of(of) == "tls-name-bytes@0 tls-name-mismatch@0");
  CHECK(told(peer({certificate(of)}))["chain"].array()[0]["names"].array() == json::Array{"dns:a.test\\x00.evil.test"});
  of = leaf();
  of.subject = {{NID_commonName, std::string("a.test\0x", 8)}};
  CHECK(facts_of(of) == "tls-name-bytes@0");
  CHECK(told(peer({certificate(of)}))["chain"].array()[0]["subject"].string() == "CN=a.test\\x00x");
}

TEST_CASE("names that are no text, turn the line around or drive a terminal are escapes, and one part cannot pass for two") {
  auto subject = [](const NamePart& part) {
    CertificateOf of = leaf();
    of.subject = {part, {NID_organizationName, "O"}};
    TlsPeer p = peer({certificate(of)});
    bool odd = read_tls(p, kNow).has(TlsFactId::NAME_BYTES);
    return told(p)["chain"].array()[0]["subject"].string() + (odd ? " !" : "");
  };
  CHECK(subject({NID_commonName, "\xff\xfe", V_ASN1_BIT_STRING}) == "CN=\\xff\\xfe, O=O !");
  CHECK(subject({NID_commonName, "\x1b[31mred"}) == "CN=\\x1b[31mred, O=O !");
  CHECK(subject({NID_commonName, "a\xe2\x80\xaetset"}) == "CN=a\\u{202e}tset, O=O !");
  CHECK(subject({NID_commonName, "a, O=Evil"}) == "CN=a\\, O\\=Evil, O=O");
  CHECK(subject({NID_commonName, "b\xc3\xbc"}) == "CN=b\xc3\xbc, O=O");
  CHECK(subject({NID_commonName, std::string("\0a\0b", 4), V_ASN1_BMPSTRING}) == "CN=ab, O=O");
  CHECK(subject({NID_commonName, "b\xfc", V_ASN1_T61STRING}) == "CN=b\xc3\xbc, O=O");
  // A text that is not in its own encoding is no certificate for OpenSSL.
  CertificateOf of = leaf();
  of.subject = {{NID_commonName, "ZZZ"}};
  std::string der = certificate(of);
  der.replace(der.find("ZZZ"), 2, "\xff\xfe");
  CHECK(facts(peer({der})) == "tls-certificate-unreadable@0");
  of = leaf();
  of.names = {{GEN_URI, "http://a\n"}, {GEN_EMAIL, "\x07@a.test"}, {GEN_DNS, "\xe2\x80\x8b"}, {GEN_IPADD, "abc"}};
  CHECK(told(peer({certificate(of)}))["chain"].array()[0]["names"].array() ==
        json::Array{"uri:http://a\\n", "email:\\x07@a.test", "dns:\\u{200b}", "ip:3 bytes"});
}

TEST_CASE("what a peer says of the connection is shown, too") {
  TlsPeer p = peer({});
  p.alpn = "h\x1b]0;x\x07";
  p.verify = std::string(5000, 'v');
  json::Value v = told(p);
  CHECK(v["alpn"].string() == "h\\x1b]0;x\\x07");
  CHECK(v["verify"].string().size() < 300);
}

TEST_CASE("a thousand names and endless subjects stay within their bounds and say how many there were") {
  CertificateOf of = leaf();
  of.names.clear();
  for (int i = 0; i < 1500; i++) of.names.emplace_back(GEN_DNS, "n" + std::to_string(i) + ".a.test");
  of.names.emplace_back(GEN_DNS, "last.test");
  CHECK(facts_of(of, "last.test") == "tls-many-names@0");
  json::Value v = told(peer({certificate(of)}));
  CHECK(v["chain"].array()[0]["names"].array().size() == 32);
  CHECK(v["chain"].array()[0]["names_total"].integer() == 1501);

  of = leaf();
  of.names.clear();
  for (int i = 0; i < 32; i++) of.names.emplace_back(GEN_DNS, std::string(400, '\x01'));
  of.subject.clear();
  for (int i = 0; i < 60; i++) of.subject.push_back({NID_organizationalUnitName, std::string(50, '\\')});
  of.issuer = of.subject;
  std::vector<std::string> chain(8, certificate(of));
  v = told(peer(chain));
  CHECK(v["chain"].array()[0]["subject"].string().ends_with("..."));
  CHECK(v["chain"].array()[0]["subject"].string().size() < 310);
  CHECK(v["chain"].array()[1]["names"].array().size() == 2);
  // More than one certificate may be is not parsed.
  of = leaf();
  of.names.clear();
  for (int i = 0; i < 5000; i++) of.names.emplace_back(GEN_DNS, "name" + std::to_string(i) + ".a.test");
  CHECK(facts(peer({certificate(of)})) == "tls-certificate-unreadable@0");
}

TEST_CASE("alternative names that cannot be read are told") {
  CertificateOf of = leaf();
  of.names.clear();
  for (const char* raw : {"\x30\x05\x82", "\x04\x01x", "garbage"}) {
    of.raw_names = raw;
    CHECK(facts_of(of) == "tls-names-unreadable@0 tls-name-mismatch@0");
  }
  of.raw_names = std::string("0\0", 2);
  CHECK(facts_of(of) == "tls-name-mismatch@0 tls-no-names@0");
}

TEST_CASE("OpenSSL's errors of a certificate are not left for who asks it about a connection") {
  ERR_clear_error();
  CertificateOf of = leaf();
  of.raw_names = "garbage";
  of.names.clear();
  facts(peer({"garbage", certificate(of)}));
  facts(peer({certificate(of)}));
  CHECK(ERR_peek_error() == 0);
  // Those that were there before stay.
  ERR_put_error(ERR_LIB_USER, 0, 7, "", 0);
  facts(peer({"garbage"}));
  CHECK(ERR_GET_REASON(ERR_get_error()) == 7);
  CHECK(ERR_get_error() == 0);
}

TEST_CASE("every TLS fact has an id and a meaning of its own") {
  std::vector<std::string_view> seen;
  for (size_t i = 0; i < tls_fact_kinds(); i++) {
    auto id = static_cast<TlsFactId>(i);
    CHECK(tls_fact_id(id).starts_with("tls-"));
    CHECK(!tls_fact_meaning(id).empty());
    CHECK(std::find(seen.begin(), seen.end(), tls_fact_id(id)) == seen.end());
    seen.push_back(tls_fact_id(id));
  }
}
