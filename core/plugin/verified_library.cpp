#include <sys/stat.h>

#include "core/os/fs.hpp"
#include "core/plugin/elf_lint.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/registry.hpp"
#include "core/plugin/trusted_path.hpp"

namespace h5i::plugin {
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
    return make_error(
        Errc::PLUGIN_DIGEST, info.library + " is not what its manifest describes",
        "manifest " + std::to_string(info.manifest["size"].integer()) + " bytes, file " + std::to_string(bytes.size()));
  ElfFacts facts = H5I_TRY(read_elf(bytes));
  H5I_TRY(lint_plugin(facts, manifest_list(info.manifest, "needs"), info.library));
  out.digest = info.digest;
  // An owner can rewrite the inode under a reader's eyes. Root's own files are root's to keep, for everybody but root.
  if (st.st_uid != 0 || euid == 0) {
    out.fd = H5I_TRY(os::sealed_memfd("h5i-plugin", bytes));
    out.sealed_copy = true;
  }
  return out;
}

}  // namespace h5i::plugin
