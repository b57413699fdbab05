/* SPDX-License-Identifier: Apache-2.0 */
/* One parameter of the policy as a control; see the header. */
#include "config.h"

#include "policy-row.h"

#include <glib/gi18n.h>
#include <math.h>

#define WIDE 50 /* a range of more than so many defaults is shown on a logarithm */

struct _CoopPolicyRow
{
  GtkWidget parent_instance;

  const CoopParamInfo *info;
  CoopValue value, initial;
  gint64 touched;
  gboolean setting; /* by us: no signal */
  gboolean live;

  GtkWidget *scale, *entry, *list, *toggle, *reset;
};

G_DEFINE_FINAL_TYPE (CoopPolicyRow, coop_policy_row, GTK_TYPE_WIDGET)

static guint changed_signal;

/* ---- slider and value ---- */

static gboolean
is_large_size (const CoopParamInfo *info)
{
  return info->type == COOP_TYPE_SIZE && info->max > 16 * COOP_MIB;
}

static gboolean
is_logarithmic (const CoopParamInfo *info)
{
  return info->type != COOP_TYPE_BOOL && info->type != COOP_TYPE_ENUM && !is_large_size (info)
         && info->max > WIDE * MAX (info->def, 1);
}

/* Where the logarithm bends from about linear. */
static double
knee (const CoopParamInfo *info)
{
  return info->def > 0 ? info->def : 1;
}

/* One step of a size. */
static double
unit (const CoopParamInfo *info)
{
  return info->type != COOP_TYPE_SIZE ? 1 : is_large_size (info) ? COOP_MIB : COOP_KIB;
}

double
coop_policy_row_to_slider (CoopParam param, CoopValue value)
{
  const CoopParamInfo *info = &coop_param_info[param];
  double number = info->type == COOP_TYPE_REAL ? value.d : (double) value.i;
  return is_logarithmic (info) ? log1p (number / knee (info)) : number / unit (info);
}

CoopValue
coop_policy_row_from_slider (CoopParam param, double position)
{
  const CoopParamInfo *info = &coop_param_info[param];
  double number = is_logarithmic (info) ? knee (info) * expm1 (position) : position * unit (info);
  CoopValue value;
  if (info->type == COOP_TYPE_REAL)
    value.d = round (number * 1000) / 1000;
  else
    value.i = (gint64) (round (number / unit (info)) * unit (info));
  return coop_param_clamp (param, value);
}

/* ---- showing ---- */

/* As coop_param_parse reads it again: with a point, whatever the locale. */
static char *
text_of (const CoopParamInfo *info, CoopValue value)
{
  char text[64];
  if (info->id == COOP_PARAM_BUDGET && value.i == 0)
    return g_strdup (_("no limit"));
  if (info->type == COOP_TYPE_SIZE)
    {
      coop_size_format ((guint64) value.i, text, sizeof text);
      return g_strdelimit (g_strdup (text), ",", '.');
    }
  if (info->type == COOP_TYPE_REAL)
    g_ascii_formatd (text, sizeof text, "%.3g", value.d);
  else
    coop_param_format (info->id, value, text, sizeof text);
  return g_strdup (text);
}

