/* SPDX-License-Identifier: Apache-2.0 */
/* Drawer: see the header. */
#include "config.h"

#include "drawer.h"

#include <glib/gi18n.h>

#include "headline.h"
#include "run-words.h"
#include "table.h"
#include "trace-table.h"
#include "why-view.h"

/* A list makes a row for every item anew when it is replaced, which takes its time: while all moves,
 * only as many are shown as can be seen; once it stands still, those that one may want to search are
 * added a few at a time. */
#define ROWS_MOVING 16
#define ROWS_STILL 200
#define ROWS_A_TURN 16

struct _CoopDrawer
{
  GtkWidget parent_instance;

  GtkWidget *box, *stack, *events, *blocks, *why, *counters;
  GPtrArray *tables; /* CoopTraceTable, not owned */
  GPtrArray *rows;  /* of `growing`, not all of them shown yet; or NULL */
  CoopTable *growing;
  guint events_serial, blocks_serial;
  gboolean moving;
};

G_DEFINE_FINAL_TYPE (CoopDrawer, coop_drawer, GTK_TYPE_WIDGET)

static guint picked_signal, turned_signal, victim_signal, row_signal;

static void
block_picked (CoopTable *table, guint64 block, CoopDrawer *self)
{
  g_signal_emit (self, picked_signal, 0, block);
}

static void
victim_picked (CoopWhyView *view, guint n, CoopDrawer *self)
{
  g_signal_emit (self, victim_signal, 0, n);
}

static void
row_picked (CoopTraceTable *table, guint64 block, guint64 event, CoopDrawer *self)
{
  g_signal_emit (self, row_signal, 0, block, event, FALSE);
}

static void
row_activated (CoopTraceTable *table, guint64 block, guint64 event, CoopDrawer *self)
{
  g_signal_emit (self, row_signal, 0, block, event, TRUE);
}

static void
turned (CoopDrawer *self)
{
  g_signal_emit (self, turned_signal, 0);
}

static void
coop_drawer_dispose (GObject *object)
{
  CoopDrawer *self = COOP_DRAWER (object);
  if (self->stack)
    g_signal_handlers_disconnect_by_data (self->stack, self);
  self->stack = NULL;
  g_clear_pointer (&self->rows, g_ptr_array_unref);
  g_clear_pointer (&self->tables, g_ptr_array_unref);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_drawer_parent_class)->dispose (object);
}

static void
coop_drawer_class_init (CoopDrawerClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_drawer_dispose;
  gtk_widget_class_set_css_name (widget_class, "drawer");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  picked_signal = g_signal_new ("picked", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_UINT64);
  victim_signal = g_signal_new ("victim", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_UINT);
  row_signal = g_signal_new ("row", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                             G_TYPE_NONE, 3, G_TYPE_UINT64, G_TYPE_UINT64, G_TYPE_BOOLEAN);
  turned_signal = g_signal_new ("turned", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 0);
}

static void
add_table (CoopDrawer *self, const CoopTableSpec *spec)
{
  GtkWidget *table = coop_trace_table_new (spec);
  gtk_stack_add_titled (GTK_STACK (self->stack), table, spec ? spec->id : "query", spec ? _(spec->title) : _("Query"));
  g_signal_connect (table, "picked", G_CALLBACK (row_picked), self);
  g_signal_connect (table, "activated", G_CALLBACK (row_activated), self);
  g_ptr_array_add (self->tables, table);
}

