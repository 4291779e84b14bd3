#include "core/plugin/elf_lint.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "h5i/abi.h"

namespace h5i::plugin {
namespace {

#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif
constexpr uint16_t kMaxProgramHeaders = 64;  // a linker makes about ten
constexpr uint64_t kMaxDynamic = 512;        // entries; a linker makes about thirty
constexpr uint64_t kMaxSymbols = 1u << 20;
constexpr size_t kMaxName = 256;

// What the C library of the host brings, whichever plugin is loaded.
constexpr std::string_view kAlways[] = {"libc.so.6",  "libm.so.6",     "libpthread.so.0",      "libdl.so.2",
                                        "librt.so.1", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};

Error malformed(const char* why) {
  return make_error(Errc::PLUGIN_LINT, "the library is not a well-formed shared object", why);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  // A copy of the T at `offset`, when all of it is inside.
  template <class T>
  std::optional<T> at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T out;
    memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }

  // The file offset of `size` bytes at a virtual address, when one PT_LOAD holds all of them in its file part.
  std::optional<uint64_t> offset_of(uint64_t address, uint64_t size) const {
    for (const Elf64_Phdr& l : loads_)
      if (address >= l.p_vaddr && address - l.p_vaddr <= l.p_filesz && l.p_filesz - (address - l.p_vaddr) >= size)
        return l.p_offset + (address - l.p_vaddr);
    return std::nullopt;
  }
  template <class T>
  std::optional<T> at_address(uint64_t address) const {
    auto offset = offset_of(address, sizeof(T));
    return offset ? at<T>(*offset) : std::nullopt;
  }
  bool executable(uint64_t address) const {
    return std::any_of(loads_.begin(), loads_.end(), [&](const Elf64_Phdr& l) {
      return (l.p_flags & PF_X) && address >= l.p_vaddr && address - l.p_vaddr < l.p_memsz;
    });
  }

  Result<void> read_headers(ElfFacts& facts);
  Result<void> read_dynamic(ElfFacts& facts);
  Result<void> read_symbols(ElfFacts& facts);

 private:
  std::optional<std::string> name(uint64_t index) const {
    if (index >= strsz_) return std::nullopt;
    size_t limit = std::min<uint64_t>(strsz_ - index, kMaxName);
    std::string_view s = bytes_.substr(strtab_offset_ + index, limit);
    size_t end = s.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    return std::string(s.substr(0, end));
  }
  Result<uint64_t> count_symbols() const;
  Result<uint64_t> count_by_gnu_hash() const;

