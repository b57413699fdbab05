/* SPDX-License-Identifier: Apache-2.0 */
/* Why these: see the header. */
#include "config.h"

#include "why-view.h"

#include <glib/gi18n.h>
#include <math.h>

#include "format.h"
#include "table.h"

struct _CoopWhyView
{
  GtkWidget parent_instance;

  GtkWidget *box, *text, *table;
  guint64 seq;      /* of the eviction shown */
  gboolean named;   /* with the names of its victims */
};

G_DEFINE_FINAL_TYPE (CoopWhyView, coop_why_view, GTK_TYPE_WIDGET)

static guint picked_signal;

static void
row_picked (CoopTable *table, guint64 id, CoopWhyView *self)
{
  if (id > 0)
    g_signal_emit (self, picked_signal, 0, (guint) id - 1);
}

static void
coop_why_view_dispose (GObject *object)
{
  g_clear_pointer (&COOP_WHY_VIEW (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_why_view_parent_class)->dispose (object);
}

static void
coop_why_view_class_init (CoopWhyViewClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_why_view_dispose;
  gtk_widget_class_set_css_name (widget_class, "whyview");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  picked_signal = g_signal_new ("picked", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void
coop_why_view_init (CoopWhyView *self)
{
  const CoopTableColumn columns[] = {
    { _("Victim"), FALSE, TRUE },        { _("Size"), TRUE, FALSE },      { _("Address"), TRUE, FALSE },
    { _("h"), TRUE, FALSE },             { _("Own Cost"), TRUE, FALSE },  { _("With Chain"), TRUE, FALSE },
    { _("Unused for"), TRUE, FALSE },    { NULL }
  };
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  self->text = gtk_label_new (NULL);
  gtk_label_set_wrap (GTK_LABEL (self->text), TRUE);
  gtk_label_set_xalign (GTK_LABEL (self->text), 0);
  gtk_label_set_selectable (GTK_LABEL (self->text), TRUE);
  gtk_widget_add_css_class (self->text, "numeric");
  self->table = coop_table_new (columns, _("Victims of the last eviction"));
  gtk_widget_set_vexpand (self->table, TRUE);
  gtk_box_append (GTK_BOX (self->box), self->text);
  gtk_box_append (GTK_BOX (self->box), self->table);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  g_signal_connect (self->table, "picked", G_CALLBACK (row_picked), self);
  gtk_label_set_text (GTK_LABEL (self->text), _("Nothing was evicted yet."));
}

GtkWidget *
coop_why_view_new (void)
{
  return g_object_new (COOP_TYPE_WHY_VIEW, NULL);
}

static void
add_window (GString *text, const CoopFrame *frame)
{
  g_autofree char *lo = coop_format_addr (frame->search_lo), *hi = coop_format_addr (frame->search_hi);
  if (frame->search_hi <= frame->search_lo)
    return;
  /* Translators: two addresses */
  g_string_append_printf (text, _(" The cheapest window that makes room is %s to %s."), lo, hi);
  if (!isnan (frame->search_cost))
    /* Translators: a score, the sum of the victims' */
    g_string_append_printf (text, _(" Its h is %.3g."), frame->search_cost);
  if (isnan (frame->search_next_cost) || frame->search.next_hi <= frame->search.next_lo)
    return;
  g_autofree char *next = coop_format_addr (frame->search.next_lo);
  /* Translators: an address and a score */
  g_string_append_printf (text, _(" The runner-up, dashed, begins at %s: h %.3g."), next, frame->search_next_cost);
}

char *
coop_why_words (const CoopFrame *frame)
{
  guint64 bytes = 0;
  for (guint i = 0; i < frame->n_victims; i++)
    bytes += frame->victims[i].bytes;
  g_autofree char *need = coop_format_bytes (frame->search_need), *gone = coop_format_bytes (bytes);
  g_autofree char *available = coop_format_bytes (frame->search.free_bytes);
  g_autofree char *largest = coop_format_bytes (frame->search.largest);
  GString *text = g_string_new (NULL);
  if (frame->search_need == 0)
    {
      g_string_append_printf (text, g_dngettext (GETTEXT_PACKAGE, "%u block of %s went to make room for an operator that had none.",
                                                 "%u blocks of %s went to make room for an operator that had none.",
                                                 frame->n_victims),
                              frame->n_victims, gone);
      return g_string_free (text, FALSE);
    }
  g_string_append_printf (text,
                          /* Translators: four sizes and a number of blocks */
                          g_dngettext (GETTEXT_PACKAGE,
                                       "%s were asked for. %s were free, at most %s in one piece. %u block of %s went.",
                                       "%s were asked for. %s were free, at most %s in one piece. %u blocks of %s went.",
                                       frame->n_victims),
                          need, available, largest, frame->n_victims, gone);
  add_window (text, frame);
  return g_string_free (text, FALSE);
}

static CoopTableRow *
row_for (const CoopFrame *frame, guint i, const char *name)
{
  const CoopVictim *victim = &frame->victims[i];
  CoopTableRow *row = coop_table_row_new (i + 1);
  g_autofree char *number = g_strdup_printf ("%" G_GUINT64_FORMAT, victim->tensor);
  /* Translators: number of a tensor */
  coop_table_row_take (row, 0, name ? g_strdup (name) : g_strdup_printf (_("tensor %s"), number));
  coop_table_row_take (row, 1, coop_format_bytes (victim->bytes));
  coop_table_row_take (row, 2, coop_format_addr (victim->addr));
  coop_table_row_take (row, 3, isfinite (victim->why.h) ? g_strdup_printf ("%.3g", victim->why.h) : g_strdup ("∞"));
  coop_table_row_take (row, 4, coop_format_ns (victim->why.own_cost));
  coop_table_row_take (row, 5, coop_format_ns (victim->why.own_cost + victim->why.chain_cost));
  coop_table_row_take (row, 6, coop_format_ns (victim->why.staleness));
  return row;
}

void
coop_why_view_set_shot (CoopWhyView *self, CoopShot *shot)
{
  const CoopFrame *frame = shot->scene ? shot->scene->frame : NULL;
  if (!frame || frame->n_victims == 0 || (self->seq == frame->search_seq && self->named == (shot->victims != NULL)))
    return;
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (g_object_unref);
  self->seq = frame->search_seq;
  self->named = shot->victims != NULL;
  for (guint i = 0; i < MIN (frame->n_victims, 100); i++)
    g_ptr_array_add (rows, row_for (frame, i, shot->victims && i < shot->victims->len ? shot->victims->pdata[i] : NULL));
  g_autofree char *text = coop_why_words (frame);
  gtk_label_set_text (GTK_LABEL (self->text), text);
  coop_table_set_rows (COOP_TABLE (self->table), rows, rows->len);
}