static void
show (CoopPolicyRow *self)
{
  const CoopParamInfo *info = self->info;
  g_autofree char *text = text_of (info, self->value);
  self->setting = TRUE;
  if (self->scale)
    {
      GtkAdjustment *adjustment = gtk_range_get_adjustment (GTK_RANGE (self->scale));
      double position = coop_policy_row_to_slider (info->id, self->value);
      if (info->id == COOP_PARAM_BUDGET && self->value.i == 0)
        position = gtk_adjustment_get_upper (adjustment);
      else if (position > gtk_adjustment_get_upper (adjustment))
        gtk_adjustment_set_upper (adjustment, position);
      gtk_adjustment_set_value (adjustment, position);
      gtk_accessible_update_property (GTK_ACCESSIBLE (self->scale), GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT,
                                      text, -1);
      if (!gtk_widget_has_focus (self->entry)
          && !gtk_widget_get_focus_child (self->entry))
        gtk_editable_set_text (GTK_EDITABLE (self->entry), text);
    }
  if (self->list)
    gtk_drop_down_set_selected (GTK_DROP_DOWN (self->list), (guint) self->value.i);
  if (self->toggle)
    gtk_switch_set_active (GTK_SWITCH (self->toggle), self->value.i != 0);
  self->setting = FALSE;
  /* The button keeps its place, so that nothing moves. */
  gboolean same = coop_value_equal (info->id, self->value, self->initial);
  gtk_widget_set_opacity (self->reset, same || !self->live ? 0 : 1);
  gtk_widget_set_sensitive (self->reset, !same && self->live);
}

/* A person has set it. */
static void
take (CoopPolicyRow *self, CoopValue value)
{
  value = coop_param_clamp (self->info->id, value);
  if (coop_value_equal (self->info->id, value, self->value))
    return;
  self->value = value;
  self->touched = g_get_monotonic_time ();
  show (self);
  g_signal_emit (self, changed_signal, 0);
}

static void
slider_moved (GtkRange *range, CoopPolicyRow *self)
{
  if (!self->setting)
    take (self, coop_policy_row_from_slider (self->info->id, gtk_range_get_value (range)));
}

static void
selected (GtkDropDown *list, GParamSpec *pspec, CoopPolicyRow *self)
{
  if (!self->setting)
    take (self, (CoopValue) { .i = (gint64) gtk_drop_down_get_selected (list) });
}

static void
toggled (GtkSwitch *toggle, GParamSpec *pspec, CoopPolicyRow *self)
{
  if (!self->setting)
    take (self, (CoopValue) { .i = gtk_switch_get_active (toggle) });
}

static void
reset_clicked (GtkButton *button, CoopPolicyRow *self)
{
  take (self, self->initial);
}

static const char *
mistake (CoopPolicyRow *self, CoopParse parse)
{
  if (parse == COOP_PARSE_RANGE)
    return _("Out of range");
  return self->info->type == COOP_TYPE_SIZE ? _("Not a size: write 300 MiB or 1.5 GB") : _("Not a number");
}

static void
entered (GtkEntry *entry, CoopPolicyRow *self)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (entry));
  CoopValue value = { 0 };
  CoopParse parse = COOP_PARSE_OK;
  if (self->info->id != COOP_PARAM_BUDGET || g_utf8_collate (text, _("no limit")) != 0)
    parse = coop_param_parse (self->info->id, text, &value);
  if (parse != COOP_PARSE_OK)
    {
      gtk_widget_add_css_class (self->entry, "error");
      gtk_widget_set_tooltip_text (self->entry, mistake (self, parse));
      gtk_accessible_update_state (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_STATE_INVALID,
                                   GTK_ACCESSIBLE_INVALID_TRUE, -1);
      return;
    }
  gtk_widget_remove_css_class (self->entry, "error");
  gtk_widget_set_tooltip_text (self->entry, NULL);
  gtk_accessible_reset_state (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_STATE_INVALID);
  gtk_widget_grab_focus (self->scale);
  take (self, value);
  show (self);
}

static void
entry_left (GtkEventControllerFocus *focus, CoopPolicyRow *self)
{
  entered (GTK_ENTRY (self->entry), self);
}

/* ---- making ---- */

static void
name_it (CoopPolicyRow *self, GtkWidget *control)
{
  gtk_accessible_update_property (GTK_ACCESSIBLE (control), GTK_ACCESSIBLE_PROPERTY_LABEL, self->info->name,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, _(self->info->help), -1);
}

