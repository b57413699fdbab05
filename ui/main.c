/* SPDX-License-Identifier: Apache-2.0 */
/* coopscope: the window. What needs no display is done before there is one. */
#include "config.h"

#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <locale.h>
#include <unistd.h>

#include "application.h"
#include "map-of.h"
#include "run-options.h"

/* GL in software is slower than cairo and takes four times the processor, which the script needs. */
static void
choose_renderer (void)
{
  static const char *const devices[] = { "/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/nvidiactl" };
  for (gsize i = 0; i < G_N_ELEMENTS (devices); i++)
    if (g_access (devices[i], R_OK | W_OK) == 0)
      return;
  g_setenv ("GSK_RENDERER", "cairo", FALSE);
}

static gboolean
has_option (char **argv, const char *name, const char *letter)
{
  for (char **word = argv + 1; *word && !g_str_equal (*word, "--"); word++)
    if (g_str_equal (*word, name) || (letter && g_str_equal (*word, letter)))
      return TRUE;
  return FALSE;
}

int
main (int argc, char **argv)
{
  g_set_prgname ("coopscope"); /* --help is made before there is an application */
  setlocale (LC_ALL, "");
  bindtextdomain (GETTEXT_PACKAGE, LOCALEDIR);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);

  if (coop_map_of_wanted (argc, argv))
    return coop_map_of (argc, argv);
  if (has_option (argv, "--version", NULL))
    {
      g_print ("coopscope %s\n", COOP_VERSION);
      return 0;
    }
  if (has_option (argv, "--help", "-h"))
    {
      g_autofree char *text = coop_command_line_help ();
      g_print ("%s", text);
      return 0;
    }
  choose_renderer ();
  g_autoptr (CoopApplication) application = coop_application_new ();
  int status = g_application_run (G_APPLICATION (application), argc, argv);
  return status != 0 ? status : coop_application_get_status (application);
}
