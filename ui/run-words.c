/* SPDX-License-Identifier: Apache-2.0 */
/* Run words: see the header. */
#include "config.h"

#include "run-words.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#include "format.h"
#include "legend.h"
#include "table.h"

char *
coop_words_for_hole (const CoopScene *scene, long at)
{
  const CoopMapPiece *piece = &scene->frame->pieces[at];
  guint64 need = scene->frame->need;
  g_autofree char *size = coop_format_bytes (piece->bytes), *addr = coop_format_addr (piece->addr);
  g_autofree char *wanted = coop_format_bytes (need);
  if (coop_piece_is_void (piece))
    /* Translators: size and address */
    return g_strdup_printf (_("Not backed by the device\n%s of addresses at %s: no memory is there now."), size, addr);
  GString *text = g_string_new (NULL);
  if (scene->pieces[at].mark & COOP_MARK_BEYOND)
    /* Translators: size and address */
    g_string_append_printf (text, _("Beyond the budget\n%s at %s"), size, addr);
  else
    g_string_append_printf (text, at == scene->largest ? _("The largest hole\n%s at %s") : _("Hole\n%s at %s"),
                            size, addr);
  if (need > 0)
    g_string_append_printf (text,
                            piece->bytes >= need ? _("\nThe last request, %s, would fit.")
                                                 : _("\nToo small for the last request, %s."),
                            wanted);
  return g_string_free (text, FALSE);
}

char *
coop_words_for_piece (const CoopScene *scene, long at)
{
  const CoopMapPiece *piece = &scene->frame->pieces[at];
  guint64 now = scene->frame->totals.ts;
  g_autofree char *size = coop_format_bytes (piece->bytes), *addr = coop_format_addr (piece->addr);
  g_autofree char *age = coop_format_ns (now > piece->used_ts ? now - piece->used_ts : 0);
  /* Translators: size, address, kind of memory, time, and whether it is pinned */
  return g_strdup_printf (_("%s at %s, %s\nlast used %s ago\n%s"), size, addr,
                          coop_legend_kind_name (piece->kind), age, coop_legend_pin_name (piece->pin));
}

const char *
coop_words_for_nothing (void)
{
  return _("Point at the map to see what lies there. Click to keep it in sight.\n"
           "Rows read like text: addresses grow to the right, then down.");
}

char *
coop_words_for_oom (const CoopLastOom *oom)
{
  static const CoopPin reasons[] = { COOP_PIN_OPERATOR, COOP_PIN_CONSTANT, COOP_PIN_ESCAPED, COOP_PIN_USER,
                                     COOP_PIN_UNMANAGED };
  g_autofree char *asked = coop_format_bytes (oom->asked), *available = coop_format_bytes (oom->free);
  g_autofree char *largest = coop_format_bytes (oom->largest);
  g_autofree char *advice = coop_format_bytes (oom->advice);
  GString *text = g_string_new (NULL);
  g_string_append_printf (
      text, _("Out of memory: %s were asked for, %s were free, the largest hole was %s."), asked, available, largest);
  g_string_append (text, "\n");
  for (gsize i = 0; i < G_N_ELEMENTS (reasons); i++)
    if (oom->body.pinned[i] > 0)
      {
        g_autofree char *bytes = coop_format_bytes (oom->body.pinned[i]);
        /* Translators: a size, then why it is pinned */
        g_string_append_printf (text, _("%s pinned: %s. "), bytes, coop_legend_pin_name (reasons[i]));
      }
  if (oom->body.unclaimed > 0)
    {
      g_autofree char *bytes = coop_format_bytes (oom->body.unclaimed);
      g_string_append_printf (text, _("%s pinned: %s. "), bytes,
                              coop_legend_pin_name (COOP_PIN_UNCLAIMED));
    }
  if (oom->advice > 0)
    g_string_append_printf (text, _("A budget of %s would do."), advice);
  return g_string_free (text, FALSE);
}

/* ---- tables ---- */

