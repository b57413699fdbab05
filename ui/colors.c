/* SPDX-License-Identifier: Apache-2.0 */
/* Colors: see the header. */
#include "config.h"

#include "colors.h"

#include <glib/gi18n.h>
#include <math.h>

#include "legend.h"

const char *
coop_coloring_name (CoopColoring coloring)
{
  static const char *const names[COOP_N_COLORINGS] = {
    [COOP_COLOR_KIND] = N_("Kind"),         [COOP_COLOR_PHASE] = N_("Phase"),
    [COOP_COLOR_OPERATOR] = N_("Operator"), [COOP_COLOR_AGE] = N_("Time Unused"),
    [COOP_COLOR_COST] = N_("Cost to Recompute"), [COOP_COLOR_PIN] = N_("Evictability"),
    [COOP_COLOR_LINE] = N_("Line of the Script"),
  };
  return _(names[coloring]);
}

CoopMapPalette
coop_colors_palette (CoopColoring coloring)
{
  switch (coloring)
    {
    case COOP_COLOR_AGE:
    case COOP_COLOR_COST:
      return COOP_PALETTE_RAMP;
    case COOP_COLOR_PHASE:
    case COOP_COLOR_OPERATOR:
    case COOP_COLOR_PIN:
    case COOP_COLOR_LINE:
      return COOP_PALETTE_GROUP;
    case COOP_COLOR_KIND:
    case COOP_N_COLORINGS:
      break;
    }
  return COOP_PALETTE_KIND;
}

guint8
coop_colors_age (const CoopFrame *frame, const CoopMapPiece *piece)
{
  if (frame->totals.ts <= piece->used_ts)
    return 0;
  double ms = (double) (frame->totals.ts - piece->used_ts) / 1e6;
  return (guint8) MIN (255, 255 * log1p (ms) / log1p (30000));
}

/* A decade is two and a half steps, from a microsecond to a second. */
static guint8
step_of_cost (guint64 ns)
{
  if (ns <= 1000)
    return 0;
  return (guint8) MIN (COOP_N_RAMP - 1, (log10 ((double) ns) - 3) / 6 * (COOP_N_RAMP - 1));
}

static guint32
id_of (CoopColoring coloring, const CoopMapPiece *piece)
{
  return coloring == COOP_COLOR_LINE ? piece->line : piece->name;
}

guint8
coop_colors_of (CoopColoring coloring, const CoopColors *colors, const CoopFrame *frame, const CoopMapPiece *piece)
{
  guint32 id;
  switch (coloring)
    {
    case COOP_COLOR_PHASE:
      return piece->name == 0 && piece->phase == COOP_PHASE_OTHER ? 0 : (guint8) (piece->phase + 1);
    case COOP_COLOR_AGE:
      return coop_colors_age (frame, piece) * COOP_N_RAMP / 256;
    case COOP_COLOR_COST:
      return step_of_cost (piece->cost);
    case COOP_COLOR_PIN:
      return (guint8) (piece->pin + 1);
    case COOP_COLOR_OPERATOR:
    case COOP_COLOR_LINE:
      id = id_of (coloring, piece);
      for (guint8 i = 1; i < COOP_N_GROUPS && id != 0; i++)
        if (colors->ids[i] == id)
          return i;
      return 0;
    case COOP_COLOR_KIND:
    case COOP_N_COLORINGS:
      break;
    }
  return piece->kind;
}

/* ---- who gets a hue ---- */

static GHashTable *
count_bytes (CoopColoring coloring, const CoopFrame *frame)
{
  GHashTable *bytes = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < frame->n_pieces; i++)
    {
      gpointer key = GUINT_TO_POINTER (id_of (coloring, &frame->pieces[i]));
      if (!frame->pieces[i].used || !key)
        continue;
      gsize sum = GPOINTER_TO_SIZE (g_hash_table_lookup (bytes, key)) + frame->pieces[i].bytes;
      g_hash_table_insert (bytes, key, GSIZE_TO_POINTER (sum));
    }
  return bytes;
}

static gboolean
has_hue (const CoopColors *colors, guint32 id)
{
  for (int i = 1; i < COOP_N_GROUPS; i++)
    if (colors->ids[i] == id)
      return TRUE;
  return FALSE;
}

