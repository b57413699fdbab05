/* SPDX-License-Identifier: Apache-2.0 */
/* Store: events and what follows from them, written to the trace in batches. */
#include "trace/store.h"

G_DEFINE_QUARK (coop-trace-error-quark, coop_trace_error)
