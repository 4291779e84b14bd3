#include <elf.h>

#include <cstring>

#include "core/plugin/elf_lint.hpp"
#include "tests/plugin/scratch.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::plugin;
using test::Scratch;

namespace {

std::string library(const std::string& fixture) {
  std::string bytes = test::read_file(Scratch::fixture(fixture).string() + ".so");
  REQUIRE(bytes.size() > 1000);
  return bytes;
}

Error lint(std::string_view bytes, const std::vector<std::string>& needs = {}) {
  auto facts = read_elf(bytes);
  if (!facts) return facts.error();
  auto r = lint_plugin(*facts, needs, "it");
  return r ? make_error(Errc::OK, "") : r.error();
}

bool instrumented() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("a library built by h5i_add_plugin passes, and exports exactly the entry, as data") {
  auto facts = read_elf(library("good"));
  REQUIRE(facts);
  REQUIRE(facts->exported.size() == 1);
  CHECK(facts->exported[0].name == "h5i_plugin_entry_v1");
  CHECK(facts->exported[0].data);
  CHECK(facts->exported[0].size == 72);
  if (!instrumented()) CHECK(lint(library("good")).code == Errc::OK);
}

TEST_CASE("each thing that a plugin may not be is refused by its name") {
  struct {
    const char* fixture;
    Errc code;
    const char* evidence;
  } cases[] = {
    {"rpath", Errc::PLUGIN_LINT, "RPATH"},
    {"runpath", Errc::PLUGIN_LINT, "RUNPATH"},
#if defined(__x86_64__)
    {"textrel", Errc::PLUGIN_LINT, "TEXTREL"},
#endif
    {"execstack", Errc::PLUGIN_LINT, "executable stack"},
    {"lazy", Errc::PLUGIN_LINT, "BIND_NOW"},
    {"norelro", Errc::PLUGIN_LINT, "RELRO"},
    {"second-symbol", Errc::PLUGIN_EXPORTS, "second_symbol"},
    {"function-entry", Errc::PLUGIN_EXPORTS, "not data"},
    {"undeclared", Errc::PLUGIN_NEEDS, "libstdc++.so.6"}
  };
  for (const auto& c : cases) {
    Error e = lint(library(c.fixture));
    INFO(c.fixture << ": " << e.what << ": " << e.evidence);
    CHECK(e.code == c.code);
    CHECK(e.evidence.find(c.evidence) != std::string::npos);
  }
}

TEST_CASE("a library that the manifest names is allowed, and only that one") {
  CHECK(lint(library("undeclared"), {"libstdc++.so.6"}).code == Errc::OK);
  CHECK(lint(library("undeclared"), {"libstdc++.so.5"}).code == Errc::PLUGIN_NEEDS);
}

TEST_CASE("programs, objects for another processor and files that are no ELF are refused") {
  std::string bytes = library("good");
  CHECK(lint("").code == Errc::PLUGIN_LINT);
  CHECK(lint("#!/bin/sh\n").code == Errc::PLUGIN_LINT);
  CHECK(lint(test::read_file("/proc/self/exe")).code == Errc::PLUGIN_LINT);
  auto changed = [&](size_t offset, char value) {
    std::string b = bytes;
    b[offset] = value;
    return lint(b).code;
  };
  CHECK(changed(EI_CLASS, ELFCLASS32) == Errc::PLUGIN_LINT);
  CHECK(changed(EI_DATA, ELFDATA2MSB) == Errc::PLUGIN_LINT);
  CHECK(changed(EI_OSABI, ELFOSABI_FREEBSD) == Errc::PLUGIN_LINT);
  CHECK(changed(offsetof(Elf64_Ehdr, e_type), ET_EXEC) == Errc::PLUGIN_LINT);
  CHECK(changed(offsetof(Elf64_Ehdr, e_machine), EM_RISCV & 0x7f) == Errc::PLUGIN_LINT);
  CHECK(changed(offsetof(Elf64_Ehdr, e_phentsize), 57) == Errc::PLUGIN_LINT);
  CHECK(changed(offsetof(Elf64_Ehdr, e_phnum), 0) == Errc::PLUGIN_LINT);
}

TEST_CASE("what cannot be read is refused, never followed: every cut, and every byte of the headers changed") {
  std::string bytes = library("good");
  size_t accepted = 0;
  for (size_t n = 0; n < bytes.size() / 2; n += n < 8192 ? 7 : 4099)
    accepted += lint(std::string_view(bytes).substr(0, n)).code == Errc::OK;
  CHECK(accepted == 0);
  // Headers, hash, symbols and strings lie in the first pages. A change may be harmless; it may not crash.
  size_t refused = 0;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 4096); i++)
    for (char flip : {'\x01', '\xff'}) {
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      refused += lint(bytes).code != Errc::OK;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
    }
  CHECK(refused > 100);
}
