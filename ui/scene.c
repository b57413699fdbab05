/* SPDX-License-Identifier: Apache-2.0 */
/* Frame -> what is drawn -> pixels. What is drawn is a function of the frame and of the options, and
 * of nothing else: age counts from the frame's own time, marks come from its own last eviction.
 */
#include "config.h"

#include "scene.h"

#include <glib/gi18n.h>
#include <math.h>

#include "draw/picture.h"
#include "format.h"

#define ROW_GAP 3
#define ROW_HEIGHT 22

/* Milliseconds on a logarithm: now is 0, half a minute and more is 255. */
static guint8
age_of (const CoopFrame *frame, const CoopMapPiece *piece)
{
  if (frame->totals.ts <= piece->used_ts)
    return 0;
  double ms = (double) (frame->totals.ts - piece->used_ts) / 1e6;
  return (guint8) MIN (255, 255 * log1p (ms) / log1p (30000));
}

static void
mark_beyond_and_largest (CoopScene *scene)
{
  guint64 budget = scene->frame->totals.budget, most = 0;
  scene->largest = -1;
  for (guint i = 0; i < scene->n_pieces; i++)
    {
      CoopDrawPiece *piece = &scene->pieces[i];
      guint64 below = piece->bytes;
      if (budget > 0 && piece->addr + piece->bytes > budget)
        {
          below = piece->addr < budget ? budget - piece->addr : 0;
          if (piece->used || below == 0)
            piece->mark |= COOP_MARK_BEYOND;
        }
      if (!piece->used && below > most)
        {
          most = below;
          scene->largest = (long) i;
        }
    }
  if (scene->largest >= 0)
    scene->pieces[scene->largest].mark |= COOP_MARK_LARGEST;
}

static gboolean
is_larger (const CoopMapPiece *pieces, guint a, guint b)
{
  return pieces[a].bytes != pieces[b].bytes ? pieces[a].bytes > pieces[b].bytes : a < b;
}

/* One pass: almost every piece is turned away at the first comparison. */
static void
find_top (CoopScene *scene)
{
  const CoopFrame *frame = scene->frame;
  const guint n = COOP_SCENE_TOP;
  guint *top = g_new (guint, n), found = 0;
  for (guint i = 0; i < frame->n_pieces; i++)
    {
      if (found == n && !is_larger (frame->pieces, i, top[n - 1]))
        continue;
      guint at = found < n ? found++ : n - 1;
      for (; at > 0 && is_larger (frame->pieces, i, top[at - 1]); at--)
        top[at] = top[at - 1];
      top[at] = i;
    }
  scene->top = top;
  scene->n_top = found;
}

static void
lay_out (CoopScene *scene, const CoopSceneOptions *options)
{
  const CoopFrame *frame = scene->frame;
  guint64 end = 0;
  if (frame->n_pieces > 0)
    end = frame->pieces[frame->n_pieces - 1].addr + frame->pieces[frame->n_pieces - 1].bytes;
  if (frame->totals.budget == 0)
    end = MAX (end, frame->totals.peak);
  scene->scale = options->scale > 0 ? options->scale : 1;
  scene->view = (CoopMapView) {
    .bytes = coop_map_extent (frame->totals.budget, end),
    .budget = frame->totals.budget,
    .width = options->width,
    .height = options->height,
    .row_height = (int) (ROW_HEIGHT * scene->scale),
    .gap = (int) (ROW_GAP * scene->scale),
    .dark = options->dark,
    .contrast = options->contrast,
  };
  coop_map_layout (&scene->view);
}

CoopScene *
coop_scene_new (CoopFrame *frame, const CoopSceneOptions *options)
{
  if (options->width <= 0 || options->height <= 0)
    return NULL;
  CoopScene *scene = g_atomic_rc_box_new0 (CoopScene);
  scene->frame = coop_frame_ref (frame);
  scene->n_pieces = frame->n_pieces;
  scene->pieces = g_new0 (CoopDrawPiece, frame->n_pieces + 1);
  for (guint i = 0; i < frame->n_pieces; i++)
    {
      const CoopMapPiece *piece = &frame->pieces[i];
      scene->pieces[i] = (CoopDrawPiece) {
        .addr = piece->addr,
        .bytes = piece->bytes,
        .used = piece->used,
        .kind = piece->kind,
        .pin = piece->pin,
        .age = piece->used ? age_of (frame, piece) : 0,
        .mark = piece->used && options->selected != 0 && piece->block == options->selected
                    ? COOP_MARK_SELECTED
                    : 0,
      };
    }
  mark_beyond_and_largest (scene);
  find_top (scene);
  lay_out (scene, options);
  scene->pixels = g_malloc ((gsize) options->width * (gsize) options->height * 4);
  g_autofree CoopDrawRange *victims = g_new (CoopDrawRange, frame->n_victims + 1);
  for (guint i = 0; i < frame->n_victims; i++)
    victims[i] = (CoopDrawRange) { frame->victims[i].addr, frame->victims[i].bytes };
  coop_picture_map (&scene->view, scene->scale, scene->pieces, scene->n_pieces, victims, frame->n_victims,
                    scene->pixels, (gsize) options->width * 4);
  return scene;
}

CoopScene *
coop_scene_ref (CoopScene *scene)
{
  return g_atomic_rc_box_acquire (scene);
}

static void
free_parts (gpointer data)
{
  CoopScene *scene = data;
  coop_frame_unref (scene->frame);
  g_free (scene->pieces);
  g_free (scene->top);
  g_free (scene->pixels);
  g_free (scene);
}

static void
free_in_thread (GTask *task, gpointer source, gpointer scene, GCancellable *cancellable)
{
  free_parts (scene);
  g_task_return_boolean (task, TRUE);
}

/* Giving back tens of megabytes takes the kernel milliseconds: not on the main loop's time. */
static void
scene_clear (gpointer data)
{
  CoopScene *parts = g_memdup2 (data, sizeof (CoopScene));
  if (!g_main_context_is_owner (NULL))
    {
      free_parts (parts);
      return;
    }
  GTask *task = g_task_new (NULL, NULL, NULL, NULL);
  g_task_set_task_data (task, parts, NULL);
  g_task_run_in_thread (task, free_in_thread);
  g_object_unref (task);
}

void
coop_scene_unref (CoopScene *scene)
{
  g_atomic_rc_box_release_full (scene, scene_clear);
}

char *
coop_scene_describe (const CoopScene *scene)
{
  const CoopModelTotals *totals = &scene->frame->totals;
  g_autofree char *used = coop_format_bytes (totals->used);
  g_autofree char *budget = coop_format_bytes (totals->budget);
  g_autofree char *pinned = coop_format_bytes (totals->pinned);
  g_autofree char *available = coop_format_bytes (totals->free);
  g_autofree char *largest = coop_format_bytes (totals->largest);
  g_autofree char *where = NULL;
  if (scene->largest >= 0)
    where = coop_format_addr (scene->pieces[scene->largest].addr);
  if (totals->budget == 0)
    /* Translators: sizes like "37.7 MiB" */
    return g_strdup_printf (_("%s used, %s of it pinned, no limit."), used, pinned);
  return g_strdup_printf (
      /* Translators: sizes like "37.7 MiB"; the last is an address */
      _("%s of %s used, %s of it pinned. %s free; the largest hole is %s at %s."), used, budget, pinned,
      available, largest, where ? where : "–");
}
