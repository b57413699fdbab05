/* SPDX-License-Identifier: Apache-2.0 */
/* Shot: see the header. */
#include "config.h"

#include "shot.h"

CoopShot *
coop_shot_ref (CoopShot *shot)
{
  return g_atomic_rc_box_acquire (shot);
}

static void
chart_shot_clear (gpointer data)
{
  CoopChartShot *chart = data;
  g_clear_object (&chart->texture);
  g_free (chart->points);
}

void
coop_chart_shot_unref (CoopChartShot *chart)
{
  g_atomic_rc_box_release_full (chart, chart_shot_clear);
}

void
coop_shot_clear_parts (CoopShot *shot)
{
  g_clear_pointer (&shot->scene, coop_scene_unref);
  g_clear_object (&shot->map);
  if (shot->chart)
    coop_chart_shot_unref (shot->chart);
  g_clear_pointer (&shot->events, g_ptr_array_unref);
  g_clear_pointer (&shot->legend, g_ptr_array_unref);
  g_clear_pointer (&shot->victims, g_ptr_array_unref);
  g_free (shot->answer);
}

void
coop_shot_unref (CoopShot *shot)
{
  g_atomic_rc_box_release_full (shot, (GDestroyNotify) coop_shot_clear_parts);
}

CoopShot *
coop_shot_new (const CoopShot *parts)
{
  CoopShot *shot = g_atomic_rc_box_new0 (CoopShot);
  *shot = *parts;
  if (shot->scene)
    coop_scene_ref (shot->scene);
  if (shot->map)
    g_object_ref (shot->map);
  if (shot->chart)
    g_atomic_rc_box_acquire (shot->chart);
  if (shot->events)
    g_ptr_array_ref (shot->events);
  if (shot->legend)
    g_ptr_array_ref (shot->legend);
  if (shot->victims)
    g_ptr_array_ref (shot->victims);
  shot->answer = g_strdup (parts->answer);
  return shot;
}
