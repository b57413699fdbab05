/* SPDX-License-Identifier: Apache-2.0 */
/* Headline and counters: see the header. */
#include "config.h"

#include "headline.h"

#include <glib/gi18n.h>

#include "format.h"

enum { LARGEST, FREE, NEED, USED, N_NUMBERS };

struct _CoopHeadline
{
  GtkWidget parent_instance;
  GtkWidget *box;
  GtkWidget *value[N_NUMBERS], *caption[N_NUMBERS], *group[N_NUMBERS];
};

G_DEFINE_FINAL_TYPE (CoopHeadline, coop_headline, GTK_TYPE_WIDGET)

static void
set_text (GtkWidget *label, const char *text)
{
  if (!g_str_equal (gtk_label_get_text (GTK_LABEL (label)), text))
    gtk_label_set_text (GTK_LABEL (label), text);
}

static void
coop_headline_dispose (GObject *object)
{
  g_clear_pointer (&COOP_HEADLINE (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_headline_parent_class)->dispose (object);
}

static void
coop_headline_class_init (CoopHeadlineClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_headline_dispose;
  gtk_widget_class_set_css_name (widget_class, "headline");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static void
coop_headline_init (CoopHeadline *self)
{
  static const char *const helps[N_NUMBERS] = {
    N_("The largest block that can be given out without evicting anything"),
    N_("All free memory below the budget. The largest hole may be much smaller: that is fragmentation"),
    N_("What was asked for when memory last ran out"),
    N_("Memory in blocks, and the limit on it"),
  };
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 28);
  for (int i = 0; i < N_NUMBERS; i++)
    {
      self->group[i] = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
      self->value[i] = gtk_label_new ("–");
      self->caption[i] = gtk_label_new ("");
      gtk_label_set_xalign (GTK_LABEL (self->value[i]), 0);
      gtk_label_set_xalign (GTK_LABEL (self->caption[i]), 0);
      gtk_label_set_width_chars (GTK_LABEL (self->value[i]), i == USED ? 10 : 9);
      gtk_label_set_width_chars (GTK_LABEL (self->caption[i]), i == USED || i == FREE ? 20 : 16);
      gtk_label_set_ellipsize (GTK_LABEL (self->caption[i]), PANGO_ELLIPSIZE_END);
      gtk_widget_add_css_class (self->value[i], "numeric");
      gtk_widget_add_css_class (self->value[i], i == LARGEST ? "number-large" : "number");
      gtk_widget_add_css_class (self->caption[i], "caption");
      gtk_widget_add_css_class (self->caption[i], "numeric");
      gtk_widget_add_css_class (self->caption[i], "dim-label");
      gtk_widget_set_valign (self->value[i], GTK_ALIGN_END);
      gtk_widget_set_vexpand (self->value[i], TRUE);
      gtk_widget_set_tooltip_text (self->group[i], _(helps[i]));
      gtk_box_append (GTK_BOX (self->group[i]), self->value[i]);
      gtk_box_append (GTK_BOX (self->group[i]), self->caption[i]);
      gtk_box_append (GTK_BOX (self->box), self->group[i]);
    }
  set_text (self->caption[LARGEST], _("largest hole"));
  set_text (self->caption[FREE], _("free"));
  set_text (self->caption[NEED], _("last request"));
  set_text (self->caption[USED], _("used"));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _("Memory in numbers"), -1);
}

GtkWidget *
coop_headline_new (void)
{
  return g_object_new (COOP_TYPE_HEADLINE, NULL);
}

static void
set_bytes (CoopHeadline *self, int which, guint64 bytes, gboolean known)
{
  g_autofree char *text = known ? coop_format_bytes (bytes) : g_strdup ("–");
  set_text (self->value[which], text);
}

