#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "core/plugin/elf_lint.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/registry.hpp"
#include "core/plugin/trusted_path.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3
#endif

namespace h5i::plugin {
namespace {

// A copy that nobody can change, its owner included. The descriptor is reopened read-only for whoever maps it.
Result<UniqueFd> sealed_copy(std::string_view bytes, const std::string& name) {
  int raw = memfd_create("h5i-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  if (raw < 0 && errno == EINVAL) raw = memfd_create("h5i-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (raw < 0)
    return make_error(Errc::PLUGIN_LOAD, "no private copy of " + name + " can be made",
                      std::string("memfd_create: ") + strerror(errno) + (errno == EACCES ? " (is vm.memfd_noexec 2?)" : ""),
                      "install the plugin as root, or set vm.memfd_noexec below 2");
  UniqueFd fd(raw);
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write the copy of " + name);
    done += static_cast<size_t>(n);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return sys_error("seal the copy of " + name);
  UniqueFd read_only(open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only) return sys_error("reopen the copy of " + name);
  return read_only;
}

}  // namespace

Result<VerifiedLibrary> open_verified(const PluginInfo& info, uid_t euid) {
  if (info.refused) return *info.refused;
  Believed believed{euid};
  size_t slash = info.library.rfind('/');
  UniqueFd dir = H5I_TRY(open_trusted_directory(info.library.substr(0, slash), believed));
  VerifiedLibrary out;
  out.fd = H5I_TRY(open_trusted_file(dir, info.library.substr(slash + 1), info.library, believed));
  struct stat st {};
  if (fstat(out.fd.get(), &st) != 0) return sys_error("fstat " + info.library);
  std::string bytes = H5I_TRY(read_all(out.fd, kMaxLibraryBytes, info.library));
  if (std::string found = sha256_hex(bytes); found != info.digest.value)
    return make_error(Errc::PLUGIN_DIGEST, info.library + " is not what its manifest describes",
                      "manifest " + info.digest.value + ", file " + found);
  if (static_cast<int64_t>(bytes.size()) != info.manifest["size"].integer())
    return make_error(Errc::PLUGIN_DIGEST, info.library + " is not what its manifest describes",
                      "manifest " + std::to_string(info.manifest["size"].integer()) + " bytes, file " + std::to_string(bytes.size()));
  ElfFacts facts = H5I_TRY(read_elf(bytes));
  H5I_TRY(lint_plugin(facts, manifest_list(info.manifest, "needs"), info.library));
  out.digest = info.digest;
  // An owner can rewrite the inode under a reader's eyes. Root's own files are root's to keep, for everybody but root.
  if (st.st_uid != 0 || euid == 0) {
    out.fd = H5I_TRY(sealed_copy(bytes, info.library));
    out.sealed_copy = true;
  }
  return out;
}

}  // namespace h5i::plugin
