/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells about processes. */
#include "session-private.h"

#include <string.h>

gboolean
coop_process_alive (int pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/stat", pid);
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  const char *state = strrchr (text, ')');   /* the name may hold anything */
  return state != NULL && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
}

char *
coop_command_text (char *const *argv)
{
  GString *text = g_string_new (NULL);
  for (int i = 0; argv[i] != NULL; i++)
    {
      gboolean plain = argv[i][0] != 0
                       && strspn (argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789-_=+./:,@%") == strlen (argv[i]);
      g_autofree char *quoted = plain ? g_strdup (argv[i]) : g_shell_quote (argv[i]);
      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", quoted);
    }
  return g_string_free (text, FALSE);
}

char *
coop_process_command (int pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/cmdline", pid), *text = NULL;
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  gsize n = 0;
  if (pid <= 0 || !g_file_get_contents (path, &text, &n, NULL) || n == 0)
    return g_strdup ("unknown");
  for (char *p = text; p < text + n; p += strlen (p) + 1)
    g_ptr_array_add (argv, p);
  g_ptr_array_add (argv, NULL);
  return coop_command_text ((char *const *) argv->pdata);
}

char *
coop_process_cwd (int pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/cwd", pid);
  char *cwd = g_file_read_link (path, NULL);
  return cwd != NULL ? cwd : g_strdup ("unknown");
}