void
coop_headline_set_frame (CoopHeadline *self, const CoopFrame *frame)
{
  const CoopModelTotals *totals = &frame->totals;
  gboolean limited = totals->budget > 0;
  g_autofree char *budget = coop_format_bytes (totals->budget);
  g_autofree char *pinned = coop_format_bytes (totals->pinned);
  g_autofree char *count = coop_format_count (totals->holes);
  g_autofree char *holes = g_strdup_printf (
      /* Translators: a number */
      g_dngettext (GETTEXT_PACKAGE, "free in %s hole", "free in %s holes", (gulong) totals->holes), count);
  g_autofree char *used = limited
                              /* Translators: sizes: "(278 MiB used) of 340.0 MiB · 120.1 MiB pinned" */
                              ? g_strdup_printf (_("used of %s · %s pinned"), budget, pinned)
                              : g_strdup_printf (_("used, no limit · %s pinned"), pinned);
  set_bytes (self, LARGEST, totals->largest, limited);
  set_bytes (self, FREE, totals->free, limited);
  set_bytes (self, NEED, frame->need, frame->need > 0);
  set_bytes (self, USED, totals->used, TRUE);
  set_text (self->caption[FREE], holes);
  set_text (self->caption[USED], used);
  gboolean short_of = limited && frame->need > totals->largest;
  if (short_of)
    gtk_widget_add_css_class (self->value[LARGEST], "short");
  else
    gtk_widget_remove_css_class (self->value[LARGEST], "short");
}

/* ---- counters ---- */

enum {
  C_STEP, C_PEAK, C_EVICTABLE, C_EVICTED, C_ALLOCS, C_FREES, C_EVICTIONS, C_EVICTED_BYTES, C_HANDOVERS,
  C_REPLAYS, C_REPLAY_SHARE, C_SEARCHES, C_SEARCH_TIME, C_FRAGMENTATION, C_OOMS, C_EVENTS, C_RATE, C_LAG, C_RING,
  C_DROPPED, C_TRACE, N_COUNTERS
};

static const char *const counter_names[N_COUNTERS] = {
  [C_STEP] = N_("Step"),
  [C_PEAK] = N_("Peak"),
  [C_EVICTABLE] = N_("Evictable"),
  [C_EVICTED] = N_("Evicted now"),
  [C_ALLOCS] = N_("Blocks given out"),
  [C_FREES] = N_("Blocks given back"),
  [C_EVICTIONS] = N_("Evictions"),
  [C_EVICTED_BYTES] = N_("Evicted in all"),
  [C_HANDOVERS] = N_("Brought back"),
  [C_REPLAYS] = N_("Operators recomputed"),
  [C_REPLAY_SHARE] = N_("Time recomputing"),
  [C_SEARCHES] = N_("Searches"),
  [C_SEARCH_TIME] = N_("Time searching"),
  [C_FRAGMENTATION] = N_("Fragmentation"),
  [C_OOMS] = N_("Out of memory"),
  [C_EVENTS] = N_("Event"),
  [C_RATE] = N_("Events a second"),
  [C_LAG] = N_("Behind by"),
  [C_RING] = N_("Ring filled"),
  [C_DROPPED] = N_("Events lost"),
  [C_TRACE] = N_("Size of the trace"),
};

struct _CoopCounters
{
  GtkWidget parent_instance;
  GtkWidget *scroller, *value[N_COUNTERS];
};

G_DEFINE_FINAL_TYPE (CoopCounters, coop_counters, GTK_TYPE_WIDGET)

static void
coop_counters_dispose (GObject *object)
{
  g_clear_pointer (&COOP_COUNTERS (object)->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_counters_parent_class)->dispose (object);
}

static void
coop_counters_class_init (CoopCountersClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_counters_dispose;
  gtk_widget_class_set_css_name (widget_class, "counters");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
}

