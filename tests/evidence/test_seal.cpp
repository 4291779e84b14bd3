#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/text.hpp"
#include "core/evidence/sealing.hpp"
#include "core/evidence/verify.hpp"
#include "tests/evidence/children.hpp"
#include "tests/evidence/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::evidence;
using namespace h5i::test;

namespace {

void append(const std::string& path, int records) {
  auto log = Log::open(path);
  REQUIRE(log.ok());
  for (int i = 0; i < records; i++) {
    Record r;
    r.kind = "note";
    r.body = json::Object{{"n", i}};
    REQUIRE(log->append(r).ok());
  }
}

// A host with its own key store, and boxes on it.
struct Host {
  Scratch s;
  std::string state = s.path("state"), config = s.path("config");
  std::string box(const std::string& name, int records) {
    mkdir(s.path(name).c_str(), 0700);
    append(s.path(name + "/log.jsonl"), records);
    return s.path(name + "/log.jsonl");
  }
  Seal seal(const std::string& log) {
    auto r = seal_log(log, state);
    if (!r) FAIL(r.error().what << ": " << r.error().evidence);
    return r->seal;
  }
  LogVerdict verify(const std::string& log, bool own_store = true, std::vector<std::string> extra = {}) {
    auto keys = accepted_keys(state, config, extra);
    REQUIRE(keys.ok());
    auto v = verify_log({log, "", own_store ? state : "", *keys});
    REQUIRE(v.ok());
    return *v;
  }
  // A copy elsewhere, with its seal, after `change` was made to its lines.
  std::string copy(const std::string& log, const std::function<void(std::vector<std::string>&)>& change,
                   bool with_seal = true) {
    auto lines = lines_of(read_file(log));
    change(lines);
    static int n = 0;
    std::string to = s.path("copy" + std::to_string(n++));
    spill(to, joined(lines));
    if (with_seal) spill(to + ".seal", read_file(log + ".seal"));
    return to;
  }
};

void keep(std::vector<std::string>&) {}

}  // namespace

TEST_CASE("a sealed log verifies with the log, its seal and the public key alone") {
  Host h;
  std::string log = h.box("a", 4);
  h.seal(log);
  std::string pub = h.s.path("host.pub");
  spill(pub, read_file(h.state + "/keys/host.pub"));
  auto keys = accepted_keys(h.s.path("nowhere"), h.s.path("nowhere"), {pub});
  REQUIRE(keys.ok());
  auto v = verify_log({h.copy(log, keep), "", "", *keys});
  REQUIRE(v.ok());
  CHECK(v->sealed());
  CHECK(v->seal.count == 4);
  CHECK(v->key_from == pub);
  auto none = verify_log({h.copy(log, keep), "", "", {}});
  REQUIRE(none->error);
  CHECK(none->error->code == Errc::KEY_UNTRUSTED);
}

TEST_CASE("every kind of tampering with a sealed copy is named by its record") {
  Host h;
  std::string log = h.box("a", 6), other = h.box("b", 6);
  h.seal(log);
  h.seal(other);
  auto foreign = lines_of(read_file(other))[3];
  struct Case {
    const char* name;
    std::function<void(std::vector<std::string>&)> change;
    Errc code;
    uint64_t index;
  } cases[] = {
      {"one byte", [](auto& l) { l[2][10] ^= 1; }, Errc::LOG_CHAIN, 2},
      {"one byte of the last", [](auto& l) { l[5][10] ^= 1; }, Errc::LOG_CHAIN, 5},
      {"last removed", [](auto& l) { l.pop_back(); }, Errc::LOG_TRUNCATED, 5},
      {"two removed", [](auto& l) { l.resize(4); }, Errc::LOG_TRUNCATED, 4},
      {"all removed", [](auto& l) { l.clear(); }, Errc::LOG_TRUNCATED, 0},
      {"first removed", [](auto& l) { l.erase(l.begin()); }, Errc::LOG_CHAIN, 0},
      {"two swapped", [](auto& l) { std::swap(l[1], l[4]); }, Errc::LOG_CHAIN, 1},
      {"from another box", [&](auto& l) { l[3] = foreign; }, Errc::LOG_FOREIGN, 3},
      {"first from another box", [&](auto& l) { l[0] = lines_of(read_file(other))[0]; }, Errc::LOG_FOREIGN, 0},
      {"one doubled", [](auto& l) { l.push_back(l.back()); }, Errc::LOG_CHAIN, 6},
  };
  CHECK(h.verify(h.copy(log, keep)).sealed());  // the control
  for (const Case& c : cases)
    for (bool own_store : {true, false}) {
      INFO(c.name);
      auto v = h.verify(h.copy(log, c.change), own_store);
      REQUIRE(v.error);
      CHECK(v.error->code == c.code);
      CHECK(v.chain.bad == c.index);
      CHECK_FALSE(v.sealed());
    }
}

