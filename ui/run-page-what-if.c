/* SPDX-License-Identifier: Apache-2.0 */
/* Run page: what if. On a trace the sliders play its program again; the map of that outcome stands
 * beside the recorded one and follows it, operator by operator.
 */
#include "config.h"

#include "run-page-private.h"

#include "map-widget.h"
#include "policy-panel.h"
#include "what-if-card.h"

static void
clear_other (CoopRunPage *self)
{
  g_clear_pointer (&self->other_camera, coop_camera_free);
  g_clear_pointer (&self->other_path, g_free);
  coop_map_widget_set_shot (COOP_MAP_WIDGET (self->other_map), NULL);
}

void
coop_run_page_other_sizes (CoopRunPage *self)
{
  int width, height;
  double scale;
  CoopLook look = { 0 };
  if (!self->other_camera)
    return;
  coop_map_widget_get_wanted (COOP_MAP_WIDGET (self->other_map), &width, &height, &scale);
  coop_camera_set_map (self->other_camera, width, height, scale);
  coop_run_page_get_look (self, &look);
  look.zoom = 0;
  coop_camera_set_look (self->other_camera, &look);
  coop_run_page_set_camera_theme (self->other_camera);
}

static void
show_other (CoopRunPage *self)
{
  const char *path = coop_what_if_get_trace (self->what_if);
  gboolean two = coop_what_if_card_get_maps (COOP_WHAT_IF_CARD (self->what_if_card)) && path;
  gtk_widget_set_visible (self->other_map, two);
  if (!two || g_strcmp0 (path, self->other_path) == 0)
    return;
  clear_other (self);
  self->other_path = g_strdup (path);
  self->other_camera = coop_camera_new_for_file (path);
  coop_run_page_other_sizes (self);
  coop_run_page_step_other (self);
}

static void
what_if_changed (CoopWhatIf *what_if, CoopRunPage *self)
{
  coop_what_if_card_show (COOP_WHAT_IF_CARD (self->what_if_card), what_if);
  show_other (self);
}

void
coop_run_page_step_other (CoopRunPage *self)
{
  const CoopScene *scene = self->shot ? self->shot->scene : NULL;
  if (self->other_camera && scene)
    coop_camera_set_event (self->other_camera, coop_what_if_match (self->what_if, scene->frame->totals.seq));
}

void
coop_run_page_take_other (CoopRunPage *self)
{
  g_autoptr (CoopShot) shot = self->other_camera ? coop_camera_take (self->other_camera) : NULL;
  if (shot && shot->scene)
    coop_map_widget_set_shot (COOP_MAP_WIDGET (self->other_map), shot);
}

static void
ask (CoopRunPage *self)
{
  CoopPolicy policy;
  coop_policy_panel_get_policy (COOP_POLICY_PANEL (self->panel), &policy);
  if (!self->what_if)
    {
      self->what_if = coop_what_if_new (self->path);
      g_signal_connect (self->what_if, "changed", G_CALLBACK (what_if_changed), self);
    }
  coop_what_if_ask (self->what_if, &policy, coop_what_if_card_get_maps (COOP_WHAT_IF_CARD (self->what_if_card)));
  coop_what_if_card_show (COOP_WHAT_IF_CARD (self->what_if_card), self->what_if);
  gtk_widget_set_visible (self->what_if_card, TRUE);
}

void
coop_run_page_ask_what_if (CoopRunPage *self, guint param)
{
  CoopPolicy policy;
  if (!self->path)
    return;
  coop_policy_panel_take_preset (COOP_POLICY_PANEL (self->panel), (CoopParam) param);
  coop_policy_panel_get_policy (COOP_POLICY_PANEL (self->panel), &policy);
  g_array_append_val (self->policies, policy);
  ask (self);
}

static void
show_policy (CoopRunPage *self, const CoopPolicy *policy)
{
  coop_policy_panel_force (COOP_POLICY_PANEL (self->panel), policy);
  ask (self);
}

static void
what_if_undo (CoopRunPage *self)
{
  guint n = self->policies->len;
  if (n < 2)
    return;
  g_array_set_size (self->policies, n - 1);
  show_policy (self, &g_array_index (self->policies, CoopPolicy, n - 2));
}

static void
what_if_reset (CoopRunPage *self)
{
  if (self->policies->len == 0)
    return;
  g_array_set_size (self->policies, 1);
  show_policy (self, &g_array_index (self->policies, CoopPolicy, 0));
}

static void
what_if_maps (CoopWhatIfCard *card, gboolean two, CoopRunPage *self)
{
  if (two && self->what_if)
    ask (self);
  else if (self->what_if)
    show_other (self);
}

static gboolean
undo_by_key (GtkWidget *widget, GVariant *args, gpointer data)
{
  what_if_undo (COOP_RUN_PAGE (widget));
  return TRUE;
}

void
coop_run_page_clear_what_if (CoopRunPage *self)
{
  if (self->what_if)
    g_signal_handlers_disconnect_by_data (self->what_if, self);
  g_clear_object (&self->what_if);
  g_clear_pointer (&self->path, g_free);
  g_array_set_size (self->policies, 0);
  if (!self->other_map)
    return;
  clear_other (self);
  gtk_widget_set_visible (self->other_map, FALSE);
  gtk_widget_set_visible (self->what_if_card, FALSE);
}

gboolean
coop_run_page_is_what_if (CoopRunPage *self)
{
  return self->policies->len > 1;
}

void
coop_run_page_bind_what_if (GtkWidgetClass *widget_class)
{
  g_type_ensure (COOP_TYPE_WHAT_IF_CARD);
  gtk_widget_class_bind_template_callback (widget_class, what_if_undo);
  gtk_widget_class_bind_template_callback (widget_class, what_if_reset);
  gtk_widget_class_bind_template_callback (widget_class, what_if_maps);
  gtk_widget_class_bind_template_callback_full (widget_class, "other_resized", G_CALLBACK (coop_run_page_other_sizes));
  gtk_widget_class_add_binding (widget_class, GDK_KEY_z, GDK_CONTROL_MASK, undo_by_key, NULL);
}