  std::string_view bytes_;
  std::vector<Elf64_Phdr> loads_;
  std::optional<Elf64_Phdr> dynamic_;
  uint64_t strtab_ = 0, strsz_ = 0, strtab_offset_ = 0, symtab_ = 0, hash_ = 0, gnu_hash_ = 0;
};

Result<void> Reader::read_headers(ElfFacts& facts) {
  auto header = at<Elf64_Ehdr>(0);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return malformed("it does not begin like an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
    return malformed("it is not 64-bit little-endian ELF, version 1");
  if (header->e_ident[EI_OSABI] != ELFOSABI_SYSV && header->e_ident[EI_OSABI] != ELFOSABI_GNU)
    return malformed("it is for another operating system");
  if (header->e_type != ET_DYN) return malformed("it is not a shared object");
  facts.machine = header->e_machine;
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 || header->e_phnum > kMaxProgramHeaders)
    return malformed("the number or size of its program headers is out of range");
  bool stack_seen = false;
  for (uint16_t i = 0; i < header->e_phnum; i++) {
    if (header->e_phoff > bytes_.size()) return malformed("its program headers lie outside the file");
    auto p = at<Elf64_Phdr>(header->e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
    if (!p) return malformed("its program headers lie outside the file");
    switch (p->p_type) {
      case PT_LOAD:
        if (p->p_offset > bytes_.size() || bytes_.size() - p->p_offset < p->p_filesz || p->p_memsz < p->p_filesz ||
            p->p_vaddr + p->p_memsz < p->p_vaddr)
          return malformed("a segment lies outside the file");
        if (!loads_.empty() && p->p_vaddr < loads_.back().p_vaddr + loads_.back().p_memsz)
          return malformed("its segments overlap or are not in order");
        if ((p->p_flags & PF_W) && (p->p_flags & PF_X)) facts.writable_code = true;
        loads_.push_back(*p);
        break;
      case PT_DYNAMIC:
        if (dynamic_) return malformed("it has two dynamic segments");
        dynamic_ = *p;
        break;
      case PT_INTERP:
        facts.has_interpreter = true;
        break;
      case PT_GNU_STACK:
        stack_seen = true;
        if (p->p_flags & PF_X) facts.executable_stack = true;
        break;
      case PT_GNU_RELRO:
        facts.relro = facts.relro || p->p_memsz > 0;
        break;
      default:
        break;
    }
  }
  if (!stack_seen) facts.executable_stack = true;
  if (loads_.empty()) return malformed("it has nothing to load");
  if (!dynamic_) return malformed("it has no dynamic segment");
  return {};
}

Result<void> Reader::read_dynamic(ElfFacts& facts) {
  // The loader follows the address, so the address is followed here.
  std::vector<uint64_t> needed;
  bool ended = false, rela = true;
  for (uint64_t i = 0; i < kMaxDynamic && !ended; i++) {
    auto d = at_address<Elf64_Dyn>(dynamic_->p_vaddr + i * sizeof(Elf64_Dyn));
    if (!d) return malformed("its dynamic segment lies outside the loaded file");
    uint64_t v = d->d_un.d_val;
    switch (d->d_tag) {
      case DT_NULL:
        ended = true;
        break;
      case DT_NEEDED:
        needed.push_back(v);
        break;
      case DT_STRTAB:
        strtab_ = v;
        break;
      case DT_STRSZ:
        strsz_ = v;
        break;
      case DT_SYMTAB:
        symtab_ = v;
        break;
      case DT_SYMENT:
        if (v != sizeof(Elf64_Sym)) return malformed("its symbols have another size");
        break;
      case DT_HASH:
        hash_ = v;
        break;
      case DT_GNU_HASH:
        gnu_hash_ = v;
        break;
      case DT_RPATH:
        facts.forbidden.push_back("RPATH");
        break;
      case DT_RUNPATH:
        facts.forbidden.push_back("RUNPATH");
        break;
      case DT_TEXTREL:
        facts.forbidden.push_back("TEXTREL");
        break;
      case DT_AUDIT:
        facts.forbidden.push_back("AUDIT");
        break;
      case DT_DEPAUDIT:
        facts.forbidden.push_back("DEPAUDIT");
        break;
      case DT_FILTER:
        facts.forbidden.push_back("FILTER");
        break;
      case DT_AUXILIARY:
        facts.forbidden.push_back("AUXILIARY");
        break;
      case DT_CONFIG:
        facts.forbidden.push_back("CONFIG");
        break;
      case DT_BIND_NOW:
        facts.bind_now = true;
        break;
      case DT_FLAGS:
        if (v & DF_BIND_NOW) facts.bind_now = true;
        if (v & DF_TEXTREL) facts.forbidden.push_back("TEXTREL");
        if (v & DF_ORIGIN) facts.forbidden.push_back("ORIGIN");
        break;
      case DT_FLAGS_1:
        if (v & DF_1_NOW) facts.bind_now = true;
        if (v & DF_1_ORIGIN) facts.forbidden.push_back("ORIGIN");
        if (v & DF_1_GLOBAL) facts.forbidden.push_back("GLOBAL");
        if (v & DF_1_INTERPOSE) facts.forbidden.push_back("INTERPOSE");
        if (v & DF_1_PIE) facts.has_interpreter = true;
        break;
      case DT_PLTREL:
        rela = rela && v == DT_RELA;
        break;
      default:
        break;
    }
  }
  if (!ended) return malformed("its dynamic segment has no end");
  if (!rela) return malformed("its relocations are of another form");
  auto strings = offset_of(strtab_, strsz_);
  if (strtab_ == 0 || strsz_ == 0 || !strings) return malformed("its string table lies outside the loaded file");
  strtab_offset_ = *strings;
  for (uint64_t index : needed) {
    auto n = name(index);
    if (!n) return malformed("the name of a needed library has no end");
    facts.needed.push_back(std::move(*n));
  }
  return {};
}

// Without section headers the number of dynamic symbols follows from the hash tables only.
Result<uint64_t> Reader::count_by_gnu_hash() const {
  auto buckets = at_address<uint32_t>(gnu_hash_);
  auto first = at_address<uint32_t>(gnu_hash_ + 4);
  auto bloom = at_address<uint32_t>(gnu_hash_ + 8);
  if (!buckets || !first || !bloom || *buckets == 0 || *buckets > kMaxSymbols || *bloom == 0 || *bloom > kMaxSymbols)
    return malformed("its hash table is out of range");
  uint64_t table = gnu_hash_ + 16 + uint64_t{*bloom} * 8, chains = table + uint64_t{*buckets} * 4, last = 0;
  for (uint32_t i = 0; i < *buckets; i++) {
    auto bucket = at_address<uint32_t>(table + uint64_t{i} * 4);
    if (!bucket) return malformed("its hash table lies outside the loaded file");
    if (*bucket != 0 && *bucket < *first) return malformed("its hash table names a symbol before its first");
    last = std::max<uint64_t>(last, *bucket);
  }
  if (last == 0) return uint64_t{*first};
  for (;; last++) {
    if (last > kMaxSymbols) return malformed("it has too many symbols");
    auto chain = at_address<uint32_t>(chains + (last - *first) * 4);
    if (!chain) return malformed("its hash chain lies outside the loaded file");
    if (*chain & 1) return last + 1;
  }
}

Result<uint64_t> Reader::count_symbols() const {
  if (hash_ == 0 && gnu_hash_ == 0) return malformed("it has no hash table");
  uint64_t count = 0;
  if (hash_ != 0) {
    auto chains = at_address<uint32_t>(hash_ + 4);
    if (!chains) return malformed("its hash table lies outside the loaded file");
    count = *chains;
  }
  if (gnu_hash_ != 0) count = std::max(count, H5I_TRY(count_by_gnu_hash()));
  if (count > kMaxSymbols) return malformed("it has too many symbols");
  return count;
}

Result<void> Reader::read_symbols(ElfFacts& facts) {
  if (symtab_ == 0) return malformed("it has no symbol table");
  uint64_t count = H5I_TRY(count_symbols());
  if (!offset_of(symtab_, count * sizeof(Elf64_Sym))) return malformed("its symbol table lies outside the loaded file");
  for (uint64_t i = 1; i < count; i++) {
    auto s = at_address<Elf64_Sym>(symtab_ + i * sizeof(Elf64_Sym));
    if (!s) return malformed("its symbol table lies outside the loaded file");
    if (s->st_shndx == SHN_UNDEF || ELF64_ST_BIND(s->st_info) == STB_LOCAL) continue;
    auto n = name(s->st_name);
    if (!n) return malformed("a symbol's name has no end");
    bool whole = s->st_size > 0 && offset_of(s->st_value, s->st_size).has_value();
    facts.exported.push_back(
        {std::move(*n), s->st_size,
         ELF64_ST_TYPE(s->st_info) == STT_OBJECT && s->st_shndx < SHN_LORESERVE && whole && !executable(s->st_value)});
  }
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

}  // namespace

Result<ElfFacts> read_elf(std::string_view bytes) {
  ElfFacts facts;
  Reader reader(bytes);
  H5I_TRY(reader.read_headers(facts));
  H5I_TRY(reader.read_dynamic(facts));
  H5I_TRY(reader.read_symbols(facts));
  return facts;
}

Result<void> lint_plugin(const ElfFacts& facts, const std::vector<std::string>& needs, std::string_view what) {
  auto refuse = [&](const std::string& why) {
    return make_error(Errc::PLUGIN_LINT, std::string(what) + " is not built as a plugin must be", why);
  };
  if (facts.machine != kMachine)
    return refuse("it is for another processor (e_machine " + std::to_string(facts.machine) + ")");
  if (facts.has_interpreter) return refuse("it is a program, not a shared object");
  if (!facts.forbidden.empty()) return refuse("it carries " + joined(facts.forbidden));
  if (facts.executable_stack) return refuse("it asks for an executable stack");
  if (facts.writable_code) return refuse("it has a segment that is writable and executable");
  if (!facts.relro) return refuse("it has no RELRO segment");
  if (!facts.bind_now) return refuse("it is not linked with BIND_NOW");
  for (const std::string& n : facts.needed)
    if (std::find(std::begin(kAlways), std::end(kAlways), n) == std::end(kAlways) &&
        std::find(needs.begin(), needs.end(), n) == needs.end())
      return make_error(Errc::PLUGIN_NEEDS, std::string(what) + " needs a library that its manifest does not name", n);
  if (facts.exported.size() != 1 || facts.exported[0].name != H5I_ENTRY_SYMBOL || !facts.exported[0].data) {
    std::vector<std::string> names;
    for (const ElfSymbol& s : facts.exported)
      if (names.size() < 8) names.push_back(s.name + (s.data ? "" : " (not data)"));
    return make_error(
        Errc::PLUGIN_EXPORTS, std::string(what) + " does not export exactly " H5I_ENTRY_SYMBOL ", as data",
        facts.exported.empty() ? "it exports nothing"
                               : "it exports " + joined(names) + (facts.exported.size() > 8 ? " and others" : ""));
  }
  return {};
}

}  // namespace h5i::plugin
