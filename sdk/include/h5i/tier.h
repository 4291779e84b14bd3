/* h5i.tier/1: where code runs. All functions are called on the main thread of a host process of the plugin's own. */
#ifndef H5I_TIER_H
#define H5I_TIER_H
#include "h5i/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define H5I_TIER_INTERFACE "h5i.tier/1"

/* Outcome of a run; the first failure wins. */
enum {
  H5I_OUTCOME_EXITED = 1,    /* code is the exit status */
  H5I_OUTCOME_SIGNALED = 2,  /* code is the signal */
  H5I_OUTCOME_TIMEOUT = 3,
  H5I_OUTCOME_VIOLATION = 4, /* confinement broke; the box was killed */
  H5I_OUTCOME_SETUP_FAILED = 5,
  H5I_OUTCOME_CANCELLED = 6,
  H5I_OUTCOME_HOST_LOST = 7
};

typedef struct h5i_outcome {
  uint32_t struct_size;
  uint32_t status; /* H5I_OUTCOME_* */
  int32_t code;
  int32_t reason; /* H5I_E_* when the status is one of TIMEOUT..HOST_LOST, else 0 */
  uint64_t reserved[4]; /* zero */
} h5i_outcome;

typedef struct h5i_tier {
  uint32_t struct_size;
  uint32_t revision; /* 1 */

  /* What this host could enforce: one h5i.probe/1 document to the sink. Read-only, repeatable, under 50 ms; leaves no
   * process, file or cgroup behind; uses no network. A host that lacks something is still H5I_OK: the document says so.
   * Errors: H5I_E_INTERNAL, H5I_E_SYSTEM. Since 1.0. */
  h5i_status (*probe)(void* instance, h5i_sink_fn sink, void* sink_context, h5i_error* error);

  /* Proves the claims under the exact policy of `request` (h5i.run/1 without a command): a positive control that runs,
   * and for each claimed dimension a negative control that fails with the expected error while the same act succeeds
   * outside. One h5i.verify/1 document to the sink. Runs no user code. Since 1.0. */
  h5i_status (*verify_exec)(void* instance, h5i_str request, h5i_sink_fn sink, void* sink_context, h5i_error* error);

  /* The plan that run would hand to the host, as one h5i.plan/1 document, without side effects. Since 1.0. */
  h5i_status (*plan)(void* instance, h5i_str request, h5i_sink_fn sink, void* sink_context, h5i_error* error);

  /* Executes `request` (h5i.run/1), returns when everything of it is gone. Fills *outcome in every case. Since 1.0. */
  h5i_status (*run)(void* instance, h5i_str request, h5i_outcome* outcome, h5i_error* error);

  /* Removes whatever a dead run of this session left, from the id alone. Since 1.0. */
  h5i_status (*cleanup)(void* instance, h5i_str session, h5i_error* error);
} h5i_tier;

#ifdef __cplusplus
}
#endif
#endif