static GtkWidget *
make_entry (CoopPolicyRow *self)
{
  GtkWidget *entry = gtk_entry_new ();
  GtkEventController *focus = gtk_event_controller_focus_new ();
  gtk_editable_set_width_chars (GTK_EDITABLE (entry), 9);
  gtk_editable_set_max_width_chars (GTK_EDITABLE (entry), 9);
  gtk_editable_set_alignment (GTK_EDITABLE (entry), 1);
  gtk_widget_add_css_class (entry, "numeric");
  gtk_widget_add_css_class (entry, "value");
  g_signal_connect (entry, "activate", G_CALLBACK (entered), self);
  g_signal_connect (focus, "leave", G_CALLBACK (entry_left), self);
  gtk_widget_add_controller (entry, focus);
  name_it (self, entry);
  return entry;
}

static GtkWidget *
make_scale (CoopPolicyRow *self)
{
  const CoopParamInfo *info = self->info;
  double lower = coop_policy_row_to_slider (
      info->id, info->type == COOP_TYPE_REAL ? (CoopValue) { .d = info->min }
                                             : (CoopValue) { .i = (gint64) info->min });
  double upper = coop_policy_row_to_slider (
      info->id, info->type == COOP_TYPE_REAL ? (CoopValue) { .d = info->max }
                                             : (CoopValue) { .i = (gint64) info->max });
  if (is_large_size (info))
    {
      lower = 1;
      upper = 1024;
    }
  double step = is_logarithmic (info) ? (upper - lower) / 100 : info->type == COOP_TYPE_REAL ? 0.05 : 1;
  GtkWidget *scale = gtk_scale_new_with_range (GTK_ORIENTATION_HORIZONTAL, lower, upper, step);
  gtk_scale_set_draw_value (GTK_SCALE (scale), FALSE);
  gtk_range_set_increments (GTK_RANGE (scale), step, is_large_size (info) ? 16 : step * 10);
  g_signal_connect (scale, "value-changed", G_CALLBACK (slider_moved), self);
  name_it (self, scale);
  return scale;
}

static void
fill (CoopPolicyRow *self, GtkWidget *line)
{
  const CoopParamInfo *info = self->info;
  switch (info->type)
    {
    case COOP_TYPE_ENUM:
      self->list = gtk_drop_down_new_from_strings (info->labels);
      gtk_widget_set_valign (self->list, GTK_ALIGN_CENTER);
      g_signal_connect (self->list, "notify::selected", G_CALLBACK (selected), self);
      name_it (self, self->list);
      gtk_box_append (GTK_BOX (line), self->list);
      break;
    case COOP_TYPE_BOOL:
      self->toggle = gtk_switch_new ();
      gtk_widget_set_valign (self->toggle, GTK_ALIGN_CENTER);
      g_signal_connect (self->toggle, "notify::active", G_CALLBACK (toggled), self);
      name_it (self, self->toggle);
      gtk_box_append (GTK_BOX (line), self->toggle);
      break;
    case COOP_TYPE_SIZE:
    case COOP_TYPE_INT:
    case COOP_TYPE_REAL:
      self->entry = make_entry (self);
      self->scale = make_scale (self);
      gtk_box_append (GTK_BOX (line), self->entry);
      break;
    }
}

static char *
label_of (const CoopParamInfo *info)
{
  g_autofree char *name = g_strdelimit (g_strdup (info->name), "_", ' ');
  if (*info->unit == '\0' || info->type == COOP_TYPE_SIZE || g_str_equal (info->unit, info->name))
    return g_steal_pointer (&name);
  return g_strdup_printf ("%s, %s", name, info->unit);
}

