#include "core/evidence/sealing.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include <optional>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"
#include "core/evidence/chain.hpp"
#include "core/evidence/files.hpp"
#include "core/os/beneath.hpp"

namespace h5i::evidence {
namespace {

// Held on the log's folder, which stays when files in it are renamed. Ends with the descriptor.
Result<UniqueFd> sealing_turn(const std::string& log_path) {
  std::string dir = parent_directory(log_path);
  UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return sys_error("cannot open " + printable(dir));
  while (flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return sys_error("cannot lock " + printable(dir));
  return fd;
}

// A seal that this host's key made for this log, or nothing. Whatever else lies there is not a reason to trust the log:
// it is checked from its first record instead.
std::optional<Seal> own_seal(const std::string& path, const std::string& log_id,
                             const std::map<std::string, PublicKey>& own) {
  auto s = read_seal(path);
  if (!s || s->log_id != log_id) return {};
  auto key = own.find(s->key_id);
  if (key == own.end() || !signature_matches(key->second, s->signed_bytes(), s->signature)) return {};
  return *s;
}

Result<void> flush_log(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return sys_error("cannot open " + printable(path));
  if (fdatasync(fd.get()) != 0) return sys_error("cannot flush " + printable(path));
  return {};
}

Result<void> store(const Seal& seal, const std::string& log_path, const std::string& state_dir) {
  std::string kept = kept_seal_path(state_dir, seal.log_id);
  H5I_TRY(make_directories(parent_directory(kept)));
  if (auto seals = os::open_directory(parent_directory(kept))) os::remove_dead_files(*seals);
  H5I_TRY(replace_file(kept, seal.to_bytes(), 0600));
  return replace_file(seal_path(log_path), seal.to_bytes(), 0600);
}

}  // namespace

Result<Sealed> seal_log(const std::string& log_path, const std::string& state_dir) {
  prctl(PR_SET_DUMPABLE, 0);  // from here on this process holds the secret key
  HostKey host(state_dir);
  PrivateKey key = H5I_TRY(host.load_or_create());
  auto own = H5I_TRY(host.retired());
  own[key.public_key().id()] = key.public_key();

  UniqueFd turn = H5I_TRY(sealing_turn(log_path));
  H5I_TRY(flush_log(log_path));
  Head head = H5I_TRY(read_head(log_path));
  if (head.count == 0)
    return make_error(Errc::INVALID, "the log " + printable(log_path) + " is empty", "nothing to sign");

  // A seal of ours that names another log means that the log itself was exchanged: signing would make that good.
  if (auto named = read_seal(seal_path(log_path));
      named && named->log_id != head.log_id && own_seal(seal_path(log_path), named->log_id, own))
    return make_error(Errc::LOG_FOREIGN, "the log " + printable(log_path) + " is not the one that was sealed here",
                      "sealed: " + named->log_id + ", now: " + printable(head.log_id, {.limit = 64}));
  std::optional<Seal> beside = own_seal(seal_path(log_path), head.log_id, own);
  std::optional<Seal> last = own_seal(kept_seal_path(state_dir, head.log_id), head.log_id, own);
  bool both = beside && last && beside->to_bytes() == last->to_bytes();
  if (beside && (!last || beside->count > last->count)) last = beside;

  ChainReport chain = last ? H5I_TRY(continue_chain(log_path, last->log_id, {last->count, last->head}, last->bytes))
                           : H5I_TRY(examine_chain(log_path));
  if (chain.broken) return chain_error(log_path, chain);
  if (last && last->count == chain.head.count && last->key_id == key.public_key().id()) {
    if (!both) H5I_TRY(store(*last, log_path, state_dir));
    return Sealed{*last, false};
  }
  Seal seal;
  seal.log_id = chain.head.log_id;
  seal.count = chain.head.count;
  seal.head = chain.head.digest;
  seal.bytes = chain.bytes;
  seal.time = rfc3339(realtime_ns());
  seal.key_id = key.public_key().id();
  seal.signature = H5I_TRY(key.sign(seal.signed_bytes()));
  H5I_TRY(store(seal, log_path, state_dir));
  return Sealed{seal, true};
}

Result<Published> published_head(const std::string& log_path, const std::string& state_dir) {
  Published out;
  Seal seal = H5I_TRY(read_seal(seal_path(log_path)));
  out.seal_bytes = seal.to_bytes();
  HostKey host(state_dir);
  auto known = H5I_TRY(host.retired());
  if (auto own = H5I_TRY(host.public_key())) known[own->id()] = *own;
  auto key = known.find(seal.key_id);
  if (key == known.end()) return make_error(Errc::KEY_MISSING, "the key of the log's seal is not here", seal.key_id);
  out.public_key_bytes = key->second.pem();
  return out;
}

}  // namespace h5i::evidence