TEST_CASE("a copy without its seal proves its end only on the host that kept the seal") {
  Host h;
  std::string log = h.box("a", 3);
  h.seal(log);
  auto away = h.verify(h.copy(log, keep, false), false);
  CHECK_FALSE(away.error);
  CHECK_FALSE(away.sealed());
  CHECK(unsealed_error("x", away).code == Errc::LOG_UNSEALED);
  auto here = h.verify(h.copy(log, keep, false));
  CHECK(here.sealed());
  CHECK(here.seal_from == "kept by this host");
  auto cut = h.verify(h.copy(
      log, [](auto& l) { l.pop_back(); }, false));
  REQUIRE(cut.error);
  CHECK(cut.error->code == Errc::LOG_TRUNCATED);
  CHECK(cut.chain.bad == 2);
}

TEST_CASE("rolling a log back together with its older seal is seen by the host") {
  Host h;
  std::string log = h.box("a", 3);
  h.seal(log);
  std::string old_log = read_file(log), old_seal = read_file(log + ".seal");
  append(log, 2);
  h.seal(log);
  spill(log, old_log);
  spill(log + ".seal", old_seal);
  auto v = h.verify(log);
  REQUIRE(v.error);
  CHECK(v.error->code == Errc::LOG_TRUNCATED);
  CHECK(v.chain.bad == 3);
}

TEST_CASE("what was appended after the seal is not proven") {
  Host h;
  std::string log = h.box("a", 3);
  h.seal(log);
  append(log, 2);
  auto v = h.verify(log);
  CHECK_FALSE(v.error);
  CHECK_FALSE(v.sealed());
  CHECK(v.unproven() == 2);
  CHECK(seal_state(log)->sealed == 3);
  CHECK_FALSE(seal_state(log)->whole());
  h.seal(log);
  CHECK(h.verify(log).sealed());
  CHECK(seal_state(log)->whole());
}

TEST_CASE("a seal that was changed in any member is refused") {
  Host h;
  std::string log = h.box("a", 3), other = h.box("b", 5);
  h.seal(log);
  h.seal(other);
  std::string good = read_file(log + ".seal");
  for (size_t i = 0; i + 1 < good.size(); i++) {  // the newline at its end is not part of the document
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    std::string copy = h.copy(log, keep);
    spill(copy + ".seal", bad);
    auto v = h.verify(copy, false);
    INFO("byte " << i);
    REQUIRE(v.error);
    CHECK_FALSE(v.sealed());
  }
  // A seal of another log of the same host, rightly signed.
  std::string copy = h.copy(log, keep);
  spill(copy + ".seal", read_file(other + ".seal"));
  auto v = h.verify(copy, false);
  REQUIRE(v.error);
  CHECK(v.error->code == Errc::LOG_FOREIGN);
  // One that a stranger signed.
  Host stranger;
  std::string theirs = stranger.s.path("log.jsonl");
  spill(theirs, read_file(log));
  stranger.seal(theirs);
  spill(copy + ".seal", read_file(theirs + ".seal"));
  v = h.verify(copy, false);
  REQUIRE(v.error);
  CHECK(v.error->code == Errc::KEY_UNTRUSTED);
  // A stranger's signature under our key's name.
  Seal forged = *read_seal(theirs + ".seal");
  forged.key_id = read_seal(log + ".seal")->key_id;
  spill(copy + ".seal", forged.to_bytes());
  v = h.verify(copy, false);
  REQUIRE(v.error);
  CHECK(v.error->code == Errc::LOG_SEAL);
}

TEST_CASE("a log that was changed since its last seal is not sealed again") {
  Host h;
  for (int kind = 0; kind < 5; kind++) {
    std::string log = h.box("box" + std::to_string(kind), 4);
    h.seal(log);
    append(log, 2);
    auto lines = lines_of(read_file(log));
    if (kind == 0) lines[5][12] ^= 1, lines[4][12] ^= 1;  // in the part that is not sealed yet
    if (kind == 1) lines.resize(3);                       // shorter than the seal
    if (kind == 2) lines[3][12] ^= 1;                     // the sealed head itself
    if (kind == 3) std::swap(lines[4], lines[5]);
    if (kind == 4) lines = lines_of(read_file(h.box("other", 9)));  // another log altogether
    spill(log, joined(lines));
    std::string before = read_file(log + ".seal");
    auto r = seal_log(log, h.state);
    INFO(kind);
    CHECK_FALSE(r.ok());
    CHECK(read_file(log + ".seal") == before);
  }
}

