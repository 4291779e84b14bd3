/* The plugin ABI, major version 1: basic types, errors, entry point. C11 and C++20, no other header needed.
 *
 * Rules that hold for every header here:
 *  - every struct begins with struct_size and only ever grows at its end; padding is explicit, zero, and checked;
 *  - zero never means success or a choice, except h5i_status where 0 is H5I_OK;
 *  - nothing allocated crosses: the caller owns structs, output goes to sinks, pointers are borrowed until return;
 *  - text is UTF-8 and not NUL-terminated; documents are canonical JSON (RFC 8785);
 *  - no exception, longjmp, exit or abort leaves a function. */
#ifndef H5I_ABI_H
#define H5I_ABI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define H5I_ABI_MAJOR 1u
#define H5I_ABI_MINOR 0u

typedef int32_t h5i_status; /* 0 is H5I_OK, else one of H5I_E_* */
enum {
  H5I_OK = 0,
#define H5I_ERROR(NAME, NUMBER, ID, CLASS, REMEDY) H5I_E_##NAME = NUMBER,
#include "h5i/errors.def"
#undef H5I_ERROR
  H5I_E_LAST_PLUS_ONE
};

typedef struct h5i_str {
  const char* ptr; /* may be NULL when len is 0 */
  uint64_t len;
} h5i_str;

typedef struct h5i_bytes {
  const uint8_t* ptr;
  uint64_t len;
} h5i_bytes;

/* Owned by the caller, filled by the callee when it returns anything but H5I_OK. */
typedef struct h5i_error {
  uint32_t struct_size;
  int32_t code;      /* the returned status again */
  int32_t sys_errno; /* 0 when no system call is to blame */
  uint32_t text_len; /* bytes used of text */
  char text[240];    /* what was refused and the evidence, UTF-8 */
} h5i_error;

/* Takes a borrowed document; returns H5I_OK, or an error that the caller must pass on. */
typedef h5i_status (*h5i_sink_fn)(void* sink, h5i_str document);

/* What the host offers. get_interface returns a const struct of host.h by id ("h5i.host.spawn/1"), or NULL when the
 * manifest did not ask for it or this host has none. `context` is the first argument of every function of it. */
typedef struct h5i_host {
  uint32_t struct_size;
  uint32_t reserved; /* zero */
  void* context;
  const void* (*get_interface)(void* context, h5i_str id);
} h5i_host;

/* The one exported symbol, a data symbol, so that the host can refuse before any function of the plugin runs. */
typedef struct h5i_plugin_entry {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t min_host_minor;
  h5i_str id;      /* equal to the manifest's */
  h5i_str version; /* equal to the manifest's */
  /* [main thread] Once, before anything else. *instance is the plugin's own pointer, never NULL on success. */
  h5i_status (*open)(const h5i_host* host, void** instance, h5i_error* error);
  /* [main thread] Once, last. */
  void (*close)(void* instance);
  /* [main thread] A const struct of tier.h by id ("h5i.tier/1"), or NULL. Same answer for the instance's life. */
  const void* (*get_interface)(void* instance, h5i_str id);
} h5i_plugin_entry;

#define H5I_ENTRY_SYMBOL "h5i_plugin_entry_v1"

#ifdef __cplusplus
}
#endif
#endif
