/* SPDX-License-Identifier: Apache-2.0 */
/* Out-of-memory card: see the header. */
#include "config.h"

#include "oom-card.h"

#include <glib/gi18n.h>

#include "format.h"
#include "run-words.h"

struct _CoopOomCard
{
  GtkWidget parent_instance;

  GtkWidget *box, *text, *moment, *budget;
  CoopLastOom oom;
  gboolean known, running;
};

G_DEFINE_FINAL_TYPE (CoopOomCard, coop_oom_card, GTK_TYPE_WIDGET)

enum { BUDGET, MOMENT, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
budget_clicked (GtkButton *button, CoopOomCard *self)
{
  g_signal_emit (self, signals[BUDGET], 0, self->oom.advice);
}

static void
moment_clicked (GtkButton *button, CoopOomCard *self)
{
  g_signal_emit (self, signals[MOMENT], 0, self->oom.seq);
}

static void
coop_oom_card_dispose (GObject *object)
{
  g_clear_pointer (&COOP_OOM_CARD (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_oom_card_parent_class)->dispose (object);
}

static void
coop_oom_card_class_init (CoopOomCardClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  static const char *const names[N_SIGNALS] = { "budget", "moment" };
  G_OBJECT_CLASS (class)->dispose = coop_oom_card_dispose;
  gtk_widget_class_set_css_name (widget_class, "oomcard");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_ALERT);
  for (int i = 0; i < N_SIGNALS; i++)
    signals[i] = g_signal_new (names[i], G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static GtkWidget *
add_button (CoopOomCard *self, const char *label, GCallback clicked)
{
  GtkWidget *button = gtk_button_new_with_label (label);
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  g_signal_connect (button, "clicked", clicked, self);
  gtk_box_append (GTK_BOX (self->box), button);
  return button;
}

static void
coop_oom_card_init (CoopOomCard *self)
{
  GtkWidget *icon = g_object_new (GTK_TYPE_IMAGE, "icon-name", "dialog-warning-symbolic", "valign",
                                  GTK_ALIGN_START, "accessible-role", GTK_ACCESSIBLE_ROLE_PRESENTATION, NULL);
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  self->text = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (self->text), 0);
  gtk_label_set_wrap (GTK_LABEL (self->text), TRUE);
  gtk_label_set_selectable (GTK_LABEL (self->text), TRUE);
  gtk_widget_set_hexpand (self->text, TRUE);
  gtk_widget_add_css_class (self->text, "numeric");
  gtk_widget_add_css_class (self->box, "oom");
  gtk_box_append (GTK_BOX (self->box), icon);
  gtk_box_append (GTK_BOX (self->box), self->text);
  self->moment = add_button (self, _("Show the Moment"), G_CALLBACK (moment_clicked));
  self->budget = add_button (self, "", G_CALLBACK (budget_clicked));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  gtk_widget_set_visible (GTK_WIDGET (self), FALSE);
}

GtkWidget *
coop_oom_card_new (void)
{
  return g_object_new (COOP_TYPE_OOM_CARD, NULL);
}

void
coop_oom_card_set_frame (CoopOomCard *self, const CoopFrame *frame, gboolean running, gboolean startable)
{
  gtk_widget_set_visible (GTK_WIDGET (self), frame->has_oom);
  if (!frame->has_oom)
    return;
  gtk_widget_set_visible (self->moment, !running && frame->totals.seq != frame->oom.seq);
  gtk_widget_set_visible (self->budget, (running || startable) && frame->oom.advice > 0);
  if (self->known && self->oom.seq == frame->oom.seq && self->running == running)
    return;
  self->known = TRUE;
  self->oom = frame->oom;
  self->running = running;
  g_autofree char *text = coop_words_for_oom (&frame->oom);
  g_autofree char *advice = coop_format_bytes (frame->oom.advice);
  /* Translators: a size */
  g_autofree char *label = g_strdup_printf (running ? _("Set Budget to %s") : _("Run Again with %s"), advice);
  gtk_label_set_text (GTK_LABEL (self->text), text);
  gtk_button_set_label (GTK_BUTTON (self->budget), label);
}
