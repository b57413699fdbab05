/* SPDX-License-Identifier: Apache-2.0 */
/* What-if card: see the header. */
#include "config.h"

#include "what-if-card.h"

#include <glib/gi18n.h>
#include <math.h>

#include "format.h"

enum { POLICY, RESULT, OVERHEAD, EVICTIONS, RECOMPUTED, PEAK, N_COLUMNS };

struct _CoopWhatIfCard
{
  GtkWidget parent_instance;

  GtkWidget *box, *cells[2][N_COLUMNS], *maps, *spinner, *error;
};

G_DEFINE_FINAL_TYPE (CoopWhatIfCard, coop_what_if_card, GTK_TYPE_WIDGET)

enum { MAPS, UNDO, RESET, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
maps_toggled (GtkToggleButton *button, CoopWhatIfCard *self)
{
  g_signal_emit (self, signals[MAPS], 0, gtk_toggle_button_get_active (button));
}

static void
undo_clicked (CoopWhatIfCard *self)
{
  g_signal_emit (self, signals[UNDO], 0);
}

static void
reset_clicked (CoopWhatIfCard *self)
{
  g_signal_emit (self, signals[RESET], 0);
}

static void
coop_what_if_card_dispose (GObject *object)
{
  g_clear_pointer (&COOP_WHAT_IF_CARD (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_what_if_card_parent_class)->dispose (object);
}

static void
coop_what_if_card_class_init (CoopWhatIfCardClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  GType type = G_TYPE_FROM_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_what_if_card_dispose;
  gtk_widget_class_set_css_name (widget_class, "whatifcard");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
  signals[MAPS] = g_signal_new ("maps", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_BOOLEAN);
  signals[UNDO] = g_signal_new ("undo", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[RESET] = g_signal_new ("reset", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static GtkWidget *
cell (GtkGrid *grid, const char *text, int column, int row, const char *class)
{
  GtkWidget *label = gtk_label_new (text);
  gtk_label_set_xalign (GTK_LABEL (label), column <= 1 ? 0 : 1);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_widget_set_hexpand (label, column > 0);
  gtk_widget_add_css_class (label, "numeric");
  gtk_widget_add_css_class (label, class);
  gtk_grid_attach (grid, label, column, row, 1, 1);
  return label;
}

static void
add_button (CoopWhatIfCard *self, GtkWidget *button, const char *help, GCallback clicked)
{
  gtk_widget_set_tooltip_text (button, help);
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  g_signal_connect_swapped (button, "clicked", clicked, self);
  gtk_box_append (GTK_BOX (self->box), button);
}

static void
coop_what_if_card_init (CoopWhatIfCard *self)
{
  static const char *const titles[N_COLUMNS] = { N_("Policy"), N_("Result"), N_("Overhead"), N_("Evictions"),
                                                 N_("Run Again"), N_("Peak") };
  GtkGrid *grid = GTK_GRID (gtk_grid_new ());
  gtk_grid_set_column_spacing (grid, 14);
  for (int i = 0; i < N_COLUMNS; i++)
    {
      cell (grid, _(titles[i]), i + 1, 0, "caption");
      for (int side = 0; side < 2; side++)
        self->cells[side][i] = cell (grid, "–", i + 1, side + 1, side ? "heading" : "body");
    }
  cell (grid, _("As recorded"), 0, 1, "body");
  cell (grid, _("What if"), 0, 2, "heading");
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);
  gtk_widget_add_css_class (self->box, "block-card");
  self->error = gtk_label_new (NULL);
  gtk_label_set_wrap (GTK_LABEL (self->error), TRUE);
  gtk_widget_set_visible (self->error, FALSE);
  gtk_widget_set_hexpand (GTK_WIDGET (grid), TRUE);
  gtk_box_append (GTK_BOX (self->box), self->error);
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (grid));
  self->spinner = gtk_spinner_new ();
  gtk_box_append (GTK_BOX (self->box), self->spinner);
  self->maps = gtk_toggle_button_new_with_mnemonic (_("_Two Maps"));
  gtk_widget_set_tooltip_text (self->maps, _("The map of the other outcome beside this one, moving in step"));
  gtk_widget_set_valign (self->maps, GTK_ALIGN_CENTER);
  g_signal_connect (self->maps, "toggled", G_CALLBACK (maps_toggled), self);
  gtk_box_append (GTK_BOX (self->box), self->maps);
  add_button (self, gtk_button_new_with_mnemonic (_("_Undo")), _("Back to the policy before (Ctrl+Z)"), G_CALLBACK (undo_clicked));
  add_button (self, gtk_button_new_with_mnemonic (_("_Reset")), _("The policy as recorded"), G_CALLBACK (reset_clicked));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, _("What if"), -1);
}

GtkWidget *
coop_what_if_card_new (void)
{
  return g_object_new (COOP_TYPE_WHAT_IF_CARD, NULL);
}

static void
set (GtkWidget *label, char *text)
{
  gtk_label_set_text (GTK_LABEL (label), text);
  g_free (text);
}

static void
show_side (CoopWhatIfCard *self, int n, const CoopWhatIfSide *side)
{
  GtkWidget **cells = self->cells[n];
  const CoopPlayOutcome *out = &side->outcome;
  if (!side->known)
    {
      for (int i = 0; i < N_COLUMNS; i++)
        gtk_label_set_text (GTK_LABEL (cells[i]), "–");
      return;
    }
  gint64 limit = side->policy.v[COOP_PARAM_BUDGET].i;
  g_autofree char *budget = limit > 0 ? coop_format_bytes ((guint64) limit) : g_strdup (_("no limit"));
  const char *const *evictors = coop_param_info[COOP_PARAM_EVICTOR].labels;
  const char *const *allocators = coop_param_info[COOP_PARAM_ALLOCATOR].labels;
  set (cells[POLICY], g_strdup_printf ("%s, %s, %s", evictors[side->policy.v[COOP_PARAM_EVICTOR].i],
                                       allocators[side->policy.v[COOP_PARAM_ALLOCATOR].i], budget));
  set (cells[RESULT], g_strdup (out->result == COOP_PLAY_OK ? _("finishes") : coop_play_text (out->result)));
  gtk_widget_set_tooltip_text (cells[RESULT], coop_play_text (out->result));
  set (cells[OVERHEAD], isnan (out->overhead) ? g_strdup ("–") : g_strdup_printf ("%.3f×", out->overhead));
  set (cells[EVICTIONS], coop_format_count (out->totals.evictions));
  set (cells[RECOMPUTED], coop_format_count (out->totals.replays));
  set (cells[PEAK], coop_format_bytes (out->totals.peak));
}

void
coop_what_if_card_show (CoopWhatIfCard *self, CoopWhatIf *what_if)
{
  const char *error = coop_what_if_get_error (what_if);
  gboolean busy = coop_what_if_is_busy (what_if);
  show_side (self, 0, coop_what_if_get_before (what_if));
  show_side (self, 1, coop_what_if_get_after (what_if));
  gtk_widget_set_visible (self->error, error != NULL);
  if (error)
    gtk_label_set_text (GTK_LABEL (self->error), error);
  gtk_widget_set_visible (self->spinner, busy);
  gtk_spinner_set_spinning (GTK_SPINNER (self->spinner), busy);
}

gboolean
coop_what_if_card_get_maps (CoopWhatIfCard *self)
{
  return gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (self->maps));
}

void
coop_what_if_card_set_maps (CoopWhatIfCard *self, gboolean two)
{
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (self->maps), two);
}