static void
coop_drawer_init (CoopDrawer *self)
{
  GtkWidget *switcher = gtk_stack_switcher_new ();
  self->stack = gtk_stack_new ();
  self->events = coop_words_new_event_table ();
  self->blocks = coop_words_new_block_table ();
  self->why = coop_why_view_new ();
  self->counters = coop_counters_new ();
  gtk_stack_add_titled (GTK_STACK (self->stack), self->events, "events", _("Events"));
  gtk_stack_add_titled (GTK_STACK (self->stack), self->blocks, "blocks", _("Blocks"));
  gtk_stack_add_titled (GTK_STACK (self->stack), self->why, "why", _("Why These"));
  self->tables = g_ptr_array_new ();
  for (guint i = 0; i < coop_n_table_specs; i++)
    add_table (self, &coop_table_specs[i]);
  add_table (self, NULL);
  gtk_stack_add_titled (GTK_STACK (self->stack), self->counters, "counters", _("Counters"));
  gtk_widget_set_size_request (self->stack, -1, 150);
  GtkWidget *scroller = gtk_scrolled_window_new (); /* there may be more titles than fit */
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_EXTERNAL, GTK_POLICY_NEVER);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), switcher);
  gtk_stack_switcher_set_stack (GTK_STACK_SWITCHER (switcher), GTK_STACK (self->stack));
  gtk_widget_set_halign (switcher, GTK_ALIGN_START);
  gtk_widget_add_css_class (switcher, "compact");
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 4);
  gtk_box_append (GTK_BOX (self->box), scroller);
  gtk_box_append (GTK_BOX (self->box), self->stack);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  g_signal_connect (self->blocks, "picked", G_CALLBACK (block_picked), self);
  g_signal_connect (self->why, "picked", G_CALLBACK (victim_picked), self);
  g_signal_connect_swapped (self->stack, "notify::visible-child", G_CALLBACK (turned), self);
}

GtkWidget *
coop_drawer_new (void)
{
  return g_object_new (COOP_TYPE_DRAWER, NULL);
}

void
coop_drawer_set_path (CoopDrawer *self, const char *path)
{
  for (guint i = 0; i < self->tables->len; i++)
    coop_trace_table_set_path (self->tables->pdata[i], path);
}

void
coop_drawer_set_block (CoopDrawer *self, guint64 block)
{
  for (guint i = 0; i < self->tables->len; i++)
    coop_trace_table_set_block (self->tables->pdata[i], block);
}

void
coop_drawer_turn_to (CoopDrawer *self, const char *name)
{
  gtk_stack_set_visible_child_name (GTK_STACK (self->stack), name);
}

gboolean
coop_drawer_shows (CoopDrawer *self, const char *name)
{
  return g_str_equal (gtk_stack_get_visible_child_name (GTK_STACK (self->stack)), name);
}

void
coop_drawer_reset (CoopDrawer *self)
{
  self->events_serial = self->blocks_serial = 0;
}

/* Takes the rows. */
static void
show_rows (CoopDrawer *self, GtkWidget *table, GPtrArray *rows)
{
  g_clear_pointer (&self->rows, g_ptr_array_unref);
  self->growing = COOP_TABLE (table);
  self->rows = rows;
  coop_table_set_rows (self->growing, rows, ROWS_MOVING);
}

void
coop_drawer_grow (CoopDrawer *self)
{
  if (!self->rows)
    return;
  guint there = coop_table_get_n_rows (self->growing);
  if (there < self->rows->len)
    coop_table_add_rows (self->growing, self->rows, there, ROWS_A_TURN);
  else
    g_clear_pointer (&self->rows, g_ptr_array_unref);
}

void
coop_drawer_set_shot (CoopDrawer *self, CoopShot *shot, gboolean moving)
{
  GtkWidget *visible = gtk_stack_get_visible_child (GTK_STACK (self->stack));
  guint n = moving ? ROWS_MOVING : ROWS_STILL;
  if (moving != self->moving)
    coop_drawer_reset (self);
  self->moving = moving;
  if (!gtk_widget_get_visible (GTK_WIDGET (self)))
    return;
  if (visible == self->events && shot->events && shot->events_serial != self->events_serial)
    {
      show_rows (self, self->events, coop_words_for_events (shot->events, n));
      self->events_serial = shot->events_serial;
    }
  if (visible == self->blocks && shot->scene && shot->map_serial != self->blocks_serial)
    {
      show_rows (self, self->blocks, coop_words_for_blocks (shot->scene, n));
      self->blocks_serial = shot->map_serial;
    }
  if (visible == self->why)
    coop_why_view_set_shot (COOP_WHY_VIEW (self->why), shot);
  if (visible == self->counters && shot->scene)
    coop_counters_set_frame (COOP_COUNTERS (self->counters), shot->scene->frame, &shot->health);
}
