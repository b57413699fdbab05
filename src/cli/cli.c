/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share: messages, options, nearest names, sizes, JSON. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LENGTH 64

static void
say (const char *command, const char *format, va_list args)
{
  g_autofree char *text = g_strdup_vprintf (format, args);
  if (command != NULL)
    fprintf (stderr, "coop %s: %s\n", command, text);
  else
    fprintf (stderr, "coop: %s\n", text);
}

int
coop_cli_usage (const char *command, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  say (command, format, args);
  va_end (args);
  return COOP_EXIT_USAGE;
}

int
coop_cli_fail (const char *command, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  say (command, format, args);
  va_end (args);
  return COOP_EXIT_FAILED;
}

void
coop_cli_warn (const char *command, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  say (command, format, args);
  va_end (args);
}

/* Edit distance, adjacent letters swapped counting as one; words longer than the table are far. */
static guint
distance (const char *a, const char *b)
{
  gsize n = strlen (a), m = strlen (b);
  guint row[3][NAME_MAX_LENGTH + 1];
  if (n > NAME_MAX_LENGTH || m > NAME_MAX_LENGTH)
    return G_MAXUINT;
  for (gsize j = 0; j <= m; j++)
    row[0][j] = (guint) j;
  for (gsize i = 1; i <= n; i++)
    {
      guint *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
      now[0] = (guint) i;
      for (gsize j = 1; j <= m; j++)
        {
          guint change = last[j - 1] + (a[i - 1] != b[j - 1]);
          now[j] = MIN (change, MIN (last[j], now[j - 1]) + 1);
          if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
            now[j] = MIN (now[j], before[j - 2] + 1);
        }
    }
  return row[n % 3][m];
}

const char *
coop_cli_nearest (const char *word, const char *const *names)
{
  const char *best = NULL;
  guint least = (guint) MAX (2, strlen (word) / 3) + 1;
  for (; *names != NULL; names++)
    {
      guint d = distance (word, *names);
      if (d < least)
        {
          least = d;
          best = *names;
        }
    }
  return best;
}

static const char *
nearest_option (const char *word, const GOptionEntry *entries)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (; entries->long_name != NULL; entries++)
    g_ptr_array_add (names, (char *) entries->long_name);
  g_ptr_array_add (names, (char *) "help");
  g_ptr_array_add (names, NULL);
  g_autofree char *bare = g_strdup (word + strspn (word, "-"));
  bare[strcspn (bare, "=")] = 0;
  return coop_cli_nearest (bare, (const char *const *) names->pdata);
}

/* The first option that is not among the entries, to name what is near it. */
static const char *
unknown_option (char **argv, const GOptionEntry *entries)
{
  for (int i = 1; argv[i] != NULL && !g_str_equal (argv[i], "--"); i++)
    {
      gboolean known = g_str_has_prefix (argv[i], "--help");
      if (!g_str_has_prefix (argv[i], "--"))
        continue;
      g_autofree char *bare = g_strdup (argv[i] + 2);
      bare[strcspn (bare, "=")] = 0;
      for (const GOptionEntry *e = entries; e->long_name != NULL; e++)
        known |= g_str_equal (e->long_name, bare);
      if (!known)
        return argv[i];
    }
  return NULL;
}

/* GLib knows `-j 2` but not `-j2`, which make and ninja have taught everyone. */
static void
split_numbers (int *argc, char ***argv, const GOptionEntry *entries)
{
  static GPtrArray *words;   /* as long as the process, as argv does */
  gboolean options = TRUE;
  words = g_ptr_array_new ();
  for (int i = 0; i < *argc; i++)
    {
      char *word = (*argv)[i];
      const GOptionEntry *e = entries;
      options &= !g_str_equal (word, "--");
      while (e->long_name != NULL && (e->short_name == 0 || e->short_name != word[1] || e->arg != G_OPTION_ARG_INT))
        e++;
      if (options && i > 0 && word[0] == '-' && e->long_name != NULL && g_ascii_isdigit (word[2]))
        {
          g_ptr_array_add (words, g_strndup (word, 2));
          word = g_strdup (word + 2);
        }
      g_ptr_array_add (words, word);
    }
  *argc = (int) words->len;
  g_ptr_array_add (words, NULL);
  *argv = (char **) words->pdata;
}

gboolean
coop_cli_parse (const char *args, const char *summary, const GOptionEntry *entries, int *argc,
                char ***argv)
{
  g_autoptr (GOptionContext) context = g_option_context_new (args);
  g_autoptr (GError) error = NULL;
  g_autofree char *command = g_strdup ((*argv)[0]);
  g_autofree char *name = g_strdup_printf ("coop %s", command);
  g_set_prgname (name);
  g_option_context_set_summary (context, summary);
  g_option_context_add_main_entries (context, entries, NULL);
  gboolean runs_another = args != NULL && g_str_has_prefix (args, "--");
  g_option_context_set_strict_posix (context, runs_another);
  if (!runs_another)
    split_numbers (argc, argv, entries);
  if (!g_option_context_parse (context, argc, argv, &error))
    {
      const char *bad = g_error_matches (error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION)
                            ? unknown_option (*argv, entries) : NULL;
      const char *near = bad != NULL ? nearest_option (bad, entries) : NULL;
      if (near != NULL)
        coop_cli_usage (command, "%s; did you mean --%s?", error->message, near);
      else
        coop_cli_usage (command, "%s", error->message);
      return FALSE;
    }
  if (*argc > 1 && g_str_equal ((*argv)[1], "--"))
    {
      memmove (*argv + 1, *argv + 2, sizeof (char *) * (gsize) (*argc - 1));
      (*argc)--;
    }
  return TRUE;
}

char *
coop_cli_count (guint64 n, const char *one, const char *many)
{
  return g_strdup_printf ("%" G_GUINT64_FORMAT " %s", n, n == 1 ? one : many);
}

char *
coop_cli_size (guint64 bytes)
{
  char text[32];
  coop_size_format (bytes, text, sizeof text);
  return g_strdup (text);
}

char *
coop_cli_duration (double ns)
{
  if (ns >= 60e9)
    return g_strdup_printf ("%.0f min %02.0f s", floor (ns / 60e9), fmod (ns / 1e9, 60));
  if (ns >= 1e9)
    return g_strdup_printf ("%.2f s", ns / 1e9);
  if (ns >= 1e6)
    return g_strdup_printf ("%.0f ms", ns / 1e6);
  return g_strdup_printf ("%.0f us", ns / 1e3);
}
