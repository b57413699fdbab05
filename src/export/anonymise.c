/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymise: see the header. What is known to be private (files of the stacks, facts of the run) is
 * collected first and replaced wherever it stands; then everything that looks like a path is. */
#include "export/anonymise.h"

#include <string.h>

struct CoopAnonymiser {
  GPtrArray *needles;   /* char *, the longest first */
  GHashTable *aliases;  /* needle -> what stands for it */
  GHashTable *known;    /* text -> its replacement: texts come again and again */
  GRegex *path;
  guint files;
};

/* Facts that say nothing about who and where. */
static const char *const harmless[] = { "clock", "coopscope", "machine", "pid", "python", "threads",
                                        "tool_version", "torch", "cuda", "device", "source", NULL };

static void
add (CoopAnonymiser *a, const char *needle, const char *alias)
{
  if (strlen (needle) < 2 || g_hash_table_contains (a->aliases, needle))
    return;
  char *own = g_strdup (needle);
  g_ptr_array_add (a->needles, own);
  g_hash_table_insert (a->aliases, own, g_strdup (alias));
}

/* "site-packages/torch/nn/modules/conv.py" of an installed file, NULL for others. */
static const char *
below_packages (const char *path)
{
  static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      const char *at = strstr (path, folders[i]);
      if (at != NULL)
        return at + 1;
    }
  return NULL;
}

/* People's names stand in the paths of their home folders. */
static void
add_home (CoopAnonymiser *a, const char *path)
{
  static const char *const homes[] = { "/home/", "/Users/" };
  for (guint i = 0; i < G_N_ELEMENTS (homes); i++)
    if (g_str_has_prefix (path, homes[i]))
      {
        const char *name = path + strlen (homes[i]);
        g_autofree char *user = g_strndup (name, strcspn (name, "/"));
        add (a, user, "user");
      }
}

static gboolean
take_file (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  CoopAnonymiser *a = user;
  if (values[0] == NULL || *values[0] == 0)
    return TRUE;
  const char *below = below_packages (values[0]);
  const char *end = strrchr (values[0], '.');
  gboolean script = end != NULL && strchr (end, '/') == NULL && strlen (end) <= 4;
  g_autofree char *alias = below != NULL ? g_strdup (below)
                                         : g_strdup_printf ("file%u%s", ++a->files, script ? end : "");
  add_home (a, values[0]);
  if (below != NULL || script || strpbrk (values[0], "/\\") != NULL) /* "module", "??", "<stdin>" are no files */
    add (a, values[0], alias);
  return TRUE;
}

static gboolean
take_meta (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  CoopAnonymiser *a = user;
  if (g_strv_contains (harmless, values[0]) || strlen (values[1]) < 3)
    return TRUE;
  add_home (a, values[1]);
  add (a, values[1], values[0]);
  return TRUE;
}

static int
longest_first (gconstpointer a, gconstpointer b)
{
  gsize x = strlen (*(char *const *) a), y = strlen (*(char *const *) b);
  return x < y ? 1 : x > y ? -1 : strcmp (*(char *const *) a, *(char *const *) b);
}

CoopAnonymiser *
coop_anonymiser_new (CoopReader *reader, GError **error)
{
  CoopAnonymiser *a = g_new0 (CoopAnonymiser, 1);
  a->needles = g_ptr_array_new ();
  a->aliases = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  a->known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  a->path = g_regex_new ("(?<![\\w/:.])(?:~|[A-Za-z]:)?(?:[/\\\\][\\w.@+%-]+){2,}/?", G_REGEX_OPTIMIZE, 0, NULL);
  if (!coop_reader_query (reader, "SELECT text FROM string WHERE id IN (SELECT file FROM frame) ORDER BY id", 60,
                          take_file, a, error)
      || !coop_reader_query (reader, "SELECT key, value FROM meta", 60, take_meta, a, error))
    {
      coop_anonymiser_free (a);
      return NULL;
    }
  g_ptr_array_sort (a->needles, longest_first);
  return a;
}

void
coop_anonymiser_free (CoopAnonymiser *a)
{
  if (a == NULL)
    return;
  g_ptr_array_unref (a->needles);
  g_hash_table_unref (a->aliases);
  g_hash_table_unref (a->known);
  g_regex_unref (a->path);
  g_free (a);
}

static gboolean
in_word (char c)
{
  return g_ascii_isalnum (c) || c == '_';
}

/* Whole words alone: a user called "mm" must not change "aten::addmm". */
static void
replace_word (GString *text, const char *needle, const char *alias)
{
  gsize length = strlen (needle), at = 0;
  for (const char *found; (found = strstr (text->str + at, needle)) != NULL;)
    {
      at = (gsize) (found - text->str);
      gboolean begins = at == 0 || !in_word (text->str[at - 1]) || !in_word (*needle);
      gboolean ends = !in_word (text->str[at + length]) || !in_word (needle[length - 1]);
      if (begins && ends)
        {
          g_string_erase (text, (gssize) at, (gssize) length);
          g_string_insert (text, (gssize) at, alias);
        }
      at += begins && ends ? strlen (alias) : 1;
    }
}

const char *
coop_anonymise_text (CoopAnonymiser *a, const char *text)
{
  if (a == NULL || text == NULL || *text == 0)
    return text;
  const char *known = g_hash_table_lookup (a->known, text);
  if (known != NULL)
    return known;
  /* An operator's name is nobody's secret, nor is a list of numbers. */
  if (g_str_has_prefix (text, "aten::") || g_str_has_prefix (text, "aten.")
      || text[strspn (text, "[]0123456789,-.")] == 0)
    return text;
  GString *out = g_string_new (text);
  for (guint i = 0; i < a->needles->len; i++)
    replace_word (out, a->needles->pdata[i], g_hash_table_lookup (a->aliases, a->needles->pdata[i]));
  g_autofree char *valid = g_utf8_make_valid (out->str, (gssize) out->len);
  char *clean = g_regex_replace_literal (a->path, valid, -1, 0, "path", 0, NULL);
  g_string_free (out, TRUE);
  if (clean == NULL)
    clean = g_strdup ("?");
  g_hash_table_insert (a->known, g_strdup (text), clean);
  return clean;
}

const char *
coop_anonymise_meta (CoopAnonymiser *a, const char *key, const char *value)
{
  return a == NULL || key == NULL || g_strv_contains (harmless, key) ? value : "(removed)";
}
