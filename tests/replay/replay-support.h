/* SPDX-License-Identifier: Apache-2.0 */
/* Programs written in a test, and what came of playing them. */
#ifndef COOP_REPLAY_SUPPORT_H
#define COOP_REPLAY_SUPPORT_H

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "replay/play.h"

/* A file of that text in a folder of its own; free with drop_file. */
static inline char *
make_file (const char *name, const char *text, gssize length)
{
  g_autofree char *folder = g_dir_make_tmp ("coop-replay-XXXXXX", NULL);
  char *path = g_build_filename (folder, name, NULL);
  g_assert_true (g_file_set_contents (path, text, length, NULL));
  return path;
}

static inline void
drop_file (char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_unlink (path);
  g_rmdir (folder);
  g_free (path);
}

static inline CoopProgram *
program_of (const char *text)
{
  g_autoptr (GError) error = NULL;
  char *path = make_file ("hand.jsonl", text, -1);
  CoopProgram *p = coop_program_load (path, &error);
  g_assert_no_error (error);
  drop_file (path);
  return p;
}

static inline CoopProgram *
load_oracle (const char *name)
{
  g_autofree char *path = g_strdup_printf ("%s/oracle/%s.jsonl.gz", g_getenv ("COOP_FIXTURES"), name);
  g_autoptr (GError) error = NULL;
  CoopProgram *p = coop_program_load (path, &error);
  g_assert_no_error (error);
  return p;
}

/* One group, no small area, nothing held, no compaction: every address can be worked out by hand. */
static inline void
plain_policy (CoopPlayOptions *o, CoopEvictorName evictor, guint64 budget)
{
  coop_play_options_init (o);
  coop_policy_preset (&o->policy, evictor);
  o->policy.v[COOP_PARAM_GROUPS].i = 1;
  o->policy.v[COOP_PARAM_SMALL].i = 0;
  o->policy.v[COOP_PARAM_HOLD].i = 0;
  o->policy.v[COOP_PARAM_COMPACT].i = 0;
  o->policy.v[COOP_PARAM_THRASH].i = 0;
  o->policy.v[COOP_PARAM_BUDGET].i = (gint64) budget;
}

/* "E0 A1024 ..." : evictions and allocations with their addresses, in order. */
static inline void
note_event (void *user, CoopEvent *ev, const void *body)
{
  GString *log = user;
  if (ev->kind == COOP_EVENT_EVICT)
    g_string_append_printf (log, "E%" G_GUINT64_FORMAT " ", ev->u.evict.addr);
  else if (ev->kind == COOP_EVENT_ALLOC)
    g_string_append_printf (log, "A%" G_GUINT64_FORMAT " ", ev->u.alloc.addr);
  else if (ev->kind == COOP_EVENT_MOVE)
    g_string_append_printf (log, "M%" G_GUINT64_FORMAT ">%" G_GUINT64_FORMAT " ", ev->u.move.from, ev->u.move.to);
}

static inline char *
play_log (const CoopProgram *p, CoopPlayOptions *o, CoopPlayOutcome *out)
{
  GString *log = g_string_new (NULL);
  o->sink = (CoopSink) { note_event, log };
  coop_play (p, o, out);
  g_assert_cmpstr (out->fault, ==, NULL);
  if (log->len > 0)
    g_string_truncate (log, log->len - 1);
  return g_string_free (log, FALSE);
}

#endif
