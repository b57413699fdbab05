/* SPDX-License-Identifier: Apache-2.0 */
/* Scrubber: see the header. */
#include "config.h"

#include "scrubber.h"

#include <glib/gi18n.h>

#include "format.h"

struct _CoopScrubber
{
  GtkWidget parent_instance;

  GtkWidget *box, *text, *scale;
  gboolean setting; /* by us: no signal */
  gboolean following;
};

G_DEFINE_FINAL_TYPE (CoopScrubber, coop_scrubber, GTK_TYPE_WIDGET)

static guint scrubbed_signal;

static void
moved (GtkRange *range, CoopScrubber *self)
{
  if (self->setting)
    return;
  self->following = FALSE;
  g_signal_emit (self, scrubbed_signal, 0, coop_scrubber_get_event (self));
}

static void
coop_scrubber_dispose (GObject *object)
{
  g_clear_pointer (&COOP_SCRUBBER (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_scrubber_parent_class)->dispose (object);
}

static void
coop_scrubber_class_init (CoopScrubberClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_scrubber_dispose;
  gtk_widget_class_set_css_name (widget_class, "scrubber");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  scrubbed_signal = g_signal_new ("scrubbed", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void
coop_scrubber_init (CoopScrubber *self)
{
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);
  self->text = gtk_label_new (NULL);
  gtk_label_set_width_chars (GTK_LABEL (self->text), 26);
  gtk_label_set_xalign (GTK_LABEL (self->text), 0);
  gtk_widget_add_css_class (self->text, "numeric");
  gtk_widget_add_css_class (self->text, "caption");
  self->scale = gtk_scale_new_with_range (GTK_ORIENTATION_HORIZONTAL, 0, 1, 1);
  gtk_scale_set_draw_value (GTK_SCALE (self->scale), FALSE);
  gtk_widget_set_hexpand (self->scale, TRUE);
  gtk_widget_set_tooltip_text (self->scale, _("Event shown: [ and ] go by one, Shift goes by evictions, "
                                              "Home and End to the ends"));
  g_signal_connect (self->scale, "value-changed", G_CALLBACK (moved), self);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->scale), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _("Event shown"), -1);
  gtk_box_append (GTK_BOX (self->box), self->text);
  gtk_box_append (GTK_BOX (self->box), self->scale);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
coop_scrubber_new (void)
{
  return g_object_new (COOP_TYPE_SCRUBBER, NULL);
}

void
coop_scrubber_set_place (CoopScrubber *self, guint64 seq, guint64 last, guint64 ts)
{
  GtkAdjustment *adjustment = gtk_range_get_adjustment (GTK_RANGE (self->scale));
  double end = (double) last;
  self->setting = TRUE;
  if (gtk_adjustment_get_upper (adjustment) != end)
    gtk_adjustment_configure (adjustment, (double) seq, 0, end, 1, MAX (1, end / 100), 0);
  else if (self->following)
    gtk_adjustment_set_value (adjustment, (double) seq);
  self->setting = FALSE;
  g_autofree char *time = coop_format_ns (ts);
  g_autofree char *number = coop_format_count (seq), *of = coop_format_count (last);
  /* Translators: number of an event, of how many, and its time */
  g_autofree char *text = g_strdup_printf (_("event %s of %s · %s"), number, of, time);
  gtk_label_set_text (GTK_LABEL (self->text), text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->scale), GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT, text, -1);
}

void
coop_scrubber_follow (CoopScrubber *self)
{
  self->following = TRUE;
}

void
coop_scrubber_go_to (CoopScrubber *self, guint64 seq)
{
  gtk_range_set_value (GTK_RANGE (self->scale), (double) seq);
}

void
coop_scrubber_step (CoopScrubber *self, int n)
{
  gtk_range_set_value (GTK_RANGE (self->scale), gtk_range_get_value (GTK_RANGE (self->scale)) + n);
}

guint64
coop_scrubber_get_event (CoopScrubber *self)
{
  return (guint64) gtk_range_get_value (GTK_RANGE (self->scale));
}
