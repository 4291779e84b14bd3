// Maps the plugin as the host does and calls the verbs that need no host. `h5i plugin verify` checks the file's form.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "h5i/json.hpp"
#include "h5i/tier.h"

#define CHECK(...)                                                     \
  if (!(__VA_ARGS__)) {                                                \
    fprintf(stderr, "line %d: %s is false\n", __LINE__, #__VA_ARGS__); \
    return 1;                                                          \
  }

int main(int argc, char** argv) {
  CHECK(argc == 2);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr);
  auto* entry = static_cast<const h5i_plugin_entry*>(dlsym(library, H5I_ENTRY_SYMBOL));
  CHECK(entry != nullptr && entry->struct_size == sizeof(h5i_plugin_entry) && entry->abi_major == H5I_ABI_MAJOR);

  h5i_host host{};
  host.struct_size = sizeof host;
  host.get_interface = [](void*, h5i_str) -> const void* { return nullptr; };
  h5i_error error{};
  error.struct_size = sizeof error;
  void* instance = nullptr;
  CHECK(entry->open(&host, &instance, &error) == H5I_OK);
  auto* tier =
      static_cast<const h5i_tier*>(entry->get_interface(instance, {H5I_TIER_INTERFACE, sizeof H5I_TIER_INTERFACE - 1}));
  CHECK(tier != nullptr);

  std::string document;
  auto collect = [](void* sink, h5i_str text) -> h5i_status {
    static_cast<std::string*>(sink)->append(text.ptr, text.len);
    return H5I_OK;
  };
  CHECK(tier->probe(instance, collect, &document, &error) == H5I_OK);
  auto probe = h5i::json::parse(document);
  CHECK(probe && (*probe)["available"].boolean());

  // A host that grants no spawn service gets a refusal with a reason, not a crash and not a success.
  h5i_outcome outcome{};
  outcome.struct_size = sizeof outcome;
  std::string request = "{}";
  CHECK(tier->run(instance, {request.data(), request.size()}, &outcome, &error) == H5I_E_PLUGIN_SERVICE);
  CHECK(outcome.status == H5I_OUTCOME_SETUP_FAILED);
  entry->close(instance);
  return 0;
}
