/* SPDX-License-Identifier: Apache-2.0 */
/* Run page: how the map is looked at: colours, zoom, what is searched for, the last eviction explained.
 */
#include "config.h"

#include "run-page-private.h"

#include "drawer.h"
#include "legend.h"
#include "map-bar.h"
#include "map-widget.h"

void
coop_run_page_get_look (CoopRunPage *self, CoopLook *look)
{
  coop_map_bar_get_look (COOP_MAP_BAR (self->bar), look);
  coop_map_widget_get_zoom (COOP_MAP_WIDGET (self->map), &look->zoom, &look->from);
}

/* From the bar and the map to the camera. */
void
coop_run_page_look (CoopRunPage *self)
{
  CoopLook look = { 0 };
  coop_run_page_get_look (self, &look);
  coop_run_page_other_sizes (self);
  if (look.why && !self->why)
    coop_drawer_turn_to (COOP_DRAWER (self->drawer), "why");
  self->why = look.why;
  if (self->camera)
    {
      coop_camera_set_look (self->camera, &look);
      coop_camera_find (self->camera, coop_map_bar_get_text (COOP_MAP_BAR (self->bar)));
    }
}

static void
zoom_wanted (CoopMapBar *bar, int by, CoopRunPage *self)
{
  coop_map_widget_zoom (COOP_MAP_WIDGET (self->map), by);
}

static void
text_sought (CoopMapBar *bar, const char *text, CoopRunPage *self)
{
  if (self->camera)
    coop_camera_find (self->camera, text);
}

/* The next piece found after the selected one, around the end. */
static void
next_wanted (CoopMapBar *bar, int by, CoopRunPage *self)
{
  const CoopScene *scene = self->shot ? self->shot->scene : NULL;
  long n = scene ? (long) scene->n_pieces : 0, at = by > 0 ? -1 : n;
  if (!scene || !scene->searched || scene->n_found == 0)
    return;
  for (long i = 0; i < n; i++)
    if (self->selected != 0 ? scene->frame->pieces[i].block == self->selected
                            : scene->pieces[i].addr == self->found_addr && self->found)
      at = i;
  for (long step = 0; step < n; step++)
    {
      at = (at + by + n) % n;
      if (scene->pieces[at].mark & COOP_MARK_DIM)
        continue;
      self->found = TRUE;
      self->found_addr = scene->pieces[at].addr;
      coop_run_page_select (self, scene->frame->pieces[at].block);
      coop_map_widget_show_range (COOP_MAP_WIDGET (self->map), scene->pieces[at].addr, scene->pieces[at].bytes, FALSE);
      return;
    }
}

static void
victim_picked (CoopDrawer *drawer, guint n, CoopRunPage *self)
{
  const CoopScene *scene = self->shot ? self->shot->scene : NULL;
  if (scene && n < scene->frame->n_victims)
    coop_map_widget_show_range (COOP_MAP_WIDGET (self->map), scene->frame->victims[n].addr,
                                scene->frame->victims[n].bytes, FALSE);
}

/* The block on the map; to the moment only when asked, since it takes the map from where one looks. */
static void
row_wanted (CoopDrawer *drawer, guint64 block, guint64 event, gboolean go, CoopRunPage *self)
{
  const CoopScene *scene = self->shot ? self->shot->scene : NULL;
  if (block != 0)
    coop_run_page_select (self, block);
  for (guint i = 0; scene && block != 0 && i < scene->n_pieces; i++)
    if (scene->frame->pieces[i].block == block)
      coop_map_widget_show_range (COOP_MAP_WIDGET (self->map), scene->pieces[i].addr, scene->pieces[i].bytes, FALSE);
  if (go && event != G_MAXUINT64)
    coop_run_page_go_to (self, event);
}

void
coop_run_page_bind_look (GtkWidgetClass *widget_class)
{
  gtk_widget_class_bind_template_callback_full (widget_class, "look_changed", G_CALLBACK (coop_run_page_look));
  gtk_widget_class_bind_template_callback (widget_class, zoom_wanted);
  gtk_widget_class_bind_template_callback (widget_class, text_sought);
  gtk_widget_class_bind_template_callback (widget_class, next_wanted);
  gtk_widget_class_bind_template_callback (widget_class, victim_picked);
  gtk_widget_class_bind_template_callback (widget_class, row_wanted);
}

void
coop_run_page_show_look (CoopRunPage *self)
{
  coop_map_bar_set_scene (COOP_MAP_BAR (self->bar), self->shot->scene);
  if (self->shot->legend_serial == self->legend_serial)
    return;
  self->legend_serial = self->shot->legend_serial;
  coop_legend_set_samples (COOP_LEGEND (self->legend), self->shot->legend);
}

void
coop_run_page_do (CoopRunPage *self, const char *command)
{
  CoopMapBar *bar = COOP_MAP_BAR (self->bar);
  if (g_str_equal (command, "find"))
    coop_map_bar_search (bar, NULL);
  else if (g_str_equal (command, "why"))
    coop_map_bar_set_why (bar, !self->why);
  else if (g_str_equal (command, "zoom-all"))
    coop_map_widget_zoom (COOP_MAP_WIDGET (self->map), 0);
  else
    coop_map_widget_zoom (COOP_MAP_WIDGET (self->map), g_str_equal (command, "zoom-in") ? 1 : -1);
}