TEST_CASE("many that seal while others append never leave an older seal") {
  Host h;
  std::string log = h.box("a", 1);
  h.seal(log);
  in_children(8, [&](int c) {
    uint64_t last = 0;
    for (int i = 0; i < 6; i++) {
      if (c % 2) {
        auto l = Log::open(log);
        Record r;
        r.kind = "note";
        if (!l || !l->append(r)) return 1;
      }
      auto sealed = seal_log(log, h.state);
      if (!sealed) return 2;
      if (sealed->seal.count < last) return 3;
      last = sealed->seal.count;
      auto seen = read_seal(log + ".seal");
      if (!seen || seen->count < last) return 4;
    }
    return 0;
  });
  auto v = h.verify(log);
  CHECK(v.sealed());
  CHECK(v.chain.head.count == 25);
}

TEST_CASE("sealing twice signs once, and puts a lost seal back") {
  Host h;
  std::string log = h.box("a", 2);
  CHECK(seal_log(log, h.state)->made);
  CHECK_FALSE(seal_log(log, h.state)->made);
  REQUIRE(unlink((log + ".seal").c_str()) == 0);
  CHECK_FALSE(seal_log(log, h.state)->made);
  CHECK(h.verify(log, false).sealed());
  struct stat st {};
  REQUIRE(stat((log + ".seal").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
}

TEST_CASE("the host key is made once, privately, however many start at once") {
  Host h;
  std::vector<std::pair<pid_t, int>> children;
  for (int c = 0; c < 6; c++) {
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    pid_t p = fork();
    REQUIRE(p >= 0);
    if (p == 0) {
      auto k = HostKey(h.state).load_or_create();
      std::string id = k ? k->public_key().id() : "failed";
      _exit(write(fds[1], id.data(), id.size()) == 64 ? 0 : 1);
    }
    close(fds[1]);
    children.emplace_back(p, fds[0]);
  }
  std::set<std::string> ids;
  for (auto [p, fd] : children) {
    char buf[65] = {};
    CHECK(read(fd, buf, 64) == 64);
    ids.insert(buf);
    close(fd);
    int st = 0;
    waitpid(p, &st, 0);
    CHECK(st == 0);
  }
  CHECK(ids.size() == 1);
  struct stat st {};
  REQUIRE(stat((h.state + "/keys/host.key").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  REQUIRE(stat((h.state + "/keys").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
  size_t files = 0;
  for (auto& e : std::filesystem::directory_iterator(h.state + "/keys")) files += e.is_regular_file();
  CHECK(files == 2);
}

TEST_CASE("a host key that others may read is not used") {
  Host h;
  HostKey host(h.state);
  CHECK(host.load().error().code == Errc::KEY_MISSING);
  REQUIRE(host.load_or_create().ok());
  REQUIRE(host.load().ok());
  REQUIRE(chmod((h.state + "/keys/host.key").c_str(), 0640) == 0);
  CHECK(host.load().error().code == Errc::DENIED);
  CHECK(host.load_or_create().error().code == Errc::DENIED);
  spill(h.state + "/keys/host.key", "junk");
  REQUIRE(chmod((h.state + "/keys/host.key").c_str(), 0600) == 0);
  CHECK(host.load().error().code == Errc::CORRUPT);
}

TEST_CASE("after a rotation old seals verify and new ones use the new key") {
  Host h;
  std::string a = h.box("a", 2), b = h.box("b", 2);
  h.seal(a);
  std::string old_key = read_seal(a + ".seal")->key_id;
  auto fresh = HostKey(h.state).rotate();
  REQUIRE(fresh.ok());
  CHECK(fresh->public_key().id() != old_key);
  h.seal(b);
  CHECK(read_seal(b + ".seal")->key_id == fresh->public_key().id());
  auto v = h.verify(a);
  CHECK(v.sealed());
  CHECK(v.key_from == "this host, retired");
  append(a, 1);
  h.seal(a);
  CHECK(h.verify(a).key_from == "this host");
  CHECK(published_head(a, h.state)->public_key_bytes == fresh->public_key().pem());
  CHECK(published_head(a, h.state)->seal_bytes == read_file(a + ".seal"));
}

TEST_CASE("a key that somebody else could have put there is not believed, in words that name it") {
  Host h, other;
  std::string log = h.box("b", 3), theirs = other.box("b", 3);
  h.seal(log);
  other.seal(theirs);
  auto stranger = PublicKey::from_pem(read_file(other.state + "/keys/host.pub"));
  REQUIRE(stranger.ok());
  REQUIRE(HostKey(h.state).rotate().ok());
  REQUIRE(TrustStore(h.config).add(*stranger).ok());
  CHECK(h.verify(theirs, false).key_from == "trusted");  // controls
  CHECK(h.verify(log).key_from == "this host, retired");
  std::string trust = h.config + "/trust/keys", retired = h.state + "/keys/retired";
  std::string key = trust + "/" + stranger->id() + ".pub";
  auto refused = [&](const std::string& path, mode_t mode, mode_t before) {
    INFO(path << " " << std::oct << mode);
    REQUIRE(chmod(path.c_str(), mode) == 0);
    auto keys = accepted_keys(h.state, h.config, {});
    REQUIRE_FALSE(keys.ok());
    CHECK(keys.error().code == Errc::DENIED);
    CHECK(keys.error().what.find(path) != std::string::npos);
    REQUIRE(chmod(path.c_str(), before) == 0);
    CHECK(accepted_keys(h.state, h.config, {}).ok());
  };
  refused(trust, 0777, 0700);
  refused(trust, 0770, 0700);
  refused(key, 0666, 0644);
  refused(h.config, 0777, 0700);
  refused(retired, 0777, 0700);
  if (geteuid() == 0) {
    REQUIRE(chown(key.c_str(), 65533, 65533) == 0);
    auto keys = accepted_keys(h.state, h.config, {});
    REQUIRE_FALSE(keys.ok());
    CHECK(keys.error().what.find("belongs to somebody else") != std::string::npos);
    REQUIRE(chown(key.c_str(), 0, 0) == 0);
  }
  std::filesystem::rename(key, key + ".real");
  std::filesystem::create_symlink(key + ".real", key);
  CHECK_FALSE(accepted_keys(h.state, h.config, {}).ok());
}

TEST_CASE("this host's key is the secret one's; host.pub counts only without it, and only when nobody else could write it") {
  Host h, other;
  std::string log = h.box("b", 3), forged = other.box("b", 3);
  h.seal(log);
  other.seal(forged);
  std::string pub = h.state + "/keys/host.pub";
  chmod((h.state + "/keys").c_str(), 0777);
  spill(pub, read_file(other.state + "/keys/host.pub"));
  CHECK(h.verify(log).key_from == "this host");
  CHECK(h.verify(forged, false).error.has_value());
  REQUIRE(unlink((h.state + "/keys/host.key").c_str()) == 0);
  auto keys = accepted_keys(h.state, h.config, {});
  REQUIRE_FALSE(keys.ok());
  CHECK(keys.error().code == Errc::DENIED);
  CHECK(keys.error().what.find(h.state + "/keys") != std::string::npos);
  chmod((h.state + "/keys").c_str(), 0700);
  keys = accepted_keys(h.state, h.config, {});  // control
  REQUIRE(keys.ok());
  CHECK(keys->size() == 1);
}

TEST_CASE("trust is given and taken by key") {
  Host mine, theirs;
  std::string log = theirs.box("a", 2);
  theirs.seal(log);
  CHECK(mine.verify(log).error->code == Errc::KEY_UNTRUSTED);
  auto key = PublicKey::from_pem(read_file(theirs.state + "/keys/host.pub"));
  REQUIRE(key.ok());
  TrustStore store(mine.config);
  CHECK(*store.add(*key));
  CHECK_FALSE(*store.add(*key));
  CHECK(mine.verify(log).sealed());
  CHECK(store.remove("1234567").error().code == Errc::KEY_UNTRUSTED);
  CHECK(*store.remove(key->id().substr(0, 8)) == key->id());
  CHECK(mine.verify(log).error->code == Errc::KEY_UNTRUSTED);
  CHECK(store.remove(key->id()).error().code == Errc::KEY_UNTRUSTED);
  // A file under a trusted key's name that holds another key.
  CHECK(*store.add(*key));
  spill(mine.config + "/trust/keys/" + key->id() + ".pub", PrivateKey::generate()->public_key().pem());
  CHECK(store.all().error().code == Errc::CORRUPT);
}

TEST_CASE("Ed25519 agrees with RFC 8032, section 7.1, test 3") {
  std::string seed, pub, message, expected;
  REQUIRE(unhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", &seed));
  REQUIRE(unhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", &pub));
  REQUIRE(unhex("af82", &message));
  REQUIRE(
      unhex("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e971"
            "6ed28dc0"
            "27beceea1ec40a",
            &expected));
  std::string der;
  REQUIRE(unhex("302e020100300506032b657004220420", &der));
  auto key =
      PrivateKey::from_pem("-----BEGIN PRIVATE KEY-----\n" + base64(der + seed) + "\n-----END PRIVATE KEY-----\n");
  REQUIRE(key.ok());
  CHECK(hex(key->public_key().raw.data(), 32) == hex(pub.data(), 32));
  CHECK(*key->sign(message) == expected);
  CHECK(signature_matches(key->public_key(), message, expected));
  expected[3] = static_cast<char>(expected[3] ^ 1);
  CHECK_FALSE(signature_matches(key->public_key(), message, expected));
}
