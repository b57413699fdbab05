/* SPDX-License-Identifier: Apache-2.0 */
/* Frame -> what is drawn -> pixels. What is drawn is a function of the frame and of the options, and
 * of nothing else: age counts from the frame's own time, marks come from its own last eviction.
 */
#include "config.h"

#include "scene.h"

#include <glib/gi18n.h>

#include "draw/picture.h"
#include "format.h"

#define ROW_GAP 3
#define ROW_HEIGHT 22

static void
mark_beyond_and_largest (CoopScene *scene)
{
  guint64 budget = scene->has_voids ? 0 : scene->frame->totals.budget, most = 0;
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
      if (coop_draw_is_hole (piece) && below > most)
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
      if (coop_piece_is_void (&frame->pieces[i]) || (found == n && !is_larger (frame->pieces, i, top[n - 1])))
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
  guint64 end = scene->end;
  if (frame->totals.budget == 0)
    end = MAX (end, frame->totals.peak);
  scene->scale = options->scale > 0 ? options->scale : 1;
  scene->view = (CoopMapView) {
    .bytes = coop_map_extent (frame->totals.budget, end),
    .budget = scene->has_voids ? 0 : frame->totals.budget,
    .width = options->width,
    .height = options->height,
    .row_height = options->look.strip ? options->height : (int) (ROW_HEIGHT * scene->scale),
    .gap = (int) (ROW_GAP * scene->scale),
    .dark = options->dark,
    .contrast = options->contrast,
    .palette = coop_colors_palette (options->look.coloring),
  };
  coop_map_layout (&scene->view);
  if (options->look.zoom > 0)
    coop_map_zoom (&scene->view, options->look.zoom, options->look.from);
  scene->look = options->look;
  scene->look.zoom = scene->view.zoom;
  scene->look.from = scene->view.from;
}

static void
add_pieces (CoopScene *scene, const CoopSceneOptions *options)
{
  const CoopFrame *frame = scene->frame;
  const CoopColors *colors = options->colors;
  CoopColoring coloring = options->look.coloring;
  CoopColors own = { 0 };
  if (!colors)
    coop_colors_follow (&own, coloring, frame);
  for (guint i = 0; i < frame->n_pieces; i++)
    {
      const CoopMapPiece *piece = &frame->pieces[i];
      CoopDrawPiece *drawn = &scene->pieces[i];
      *drawn = (CoopDrawPiece) { .addr = piece->addr, .bytes = piece->bytes, .used = piece->used, .pin = piece->pin };
      if (coop_piece_is_void (piece))
        {
          drawn->kind = COOP_KIND_UNMANAGED;
          drawn->mark |= options->find ? COOP_MARK_DIM : 0;
          scene->has_voids = TRUE;
          continue;
        }
      scene->end = piece->addr + piece->bytes;
      scene->has_pending |= piece->pin == COOP_PIN_PENDING;
      if (options->find && coop_find_matches (options->find, piece))
        {
          scene->n_found++;
          scene->found_bytes += piece->bytes;
        }
      else if (options->find)
        drawn->mark |= COOP_MARK_DIM;
      if (!piece->used)
        continue;
      drawn->kind = coop_colors_of (coloring, colors ? colors : &own, frame, piece);
      if (coloring == COOP_COLOR_KIND)
        drawn->age = coop_colors_age (frame, piece);
      if (options->selected != 0 && piece->block == options->selected)
        drawn->mark |= COOP_MARK_SELECTED;
    }
  scene->searched = options->find != NULL;
}

/* "h 0.04", as far as there is a score. */
static void
paint_why (CoopScene *scene)
{
  const CoopFrame *frame = scene->frame;
  g_autofree CoopDrawVictim *victims = g_new0 (CoopDrawVictim, frame->n_victims + 1);
  CoopDrawWhy why = { .lo = frame->search_lo, .hi = frame->search_hi, .next_lo = frame->search.next_lo,
                      .next_hi = frame->search.next_hi, .victims = victims, .n_victims = frame->n_victims };
  if (frame->search_need == 0) /* nothing was asked for: tensors went to be moved together */
    why.hi = why.lo = why.next_hi = why.next_lo = 0;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < frame->n_victims; i++)
    {
      const CoopVictim *victim = &frame->victims[i];
      char *text = coop_format_score (victim->why.h);
      victims[i] = (CoopDrawVictim) { victim->addr, victim->bytes, text };
      g_ptr_array_add (texts, text);
    }
  coop_picture_why (&scene->view, scene->scale, &why, scene->pixels, (gsize) scene->view.width * 4);
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
  add_pieces (scene, options);
  mark_beyond_and_largest (scene);
  find_top (scene);
  lay_out (scene, options);
  scene->pixels = g_malloc ((gsize) options->width * (gsize) options->height * 4);
  g_autofree CoopDrawRange *victims = g_new (CoopDrawRange, frame->n_victims + 1);
  for (guint i = 0; i < frame->n_victims; i++)
    victims[i] = (CoopDrawRange) { frame->victims[i].addr, frame->victims[i].bytes };
  coop_picture_map (&scene->view, scene->scale, scene->pieces, scene->n_pieces, victims, frame->n_victims,
                    scene->pixels, (gsize) options->width * 4);
  if (options->look.why && frame->n_victims > 0)
    paint_why (scene);
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
