/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of the map at an event of a file, by the code that paints it in the window. */
#include "config.h"

#include "map-of.h"

#include <cairo.h>
#include <glib/gi18n.h>
#include <stdio.h>
#include <string.h>

#include "scene.h"

gboolean
coop_map_of_wanted (int argc, char **argv)
{
  for (int i = 1; i < argc && !g_str_equal (argv[i], "--"); i++)
    if (g_str_has_prefix (argv[i], "--map-of"))
      return TRUE;
  return FALSE;
}

static CoopScene *
read_scene (const char *file, guint64 event, const CoopSceneOptions *options, GError **error)
{
  CoopReader *reader = coop_reader_open (file, error);
  CoopModel *model = reader ? coop_reader_model_at (reader, event, error) : NULL;
  CoopScene *scene = NULL;
  if (model)
    {
      CoopFrame *frame = coop_frame_new (model, 1);
      scene = coop_scene_new (frame, options);
      coop_frame_unref (frame);
      coop_model_free (model);
    }
  g_clear_pointer (&reader, coop_reader_free);
  return scene;
}

static gboolean
write_png (const CoopScene *scene, const char *out)
{
  int width = scene->view.width, height = scene->view.height;
  cairo_surface_t *surface = cairo_image_surface_create_for_data (
      (unsigned char *) scene->pixels, CAIRO_FORMAT_RGB24, width, height, width * 4);
  cairo_status_t status = cairo_surface_write_to_png (surface, out);
  cairo_surface_destroy (surface);
  if (status != CAIRO_STATUS_SUCCESS)
    fprintf (stderr, "coopscope: %s: %s\n", out, cairo_status_to_string (status));
  return status == CAIRO_STATUS_SUCCESS;
}

int
coop_map_of (int argc, char **argv)
{
  g_autofree char *file = NULL, *size = NULL, *out = NULL;
  gint64 event = G_MAXINT64;
  double scale = 1;
  gboolean dark = FALSE, contrast = FALSE;
  const GOptionEntry entries[] = {
    { "map-of", 0, 0, G_OPTION_ARG_FILENAME, &file, NULL, NULL },
    { "event", 0, 0, G_OPTION_ARG_INT64, &event, NULL, NULL },
    { "size", 0, 0, G_OPTION_ARG_STRING, &size, NULL, NULL },
    { "scale", 0, 0, G_OPTION_ARG_DOUBLE, &scale, NULL, NULL },
    { "dark", 0, 0, G_OPTION_ARG_NONE, &dark, NULL, NULL },
    { "high-contrast", 0, 0, G_OPTION_ARG_NONE, &contrast, NULL, NULL },
    { "out", 0, 0, G_OPTION_ARG_FILENAME, &out, NULL, NULL },
    { NULL }
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GError) error = NULL;
  CoopSceneOptions options = { .scale = 1 };
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    {
      fprintf (stderr, "coopscope: %s\n", error->message);
      return 2;
    }
  if (argc > 1 || !file || !out || event < 0 || !(scale > 0)
      || sscanf (size ? size : "1024x512", "%dx%d", &options.width, &options.height) != 2
      || options.width < 1 || options.height < 1 || options.width > 16384 || options.height > 16384)
    {
      fprintf (stderr, "usage: coopscope --map-of FILE [--event N] [--size WxH] [--scale S] [--dark] "
                       "[--high-contrast] --out FILE.png\n");
      return 2;
    }
  options.scale = scale;
  options.dark = dark;
  options.contrast = contrast;
  g_autoptr (CoopScene) scene = read_scene (file, (guint64) event, &options, &error);
  if (!scene)
    {
      fprintf (stderr, "coopscope: %s: %s\n", file, error ? error->message : "no map");
      return 1;
    }
  return write_png (scene, out) ? 0 : 1;
}
