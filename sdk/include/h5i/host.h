/* Services that the host offers to a plugin, each by its id; a manifest lists the ones that it asks for. */
#ifndef H5I_HOST_H
#define H5I_HOST_H
#include "h5i/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define H5I_HOST_LOG "h5i.host.log/1"
#define H5I_HOST_EVIDENCE "h5i.host.evidence/1"
#define H5I_HOST_SPAWN "h5i.host.spawn/1"
#define H5I_HOST_CGROUP "h5i.host.cgroup/1"
#define H5I_HOST_CLOCK "h5i.host.clock/1"
#define H5I_HOST_SESSION "h5i.host.session/1"

/* One line for the host's verbose output; never shown as evidence. level: 1 error, 2 warning, 3 note, 4 detail. */
typedef struct h5i_host_log {
  uint32_t struct_size;
  uint32_t revision;
  h5i_status (*write)(void* context, uint32_t level, h5i_str text);
} h5i_host_log;

/* Facts that the plugin's outside observer saw. The core stamps lane and observer; a plugin cannot choose them.
 * boundary is one of FS, NET, PROC, RESOURCE, PROVENANCE; body is a JSON object of at most 64 KiB. */
typedef struct h5i_host_evidence {
  uint32_t struct_size;
  uint32_t revision;
  h5i_status (*record)(void* context, h5i_str boundary, h5i_str kind, h5i_str body, h5i_error* error);
} h5i_host_evidence;

enum {
  H5I_SPAWN_WORKLOAD = 1, /* the user's command: stdio of the session, held by the core's attestation before exec */
  H5I_SPAWN_CANARY = 2    /* the host's own test program: its output comes back to the plugin */
};

typedef struct h5i_spawn_result {
  uint32_t struct_size;
  uint32_t status;       /* H5I_OUTCOME_* */
  int32_t code;          /* exit status or signal */
  int32_t exec_errno;    /* errno of the failed exec, 0 when the program started */
  int32_t setup_errno;   /* errno of the failed set-up step, 0 when set-up succeeded */
  uint32_t setup_step;   /* index of the failed step in the plan's compiled program */
  uint64_t wall_us;
  uint64_t user_us;
  uint64_t system_us;
  uint64_t max_rss_kib;
  char setup_text[128];  /* the failed step in words, NUL-padded */
  uint64_t reserved[4];
} h5i_spawn_result;

/* plan is an h5i.plan/1 document (docs/spawn-plan.md). start returns when the child was cloned; wait when every process
 * of it is gone. A handle is never zero. A workload can be started once in a run. */
typedef struct h5i_host_spawn {
  uint32_t struct_size;
  uint32_t revision;
  h5i_status (*start)(void* context, h5i_str plan, uint32_t kind, uint64_t* handle, h5i_error* error);
  /* Canary only: everything that it wrote (at most 256 KiB) goes to the sink. timeout_ms < 0 waits for ever. */
  h5i_status (*wait)(void* context, uint64_t handle, int64_t timeout_ms, h5i_spawn_result* result, h5i_sink_fn sink,
                     void* sink_context, h5i_error* error);
  h5i_status (*kill)(void* context, uint64_t handle, h5i_error* error);
} h5i_host_spawn;

/* Where a cgroup of the session's own could be made: a JSON object {"available":bool,"base":path,"via":"delegated"|"service-manager",
 * "controllers":[...],"reason":text} after a real trial (create, enable, limit, move in, remove). */
typedef struct h5i_host_cgroup {
  uint32_t struct_size;
  uint32_t revision;
  h5i_status (*describe)(void* context, h5i_sink_fn sink, void* sink_context, h5i_error* error);
} h5i_host_cgroup;

typedef struct h5i_host_clock {
  uint32_t struct_size;
  uint32_t revision;
  uint64_t (*monotonic_ns)(void* context);
  uint32_t (*cancelled)(void* context); /* 1 after the run was cancelled or its deadline passed, else 0 */
} h5i_host_clock;

/* The log and the payloads of the websec session that this process serves. The host writes; lane (engine-claimed), observer and place in the
 * chain are its own. Bodies are JSON objects of at most 256 KiB, kinds [a-z0-9-]{1,64}. Errors: H5I_E_LOG_WRITE names the log. */
typedef struct h5i_host_session {
  uint32_t struct_size;
  uint32_t revision;
  /* One line, in the log when this returns. *seq is the record's number in it. Since revision 3 several threads may call it at once, also beside flush. */
  h5i_status (*append)(void* context, h5i_str kind, h5i_str body, uint64_t* seq, h5i_error* error);
  /* On the disk when this returns: everything whose append had returned before. */
  h5i_status (*flush)(void* context, h5i_error* error);
  /* The records from number `from` on, each as one document, in order, until the sink refuses one: its status comes back then. */
  h5i_status (*read)(void* context, uint64_t from, h5i_sink_fn sink, void* sink_context, h5i_error* error);
  /* A payload of at most 64 MiB, kept under its SHA-256; `sha256` takes 64 hexadecimal digits. */
  h5i_status (*put)(void* context, h5i_bytes payload, char* sha256, h5i_error* error);
  h5i_status (*get)(void* context, h5i_str sha256, uint64_t limit, h5i_sink_fn sink, void* sink_context, h5i_error* error);
  /* Since revision 2. The log's own lines from byte `offset` on, which begins one, each whole and without its newline, so that the next one begins
   * one byte behind its end; in order, until the sink refuses one: its status comes back then. A last line that is not whole is none. Nothing of
   * what they say is looked at. Errors: H5I_E_INVALID when no line can begin there, H5I_E_CORRUPT for a line of more than 1 MiB. */
  h5i_status (*lines)(void* context, uint64_t offset, h5i_sink_fn sink, void* sink_context, h5i_error* error);
} h5i_host_session;

#ifdef __cplusplus
}
#endif
#endif