static void
coop_counters_init (CoopCounters *self)
{
  GtkWidget *flow = gtk_flow_box_new ();
  gtk_flow_box_set_selection_mode (GTK_FLOW_BOX (flow), GTK_SELECTION_NONE);
  gtk_flow_box_set_homogeneous (GTK_FLOW_BOX (flow), TRUE);
  gtk_flow_box_set_max_children_per_line (GTK_FLOW_BOX (flow), 7);
  gtk_widget_set_valign (flow, GTK_ALIGN_START);
  for (int i = 0; i < N_COUNTERS; i++)
    {
      GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
      GtkWidget *name = gtk_label_new (_(counter_names[i]));
      GtkWidget *child = gtk_flow_box_child_new ();
      self->value[i] = gtk_label_new ("–");
      gtk_label_set_xalign (GTK_LABEL (self->value[i]), 0);
      gtk_label_set_xalign (GTK_LABEL (name), 0);
      gtk_label_set_width_chars (GTK_LABEL (self->value[i]), 12);
      gtk_widget_add_css_class (self->value[i], "numeric");
      gtk_widget_add_css_class (name, "caption");
      gtk_widget_add_css_class (name, "dim-label");
      gtk_box_append (GTK_BOX (box), self->value[i]);
      gtk_box_append (GTK_BOX (box), name);
      gtk_widget_set_focusable (child, FALSE);
      gtk_flow_box_child_set_child (GTK_FLOW_BOX_CHILD (child), box);
      gtk_flow_box_append (GTK_FLOW_BOX (flow), child);
    }
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), flow);
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}

GtkWidget *
coop_counters_new (void)
{
  return g_object_new (COOP_TYPE_COUNTERS, NULL);
}

static void
take_text (CoopCounters *self, int which, char *text)
{
  set_text (self->value[which], text);
  g_free (text);
}

static char *
percent (double part)
{
  return g_strdup_printf ("%.1f %%", 100 * part);
}

void
coop_counters_set_frame (CoopCounters *self, const CoopFrame *frame, const CoopSessionHealth *health)
{
  const CoopModelTotals *t = &frame->totals;
  const char *phase = coop_phase_label (t->phase);
  take_text (self, C_STEP, g_strdup_printf ("%" G_GUINT64_FORMAT " %s", t->step, phase ? phase : ""));
  take_text (self, C_PEAK, coop_format_bytes (t->peak));
  take_text (self, C_EVICTABLE, coop_format_bytes (t->evictable));
  take_text (self, C_EVICTED, coop_format_bytes (t->evicted));
  take_text (self, C_ALLOCS, coop_format_count (t->allocs));
  take_text (self, C_FREES, coop_format_count (t->frees));
  take_text (self, C_EVICTIONS, coop_format_count (t->evictions));
  take_text (self, C_EVICTED_BYTES, coop_format_bytes (t->evicted_bytes));
  take_text (self, C_HANDOVERS, coop_format_count (t->handovers));
  take_text (self, C_REPLAYS, coop_format_count (t->replays));
  take_text (self, C_REPLAY_SHARE,
             percent (t->op_ns + t->replay_ns > 0
                          ? (double) t->replay_ns / (double) (t->op_ns + t->replay_ns)
                          : 0));
  take_text (self, C_SEARCHES, coop_format_count (t->searches));
  take_text (self, C_SEARCH_TIME, coop_format_ns (t->search_ns));
  take_text (self, C_FRAGMENTATION, percent (t->fragmentation));
  take_text (self, C_OOMS, coop_format_count (t->ooms));
  take_text (self, C_EVENTS, coop_format_count (t->seq == G_MAXUINT64 ? 0 : t->seq));
  take_text (self, C_RATE, coop_format_count ((guint64) health->events_per_s));
  take_text (self, C_LAG, g_strdup_printf ("%.0f ms", health->lag_ms));
  take_text (self, C_RING, percent (health->ring_fill));
  take_text (self, C_DROPPED, coop_format_count (health->dropped + health->lost + t->missing));
  take_text (self, C_TRACE, coop_format_bytes (health->trace_bytes));
}
