/* SPDX-License-Identifier: Apache-2.0 */
/* Policy panel: see the header. */
#include "config.h"

#include "policy-panel.h"

#include <glib/gi18n.h>

#include "policy-row.h"

#define SETTLE_US G_USEC_PER_SEC

struct _CoopPolicyPanel
{
  GtkWidget parent_instance;

  GtkWidget *scroller;
  CoopPolicyRow *rows[COOP_N_PARAMS];
};

G_DEFINE_FINAL_TYPE (CoopPolicyPanel, coop_policy_panel, GTK_TYPE_WIDGET)

static guint changed_signal;

static void
row_changed (CoopPolicyRow *row, CoopPolicyPanel *self)
{
  g_signal_emit (self, changed_signal, 0, (guint) coop_policy_row_get_param (row));
}

/* "memory" -> "Memory", translated if it is one that we know. */
static char *
title_of (const char *group)
{
  static const char *const known[] = { N_("Memory"), N_("Eviction"), N_("Checks"), N_("Trace") };
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (g_ascii_strcasecmp (known[i], group) == 0)
      return g_strdup (_(known[i]));
  return g_strdup (group);
}

static GtkWidget *
make_group (CoopPolicyPanel *self, const char *group, gboolean open)
{
  g_autofree char *title = title_of (group);
  GtkWidget *expander = gtk_expander_new (title);
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);
  gtk_widget_add_css_class (expander, "policy-group");
  gtk_widget_set_margin_top (box, 8);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (g_str_equal (coop_param_info[i].group, group))
      {
        GtkWidget *row = coop_policy_row_new ((CoopParam) i);
        self->rows[i] = COOP_POLICY_ROW (row);
        g_signal_connect (row, "changed", G_CALLBACK (row_changed), self);
        gtk_box_append (GTK_BOX (box), row);
      }
  gtk_expander_set_child (GTK_EXPANDER (expander), box);
  gtk_expander_set_expanded (GTK_EXPANDER (expander), open);
  return expander;
}

static gboolean
is_first_of_group (int param)
{
  for (int i = 0; i < param; i++)
    if (g_str_equal (coop_param_info[i].group, coop_param_info[param].group))
      return FALSE;
  return TRUE;
}

static void
coop_policy_panel_dispose (GObject *object)
{
  CoopPolicyPanel *self = COOP_POLICY_PANEL (object);
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (coop_policy_panel_parent_class)->dispose (object);
}

static void
coop_policy_panel_class_init (CoopPolicyPanelClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_policy_panel_dispose;
  gtk_widget_class_set_css_name (widget_class, "policypanel");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
  changed_signal = g_signal_new ("changed", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void
coop_policy_panel_init (CoopPolicyPanel *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 14);
  int n_groups = 0;
  gtk_widget_set_margin_start (box, 14);
  gtk_widget_set_margin_end (box, 12);
  gtk_widget_set_margin_top (box, 12);
  gtk_widget_set_margin_bottom (box, 18);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (is_first_of_group (i))
      gtk_box_append (GTK_BOX (box), make_group (self, coop_param_info[i].group, n_groups++ < 2));
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), box);
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
  gtk_widget_set_size_request (GTK_WIDGET (self), 276, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Policy"), -1);
}

GtkWidget *
coop_policy_panel_new (void)
{
  return g_object_new (COOP_TYPE_POLICY_PANEL, NULL);
}

void
coop_policy_panel_set_policy (CoopPolicyPanel *self, const CoopPolicy *policy)
{
  gint64 now = g_get_monotonic_time ();
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      gint64 touched = coop_policy_row_get_touched (self->rows[i]);
      if (touched == 0 || now - touched > SETTLE_US)
        coop_policy_row_set_value (self->rows[i], policy->v[i]);
    }
}

void
coop_policy_panel_set_initial (CoopPolicyPanel *self, const CoopPolicy *policy)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      coop_policy_row_set_initial (self->rows[i], policy->v[i]);
      coop_policy_row_set_value (self->rows[i], policy->v[i]);
    }
}

CoopValue
coop_policy_panel_get_value (CoopPolicyPanel *self, CoopParam param)
{
  return coop_policy_row_get_value (self->rows[param]);
}

void
coop_policy_panel_reach (CoopPolicyPanel *self, guint64 bytes)
{
  coop_policy_row_reach (self->rows[COOP_PARAM_BUDGET], bytes);
}

void
coop_policy_panel_set_live (CoopPolicyPanel *self, gboolean live, gboolean replay)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    coop_policy_row_set_live (self->rows[i], live && (replay || i != COOP_PARAM_ALLOCATOR));
}

void
coop_policy_panel_get_policy (CoopPolicyPanel *self, CoopPolicy *policy)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    policy->v[i] = coop_policy_row_get_value (self->rows[i]);
}

void
coop_policy_panel_force (CoopPolicyPanel *self, const CoopPolicy *policy)
{
  for (int i = 0; i < COOP_N_PARAMS; i++)
    coop_policy_row_set_value (self->rows[i], policy->v[i]);
}

void
coop_policy_panel_take_preset (CoopPolicyPanel *self, CoopParam param)
{
  CoopPolicy policy;
  if (param != COOP_PARAM_EVICTOR)
    return;
  coop_policy_panel_get_policy (self, &policy);
  coop_policy_preset (&policy, (CoopEvictorName) policy.v[COOP_PARAM_EVICTOR].i);
  coop_policy_panel_force (self, &policy);
}

/* The evictor stands for its preset: with it change the exponents that the preset names. */
static void
apply_evictor (CoopPolicyPanel *self, CoopEvictorName evictor, CoopSession *session)
{
  CoopPolicy policy, before;
  guint64 mask = 0;
  for (int i = 0; i < COOP_N_PARAMS; i++)
    policy.v[i] = coop_policy_row_get_value (self->rows[i]);
  before = policy;
  coop_policy_preset (&policy, evictor);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (!coop_value_equal ((CoopParam) i, before.v[i], policy.v[i]) || i == COOP_PARAM_EVICTOR)
      mask |= (guint64) 1 << i;
  coop_session_set_policy (session, &policy, mask, COOP_SOURCE_PRESET);
}

void
coop_policy_panel_apply (CoopPolicyPanel *self, CoopParam param, CoopSession *session)
{
  CoopValue value = coop_policy_panel_get_value (self, param);
  if (param == COOP_PARAM_EVICTOR)
    apply_evictor (self, (CoopEvictorName) value.i, session);
  else
    coop_session_set_param (session, param, value, COOP_SOURCE_SLIDER);
}
