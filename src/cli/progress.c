/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SAVE "\0337"
#define RESTORE "\0338"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

static void
rates (CoopProgress *p, const CoopModelTotals *t)
{
  gint64 now = g_get_monotonic_time ();
  guint64 op = t->op_ns - p->op_ns, replay = t->replay_ns - p->replay_ns;
  if (p->at != 0 && now > p->at)
    p->evictions_per_s = (double) (t->evictions - p->evictions) * 1e6 / (double) (now - p->at);
  if (op + replay > 0)
    p->recompute = (double) replay / (double) (op + replay);
  p->at = now;
  p->evictions = t->evictions;
  p->op_ns = t->op_ns;
  p->replay_ns = t->replay_ns;
}

/* live: in tensors the script can reach now; used: in blocks, workspaces and temporaries included. */
char *
coop_progress_text (CoopProgress *progress, const CoopFrame *frame)
{
  const CoopModelTotals *t = &frame->totals;
  char live[32], used[32], budget[32] = "no limit", hole[32];
  rates (progress, t);
  coop_size_format (t->used - MIN (t->used, t->by_kind[COOP_KIND_UNKNOWN]), live, sizeof live);
  coop_size_format (t->used, used, sizeof used);
  coop_size_format (t->largest, hole, sizeof hole);
  if (t->budget != 0 && t->budget < t->capacity)
    coop_size_format (t->budget, budget, sizeof budget);
  return g_strdup_printf ("live %s  used %s / %s  hole %s  %.0f evictions/s  recompute %.0f %%", live,
                          used, budget, hole, progress->evictions_per_s, 100 * progress->recompute);
}

static void
put (int fd, const char *text)
{
  ssize_t n = write (fd, text, strlen (text));
  (void) n;   /* a terminal that is gone needs no progress */
}

void
coop_progress_draw (int fd, const char *text)
{
  struct winsize size = { 0 };
  int n = (int) strlen (text);
  if (!isatty (fd) || ioctl (fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
    return;
  int shown = MIN (n, size.ws_col - 1);
  g_autofree char *line = g_strdup_printf (SAVE "\033[%dG\033[K" DIM "%.*s" PLAIN RESTORE,
                                           size.ws_col - shown, shown, text);
  put (fd, line);
}

void
coop_progress_clear (int fd)
{
  if (isatty (fd))
    put (fd, "\033[K");
}
