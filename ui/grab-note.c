/* SPDX-License-Identifier: Apache-2.0 */
/* Grab note: see the header. */
#include "config.h"

#include "grab-note.h"

#include <glib/gstdio.h>

#define SETTLE_US (G_USEC_PER_SEC / 4) /* the picture has been on screen for so long */

struct CoopGrabNote
{
  char *path;
  guint64 event;
  int width, height;
  gint64 since; /* when this picture came */
  gboolean written;
};

CoopGrabNote *
coop_grab_note_new_from_environment (void)
{
  const char *path = g_getenv ("COOPSCOPE_GRAB_NOTE");
  if (!path || !*path)
    return NULL;
  CoopGrabNote *note = g_new0 (CoopGrabNote, 1);
  note->path = g_strdup (path);
  return note;
}

void
coop_grab_note_free (CoopGrabNote *note)
{
  g_free (note->path);
  g_free (note);
}

static void
write_note (CoopGrabNote *note, CoopMapWidget *map, const CoopScene *scene)
{
  graphene_rect_t area;
  graphene_point_t at;
  double dx = 0, dy = 0, s = scene->scale;
  GtkNative *native = gtk_widget_get_native (GTK_WIDGET (map));
  coop_map_widget_get_area (map, &area);
  if (!native || !gtk_widget_compute_point (GTK_WIDGET (map), GTK_WIDGET (native), &area.origin, &at))
    return;
  gtk_native_get_surface_transform (native, &dx, &dy);
  g_autofree char *line = g_strdup_printf (
      "event=%" G_GUINT64_FORMAT " x=%d y=%d w=%d h=%d dark=%d contrast=%d scale=%d\n",
      scene->frame->totals.seq, (int) ((at.x + dx) * s), (int) ((at.y + dy) * s), scene->view.width,
      scene->view.height, scene->view.dark, scene->view.contrast, (int) s);
  note->written = g_file_set_contents (note->path, line, -1, NULL); /* in one piece, by renaming */
}

void
coop_grab_note_update (CoopGrabNote *note, CoopMapWidget *map, const CoopScene *scene, gboolean still)
{
  gint64 now = g_get_monotonic_time ();
  gboolean same = note->event == scene->frame->totals.seq && note->width == scene->view.width
                  && note->height == scene->view.height;
  if (!still || !same)
    {
      if (note->written)
        g_unlink (note->path);
      note->written = FALSE;
      note->event = scene->frame->totals.seq;
      note->width = scene->view.width;
      note->height = scene->view.height;
      note->since = now;
    }
  else if (!note->written && now - note->since > SETTLE_US)
    write_note (note, map, scene);
}