static void
build (CoopPolicyRow *self)
{
  GtkWidget *line = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  g_autofree char *name = label_of (self->info);
  GtkWidget *label = gtk_label_new (name);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_widget_set_hexpand (label, TRUE);
  gtk_box_append (GTK_BOX (line), label);

  self->reset = gtk_button_new_from_icon_name ("edit-undo-symbolic");
  gtk_widget_add_css_class (self->reset, "flat");
  gtk_widget_add_css_class (self->reset, "reset");
  gtk_widget_set_valign (self->reset, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text (self->reset, _("Back to the value at the start"));
  g_autofree char *reset_name = g_strdup_printf (_("Reset %s"), self->info->name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->reset), GTK_ACCESSIBLE_PROPERTY_LABEL, reset_name,
                                  -1);
  g_signal_connect (self->reset, "clicked", G_CALLBACK (reset_clicked), self);

  fill (self, line);
  gtk_box_append (GTK_BOX (line), self->reset);
  gtk_widget_set_parent (line, GTK_WIDGET (self));
  if (self->scale)
    gtk_widget_set_parent (self->scale, GTK_WIDGET (self));
  gtk_widget_set_tooltip_text (GTK_WIDGET (self), _(self->info->help));
}

static void
coop_policy_row_dispose (GObject *object)
{
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (object))))
    gtk_widget_unparent (child);
  G_OBJECT_CLASS (coop_policy_row_parent_class)->dispose (object);
}

static void
coop_policy_row_class_init (CoopPolicyRowClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_policy_row_dispose;
  gtk_widget_class_set_css_name (widget_class, "policyrow");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
  changed_signal = g_signal_new ("changed", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 0);
}

static void
coop_policy_row_init (CoopPolicyRow *self)
{
  GtkLayoutManager *layout = gtk_widget_get_layout_manager (GTK_WIDGET (self));
  gtk_orientable_set_orientation (GTK_ORIENTABLE (layout), GTK_ORIENTATION_VERTICAL);
}

/* In steps of 64 MiB, without a signal. */
static void
set_upper (CoopPolicyRow *self, guint64 bytes)
{
  self->setting = TRUE;
  gtk_adjustment_set_upper (gtk_range_get_adjustment (GTK_RANGE (self->scale)),
                            ceil ((double) bytes / COOP_MIB / 64) * 64);
  self->setting = FALSE;
}

/* ---- the face ---- */

GtkWidget *
coop_policy_row_new (CoopParam param)
{
  CoopPolicyRow *self = g_object_new (COOP_TYPE_POLICY_ROW, NULL);
  CoopPolicy policy;
  self->info = &coop_param_info[param];
  coop_policy_init (&policy);
  self->value = self->initial = policy.v[param];
  self->live = TRUE;
  build (self);
  show (self);
  return GTK_WIDGET (self);
}

CoopParam
coop_policy_row_get_param (CoopPolicyRow *self)
{
  return self->info->id;
}

CoopValue
coop_policy_row_get_value (CoopPolicyRow *self)
{
  return self->value;
}

void
coop_policy_row_set_value (CoopPolicyRow *self, CoopValue value)
{
  if (coop_value_equal (self->info->id, value, self->value))
    return;
  self->value = value;
  show (self);
}

void
coop_policy_row_set_initial (CoopPolicyRow *self, CoopValue value)
{
  self->initial = value;
  if (is_large_size (self->info) && value.i > 0)
    set_upper (self, 2 * (guint64) value.i);
  show (self);
}

gint64
coop_policy_row_get_touched (CoopPolicyRow *self)
{
  return self->touched;
}

void
coop_policy_row_reach (CoopPolicyRow *self, guint64 bytes)
{
  if (!is_large_size (self->info))
    return;
  GtkAdjustment *adjustment = gtk_range_get_adjustment (GTK_RANGE (self->scale));
  if ((double) bytes / COOP_MIB <= gtk_adjustment_get_upper (adjustment))
    return;
  set_upper (self, bytes);
  show (self);
}

void
coop_policy_row_set_live (CoopPolicyRow *self, gboolean live)
{
  GtkWidget *controls[] = { self->scale, self->entry, self->list, self->toggle };
  for (gsize i = 0; i < G_N_ELEMENTS (controls); i++)
    if (controls[i])
      gtk_widget_set_sensitive (controls[i], live);
  self->live = live;
  show (self);
}
