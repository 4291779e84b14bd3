// A build tool: writes the C++ source that holds every filter as base64, with digest and errno table.
#include <openssl/evp.h>

#include <cstdio>

#include "filter.hpp"

namespace {

using namespace h5i::confined;

std::string base64(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                          reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(n));
  return out;
}

std::string sha256_hex(const std::string& bytes) {
  unsigned char digest[32];
  if (EVP_Digest(bytes.data(), bytes.size(), digest, nullptr, EVP_sha256(), nullptr) != 1) return {};
  std::string out;
  for (unsigned char c : digest) {
    char hex[3];
    snprintf(hex, sizeof hex, "%02x", c);
    out += hex;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: bake FILE\n"), 2;
  std::string tables, rows;
  for (Arch arch : {Arch::X86_64, Arch::AARCH64}) {
    for (bool unix_sockets : {false, true}) {
      auto filter = build_filter({arch, unix_sockets});
      if (!filter) return fprintf(stderr, "bake: %s\n", filter.error().text.c_str()), 1;
      std::string name = "kErrnos_" + std::string(arch_name(arch)) + (unix_sockets ? "_unix" : "");
      tables += "constexpr BakedErrno " + name + "[] = {";
      for (auto [number, value] : filter->errnos)
        tables += "{" + std::to_string(number) + "," + std::to_string(value) + "},";
      tables += "};\n";
      rows += std::string("    {Arch::") + (arch == Arch::X86_64 ? "X86_64" : "AARCH64") + ", " +
              (unix_sockets ? "true" : "false") + ",\n     \"" + base64(filter->bytes()) + "\",\n     \"" +
              sha256_hex(filter->bytes()) + "\", " + name + ", " + std::to_string(filter->errnos.size()) + "},\n";
    }
  }
  FILE* f = fopen(argv[1], "w");
  if (f == nullptr) return perror(argv[1]), 1;
  fprintf(f,
          "// Written by bake.cpp.\n#include \"baked.hpp\"\n\nnamespace h5i::confined {\nnamespace {\n%s"
          "constexpr BakedFilter kFilters[] = {\n%s};\n}  // namespace\n\n"
          "const BakedFilter& baked_filter(Arch arch, bool unix_sockets) {\n"
          "  for (const BakedFilter& f : kFilters)\n"
          "    if (f.arch == arch && f.unix_sockets == unix_sockets) return f;\n"
          "  return kFilters[0];\n}\n\n}  // namespace h5i::confined\n",
          tables.c_str(), rows.c_str());
  return fclose(f) == 0 ? 0 : 1;
}
