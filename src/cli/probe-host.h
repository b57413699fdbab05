/* SPDX-License-Identifier: Apache-2.0 */
/* The reviewer's program in this machine's memory: p1, p2 and p3 of one unit each fill it, p1 and p3 are
 * freed, p4 of two units is asked for. With each allocator of the engine, and with malloc under a limit. */
#ifndef COOP_PROBE_HOST_H
#define COOP_PROBE_HOST_H

#include <glib.h>

/* unit 0: 64 MiB; page 0: 2 MiB. only NULL: every variant. An exit status; what went wrong is on stderr. */
int coop_probe_host (guint64 unit, guint64 page, const char *only, gboolean json);

#endif
