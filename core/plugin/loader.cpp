#include "core/plugin/loader.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/plugin/elf_lint.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/trusted_path.hpp"
#include <vector>

namespace h5i::plugin {
namespace {

Error abi(Errc code, const std::string& id, const std::string& why) {
  return make_error(code, "the plugin " + id + " does not keep the ABI", why);
}

bool equal(h5i_str text, const std::string& expected) {
  return text.len == expected.size() && text.ptr != nullptr && std::string_view(text.ptr, text.len) == expected;
}
std::string shown(h5i_str text) {
  constexpr uint64_t kShown = 64;
  return text.ptr == nullptr ? "" : printable(std::string_view(text.ptr, std::min(text.len, kShown)));
}

// The file's bytes, readable and no more, for as long as this lives.
class Mapped {
 public:
  static Result<Mapped> open(const UniqueFd& fd, const std::string& name) {
    struct stat st {};
    if (fstat(fd.get(), &st) != 0) return sys_error("fstat " + name);
    auto size = static_cast<uint64_t>(st.st_size);
    if (size == 0 || size > kMaxLibraryBytes)
      return make_error(Errc::PLUGIN_LOAD, name + " cannot be mapped", "its size is " + std::to_string(size));
    void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (at == MAP_FAILED) return sys_error("map " + name);
    return Mapped(at, size);
  }
  Mapped(Mapped&& o) noexcept : at_(std::exchange(o.at_, nullptr)), size_(o.size_) {}
  Mapped& operator=(Mapped&&) = delete;
  ~Mapped() {
    if (at_ != nullptr) munmap(at_, size_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(at_), size_}; }

 private:
  Mapped(void* at, uint64_t size) : at_(at), size_(size) {}
  void* at_;
  uint64_t size_;
};

std::string dl_text() {
  const char* e = dlerror();
  return e == nullptr ? "no reason given" : e;
}

}  // namespace

Result<void> check_entry(const h5i_plugin_entry* entry, uint64_t available, const Expected& expected) {
  const std::string& id = expected.id;
  constexpr uint64_t kSize = sizeof(h5i_plugin_entry);
  if (available < kSize || entry->struct_size < kSize || entry->struct_size > available)
    return abi(Errc::PLUGIN_ABI_SIZE, id,
               "its entry says " + (available >= sizeof(uint32_t) ? std::to_string(entry->struct_size) : "?") +
                   " bytes, has " + std::to_string(available) + ", and this ABI needs " + std::to_string(kSize));
  if (entry->abi_major != H5I_ABI_MAJOR)
    return abi(Errc::PLUGIN_ABI_MAJOR, id,
               "it is for major version " + std::to_string(entry->abi_major) + ", this host has " +
                   std::to_string(H5I_ABI_MAJOR));
  if (entry->min_host_minor > H5I_ABI_MINOR)
    return abi(Errc::PLUGIN_ABI_MAJOR, id,
               "it needs a host of minor version " + std::to_string(entry->min_host_minor) + ", this one has " +
                   std::to_string(H5I_ABI_MINOR));
  if (!equal(entry->id, id)) return abi(Errc::PLUGIN_ID, id, "the library says that it is " + shown(entry->id));
  if (!equal(entry->version, expected.version))
    return abi(Errc::PLUGIN_ID, id,
               "the library says version " + shown(entry->version) + ", the manifest " + expected.version);
  if (entry->open == nullptr) return abi(Errc::PLUGIN_SLOT, id, "its entry has no open");
  if (entry->close == nullptr) return abi(Errc::PLUGIN_SLOT, id, "its entry has no close");
  if (entry->get_interface == nullptr) return abi(Errc::PLUGIN_SLOT, id, "its entry has no get_interface");
  return {};
}

namespace {

struct Slot {
  const char* name;
  bool present;
};

// What both kinds of interface begin with; the functions only when that holds.
template <class T>
Result<const T*> checked(const void* interface, const std::string& id, std::vector<Slot> (*slots)(const T&)) {
  auto* t = static_cast<const T*>(interface);
  auto bad = [&](Errc code, const std::string& why) { return make_error(code, "the plugin's " + id + " does not keep the ABI", why); };
  if (t == nullptr) return bad(Errc::PLUGIN_SLOT, "the plugin has no such interface");
  if (t->struct_size < sizeof(T)) return bad(Errc::PLUGIN_ABI_SIZE, "it says " + std::to_string(t->struct_size) + " bytes, this ABI needs " + std::to_string(sizeof(T)));
  if (t->revision != 1) return bad(Errc::PLUGIN_ABI_MAJOR, "revision " + std::to_string(t->revision));
  for (const Slot& slot : slots(*t))
    if (!slot.present) return bad(Errc::PLUGIN_SLOT, std::string("it has no ") + slot.name);
  return t;
}

}  // namespace

Result<const h5i_tier*> check_tier(const void* interface) {
  return checked<h5i_tier>(interface, H5I_TIER_INTERFACE, [](const h5i_tier& t) {
    return std::vector<Slot>{{"probe", t.probe != nullptr}, {"verify_exec", t.verify_exec != nullptr}, {"plan", t.plan != nullptr}, {"run", t.run != nullptr}, {"cleanup", t.cleanup != nullptr}};
  });
}

Result<const h5i_websec*> check_websec(const void* interface) {
  return checked<h5i_websec>(interface, H5I_WEBSEC_INTERFACE, [](const h5i_websec& w) {
    return std::vector<Slot>{{"probe", w.probe != nullptr}, {"verify_exec", w.verify_exec != nullptr}, {"run", w.run != nullptr}, {"cleanup", w.cleanup != nullptr}};
  });
}

Result<LoadedPlugin> load(UniqueFd library, const Expected& expected) {
  Mapped mapped = H5I_TRY(Mapped::open(library, "the library of " + expected.id));
  std::string_view bytes = mapped.bytes();
  if (std::string found = sha256_hex(bytes); found != expected.digest.value)
    return make_error(Errc::PLUGIN_DIGEST, "the library of " + expected.id + " is not what was verified",
                      "expected " + expected.digest.value + ", found " + found);
  ElfFacts facts = H5I_TRY(read_elf(bytes));
  H5I_TRY(
      lint_plugin(facts, facts.needed, "the library of " + expected.id));  // its needs were compared by who verified it
  std::string path = "/proc/self/fd/" + std::to_string(library.get());
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr)
    return make_error(Errc::PLUGIN_LOAD, "the library of " + expected.id + " cannot be mapped",
                      path + " already names a mapped library");
  dlerror();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return make_error(Errc::PLUGIN_LOAD, "the library of " + expected.id + " cannot be mapped", dl_text());
  LoadedPlugin loaded{library.release(), nullptr, expected.digest};
  loaded.entry = static_cast<const h5i_plugin_entry*>(dlsym(handle, H5I_ENTRY_SYMBOL));
  if (loaded.entry == nullptr)
    return make_error(Errc::PLUGIN_EXPORTS, "the library of " + expected.id + " has no entry", dl_text());
  H5I_TRY(check_entry(loaded.entry, facts.exported[0].size, expected));
  return loaded;
}

}  // namespace h5i::plugin