GtkWidget *
coop_words_new_event_table (void)
{
  const CoopTableColumn columns[] = {
    { _("Event"), TRUE, FALSE }, { _("Time"), TRUE, FALSE }, { _("What happened"), FALSE, TRUE }, { NULL }
  };
  return coop_table_new (columns, _("Latest events"));
}

GtkWidget *
coop_words_new_block_table (void)
{
  const CoopTableColumn columns[] = {
    { _("Size"), TRUE, FALSE },  { _("Address"), TRUE, FALSE },  { _("What"), FALSE, FALSE },
    { _("Unused for"), TRUE, FALSE }, { _("Cost"), TRUE, FALSE }, { _("State"), FALSE, TRUE },
    { NULL }
  };
  return coop_table_new (columns, _("The map as a table: the largest blocks and holes"));
}

GPtrArray *
coop_words_for_events (GPtrArray *events, guint n)
{
  GPtrArray *rows = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = events->len; i-- > 0 && rows->len < n;)
    {
      const CoopEventLine *line = events->pdata[i];
      CoopTableRow *row = coop_table_row_new (line->seq + 1);
      coop_table_row_take (row, 0, coop_format_count (line->seq));
      coop_table_row_take (row, 1, g_strdup_printf ("%.3f s", (double) line->ts / 1e9));
      coop_table_row_take (row, 2, g_strdup (line->text));
      g_ptr_array_add (rows, row);
    }
  return rows;
}

static CoopTableRow *
row_for_piece (const CoopFrame *frame, const CoopMapPiece *piece)
{
  CoopTableRow *row = coop_table_row_new (piece->used ? piece->block : 0);
  guint64 age = frame->totals.ts > piece->used_ts ? frame->totals.ts - piece->used_ts : 0;
  coop_table_row_take (row, 0, coop_format_bytes (piece->bytes));
  coop_table_row_take (row, 1, coop_format_addr (piece->addr));
  coop_table_row_take (row, 2, g_strdup (piece->used ? coop_legend_kind_name (piece->kind) : _("Hole")));
  if (piece->used)
    {
      coop_table_row_take (row, 3, coop_format_ns (age));
      coop_table_row_take (row, 4, piece->cost ? coop_format_ns (piece->cost) : g_strdup ("–"));
      coop_table_row_take (row, 5, g_strdup (coop_legend_pin_name (piece->pin)));
    }
  return row;
}

GPtrArray *
coop_words_for_blocks (const CoopScene *scene, guint n)
{
  const CoopFrame *frame = scene->frame;
  GPtrArray *rows = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < MIN (n, scene->n_top); i++)
    g_ptr_array_add (rows, row_for_piece (frame, &frame->pieces[scene->top[i]]));
  return rows;
}

/* ---- the chart's legend ---- */

static void
draw_sample (GtkDrawingArea *area, cairo_t *cr, int width, int height, gpointer series)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  coop_chart_swatch (GPOINTER_TO_INT (series), adw_style_manager_get_dark (style),
                     adw_style_manager_get_high_contrast (style), cr, width, height);
}

void
coop_words_fill_chart_legend (GtkBox *box)
{
  static const char *const names[] = { N_("used"), N_("pinned"), N_("largest hole"), N_("budget"),
                                       N_("evictions"), N_("brought back") };
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (box))))
    gtk_box_remove (box, child);
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      GtkWidget *entry = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 5);
      GtkWidget *area = gtk_drawing_area_new (), *label = gtk_label_new (_(names[i]));
      gtk_drawing_area_set_content_width (GTK_DRAWING_AREA (area), i < COOP_CHART_EVICTION ? 22 : 10);
      gtk_drawing_area_set_content_height (GTK_DRAWING_AREA (area), 12);
      gtk_drawing_area_set_draw_func (GTK_DRAWING_AREA (area), draw_sample, GINT_TO_POINTER ((int) i), NULL);
      gtk_widget_set_valign (area, GTK_ALIGN_CENTER);
      gtk_widget_add_css_class (label, "caption");
      gtk_box_append (GTK_BOX (entry), area);
      gtk_box_append (GTK_BOX (entry), label);
      gtk_box_append (box, entry);
    }
}
