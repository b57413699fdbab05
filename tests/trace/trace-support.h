/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store, the reader and the checker share. */
#ifndef COOP_TRACE_SUPPORT_H
#define COOP_TRACE_SUPPORT_H

#include <glib/gstdio.h>
#include <string.h>

#include "../support/gen-events.h"
#include "trace/store.h"

#define BUDGET (640u << 10)

/* A fresh folder, and a path in it. */
typedef struct {
  char *dir, *path;
} Place;

static inline Place
place_new (void)
{
  Place place = { g_dir_make_tmp ("coop-trace-XXXXXX", NULL), NULL };
  g_assert_nonnull (place.dir);
  place.path = g_build_filename (place.dir, "a run.coop", NULL);
  return place;
}

static inline guint
place_files (const Place *place)
{
  guint n = 0;
  GDir *dir = g_dir_open (place->dir, 0, NULL);
  while (g_dir_read_name (dir) != NULL)
    n++;
  g_dir_close (dir);
  return n;
}

static inline void
place_clear (Place *place)
{
  GDir *dir = g_dir_open (place->dir, 0, NULL);
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;)
    {
      g_autofree char *path = g_build_filename (place->dir, name, NULL);
      g_remove (path);
    }
  g_dir_close (dir);
  g_rmdir (place->dir);
  g_free (place->dir);
  g_free (place->path);
}

/* n generated events into model and store. */
static inline void
record (CoopGen *gen, CoopModel *model, CoopStore *store, guint64 n)
{
  const void *body;
  for (guint64 i = 0; i < n && !coop_gen_done (gen); i++)
    {
      const CoopEvent *ev = coop_gen_next (gen, &body);
      coop_model_apply (model, ev, body, NULL);
      coop_store_append (store, model, ev, body);
    }
}

/* A whole run of about n events, closed. */
static inline void
record_file (const char *path, guint32 seed, guint64 n)
{
  GError *error = NULL;
  const char *meta[] = { "command", "python3 train.py", NULL };
  CoopGen *gen = coop_gen_new (seed, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (path, meta, &error);
  g_assert_no_error (error);
  record (gen, model, store, n);
  coop_gen_finish (gen, 0);
  record (gen, model, store, G_MAXUINT64);
  coop_store_close (store, COOP_RUN_ENDED, 0, &error);
  g_assert_no_error (error);
  coop_model_free (model);
  coop_gen_free (gen);
}

#endif
