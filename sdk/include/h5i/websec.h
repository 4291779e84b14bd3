/* h5i.websec/1: what talks to a target. All functions are called on the main thread of a host process of the plugin's own, which is confined
 * before the plugin is loaded: no program is executed, no file is reached but the session's own folder and the system's public files, and no
 * socket but an internet one is made; where the session's wire is in a box, none at all. */
#ifndef H5I_WEBSEC_H
#define H5I_WEBSEC_H
#include "h5i/abi.h"
#include "h5i/tier.h"

#ifdef __cplusplus
extern "C" {
#endif

#define H5I_WEBSEC_INTERFACE "h5i.websec/1"

typedef struct h5i_websec {
  uint32_t struct_size;
  uint32_t revision; /* 1 */

  /* What this host could do: one h5i.probe/1 document to the sink. Read-only, repeatable, under 50 ms, no packet.
   * Errors: H5I_E_INTERNAL, H5I_E_SYSTEM. Since 1.0. */
  h5i_status (*probe)(void* instance, h5i_sink_fn sink, void* sink_context, h5i_error* error);

  /* Proves on the loopback of this process that a target outside the scope of `request` sees no byte, and that one inside sees none before
   * the session's log names it. One h5i.verify/1 document to the sink. Since 1.0. */
  h5i_status (*verify_exec)(void* instance, h5i_str request, h5i_sink_fn sink, void* sink_context, h5i_error* error);

  /* Serves one act of a session: `request` is h5i.websec-run/1 with the session's facts, the act and its words. One document to the sink, the
   * answer. Fills *outcome in every case; a code of 1 means that what was asked did not hold, 2 that it could not be looked at. Since 1.0. */
  h5i_status (*run)(void* instance, h5i_str request, h5i_sink_fn sink, void* sink_context, h5i_outcome* outcome, h5i_error* error);

  /* Removes whatever a dead run of this session left outside its log. Since 1.0. */
  h5i_status (*cleanup)(void* instance, h5i_str session, h5i_error* error);
} h5i_websec;

#ifdef __cplusplus
}
#endif
#endif