/* The largest without a hue, the smaller number of equals; 0: none. */
static guint32
largest_without (const CoopColors *colors, GHashTable *bytes)
{
  GHashTableIter iter;
  gpointer key, value;
  guint32 best = 0;
  gsize most = 0;
  g_hash_table_iter_init (&iter, bytes);
  while (g_hash_table_iter_next (&iter, &key, &value))
    {
      guint32 id = GPOINTER_TO_UINT (key);
      gsize sum = GPOINTER_TO_SIZE (value);
      if (has_hue (colors, id) || sum < most || (sum == most && best != 0 && id > best))
        continue;
      best = id;
      most = sum;
    }
  return best;
}

gboolean
coop_colors_follow (CoopColors *colors, CoopColoring coloring, const CoopFrame *frame)
{
  gboolean changed = colors->coloring != coloring;
  if (changed)
    *colors = (CoopColors) { .coloring = coloring };
  if (coloring != COOP_COLOR_OPERATOR && coloring != COOP_COLOR_LINE)
    return changed;
  g_autoptr (GHashTable) bytes = count_bytes (coloring, frame);
  for (int i = 1; i < COOP_N_GROUPS; i++)
    {
      if (colors->ids[i] != 0 && g_hash_table_contains (bytes, GUINT_TO_POINTER (colors->ids[i])))
        continue;
      guint32 id = largest_without (colors, bytes);
      if (id == 0)
        break;
      colors->ids[i] = id;
      changed = TRUE;
    }
  return changed;
}

/* ---- the legend ---- */

static void
sample_free (gpointer data)
{
  CoopLegendSample *sample = data;
  g_free (sample->name);
  g_free (sample);
}

/* Takes the name. */
static void
add (GPtrArray *legend, guint32 argb, char *name)
{
  CoopLegendSample *sample = g_new (CoopLegendSample, 1);
  *sample = (CoopLegendSample) { argb, name };
  g_ptr_array_add (legend, sample);
}

static void
add_groups (GPtrArray *legend, CoopColoring coloring, gboolean dark, gboolean contrast)
{
  static const char *const phases[] = { N_("Other"), N_("Forward"), N_("Backward"), N_("Optimizer") };
  int n = coloring == COOP_COLOR_PHASE ? COOP_N_PHASES : COOP_N_PINS;
  for (int i = 0; i < n; i++)
    add (legend, coop_map_group_color (i + 1, dark, contrast),
         g_strdup (coloring == COOP_COLOR_PHASE ? _(phases[i]) : coop_legend_pin_name ((CoopPin) i)));
}

static void
add_ramp (GPtrArray *legend, CoopColoring coloring, gboolean dark)
{
  static const struct { int step; const char *age, *cost; } stops[] = {
    { 0, N_("just used"), N_("1 µs or unknown") },
    { COOP_N_RAMP / 3, N_("30 ms"), N_("100 µs") },
    { COOP_N_RAMP * 2 / 3, N_("1 s"), N_("10 ms") },
    { COOP_N_RAMP - 1, N_("30 s or longer"), N_("1 s or more") },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (stops); i++)
    add (legend, coop_map_ramp_color (stops[i].step, dark),
         g_strdup (coloring == COOP_COLOR_AGE ? _(stops[i].age) : _(stops[i].cost)));
}

GPtrArray *
coop_colors_legend (CoopColoring coloring, const CoopColors *colors, gboolean dark, gboolean contrast,
                    CoopNameOf name_of, gpointer user)
{
  GPtrArray *legend = g_ptr_array_new_with_free_func (sample_free);
  CoopNameKind kind = coloring == COOP_COLOR_LINE ? COOP_NAME_LINE : COOP_NAME_OPERATOR;
  switch (coloring)
    {
    case COOP_COLOR_PHASE:
    case COOP_COLOR_PIN:
      add_groups (legend, coloring, dark, contrast);
      break;
    case COOP_COLOR_AGE:
    case COOP_COLOR_COST:
      add_ramp (legend, coloring, dark);
      break;
    case COOP_COLOR_OPERATOR:
    case COOP_COLOR_LINE:
      for (int i = 1; i < COOP_N_GROUPS && colors->ids[i] != 0; i++)
        {
          char *name = name_of ? name_of (user, kind, colors->ids[i]) : NULL;
          add (legend, coop_map_group_color (i, dark, contrast), name ? name : g_strdup ("?"));
        }
      /* Translators: all operators, or lines, that have no colour of their own */
      add (legend, coop_map_group_color (0, dark, contrast), g_strdup (_("Others")));
      break;
    case COOP_COLOR_KIND:
    case COOP_N_COLORINGS:
      break;
    }
  return legend;
}
