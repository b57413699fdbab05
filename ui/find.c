/* SPDX-License-Identifier: Apache-2.0 */
/* Find: see the header. */
#include "config.h"

#include "find.h"

#include <string.h>

#include "legend.h"

typedef enum { WORD_TEXT, WORD_ADDR, WORD_SIZE, WORD_COST, WORD_TENSOR, WORD_BLOCK, WORD_OP, WORD_HOLE } WordKind;

typedef struct {
  WordKind kind;
  char how;            /* '<', '>' or '=' */
  guint64 value;
  char *text;          /* folded */
  GHashTable *names, *lines; /* number -> whether its text has this word in it */
  gboolean kinds[COOP_N_KINDS], pins[COOP_N_PINS]; /* likewise */
} Word;

struct CoopFind
{
  GPtrArray *words;
};

static void
word_free (gpointer data)
{
  Word *word = data;
  g_free (word->text);
  g_hash_table_unref (word->names);
  g_hash_table_unref (word->lines);
  g_free (word);
}

static gboolean
read_number (const char *text, const char *prefix, guint64 *value)
{
  char *end;
  gsize length = strlen (prefix);
  if (!g_str_has_prefix (text, prefix) || !g_ascii_isxdigit (text[length]))
    return FALSE;
  *value = g_ascii_strtoull (text + length, &end, g_str_equal (prefix, "0x") ? 16 : 10);
  return *end == '\0';
}

static gboolean
read_time (const char *text, guint64 *ns)
{
  static const struct { const char *unit; double ns; } units[]
      = { { "ns", 1 }, { "us", 1e3 }, { "µs", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
  char *end;
  double value = g_ascii_strtod (text, &end);
  for (gsize i = 0; i < G_N_ELEMENTS (units) && end != text; i++)
    if (g_str_equal (end, units[i].unit) && value >= 0 && value < 1e9)
      {
        *ns = (guint64) (value * units[i].ns);
        return TRUE;
      }
  return FALSE;
}

/* A bare number is text: it may be a line. */
static gboolean
read_amount (Word *word, const char *text)
{
  const char *rest = strchr ("<>=", *text) && *text ? text + 1 : text;
  gboolean has_unit = *rest && g_ascii_isalpha (rest[strlen (rest) - 1]) && g_ascii_isdigit (*rest);
  word->how = rest > text ? *text : '=';
  if (rest == text && !has_unit)
    return FALSE;
  if (read_time (rest, &word->value))
    word->kind = WORD_COST;
  else if (coop_size_parse (rest, &word->value) == COOP_PARSE_OK)
    word->kind = WORD_SIZE;
  else
    return FALSE;
  return TRUE;
}

static gboolean
contains (const char *text, const char *word)
{
  g_autofree char *folded = text ? g_utf8_casefold (text, -1) : NULL;
  return folded && strstr (folded, word);
}

static Word *
word_new (const char *text)
{
  Word *word = g_new0 (Word, 1);
  word->text = g_utf8_casefold (text, -1);
  word->names = g_hash_table_new (NULL, NULL);
  word->lines = g_hash_table_new (NULL, NULL);
  if (read_number (word->text, "0x", &word->value))
    word->kind = WORD_ADDR;
  else if (read_number (word->text, "op", &word->value))
    word->kind = WORD_OP;
  else if (read_number (word->text, "t", &word->value))
    word->kind = WORD_TENSOR;
  else if (read_number (word->text, "b", &word->value))
    word->kind = WORD_BLOCK;
  else if (g_str_equal (word->text, "hole"))
    word->kind = WORD_HOLE;
  else if (!read_amount (word, text))
    word->kind = WORD_TEXT;
  for (int i = 0; i < COOP_N_KINDS; i++)
    word->kinds[i] = contains (coop_legend_kind_name ((CoopKind) i), word->text);
  for (int i = 0; i < COOP_N_PINS; i++)
    word->pins[i] = contains (coop_legend_pin_name ((CoopPin) i), word->text);
  return word;
}

CoopFind *
coop_find_new (const char *text)
{
  g_auto (GStrv) parts = g_strsplit_set (text ? text : "", " \t\n", -1);
  CoopFind *find = g_new0 (CoopFind, 1);
  find->words = g_ptr_array_new_with_free_func (word_free);
  for (char **part = parts; *part; part++)
    if (**part)
      g_ptr_array_add (find->words, word_new (*part));
  if (find->words->len == 0)
    g_clear_pointer (&find, coop_find_free);
  return find;
}

void
coop_find_free (CoopFind *find)
{
  g_ptr_array_unref (find->words);
  g_free (find);
}

static void
learn (GHashTable *table, guint32 id, const char *word, CoopNameKind kind, CoopNameOf name_of, gpointer user)
{
  if (id == 0 || g_hash_table_contains (table, GUINT_TO_POINTER (id)))
    return;
  g_autofree char *text = name_of ? name_of (user, kind, id) : NULL;
  g_hash_table_insert (table, GUINT_TO_POINTER (id), GINT_TO_POINTER (contains (text, word)));
}

void
coop_find_learn (CoopFind *find, const CoopFrame *frame, CoopNameOf name_of, gpointer user)
{
  for (guint k = 0; k < find->words->len; k++)
    {
      Word *word = find->words->pdata[k];
      for (guint i = 0; i < frame->n_pieces && word->kind == WORD_TEXT; i++)
        {
          learn (word->names, frame->pieces[i].name, word->text, COOP_NAME_OPERATOR, name_of, user);
          learn (word->lines, frame->pieces[i].line, word->text, COOP_NAME_LINE, name_of, user);
        }
    }
}

static gboolean
compares (const Word *word, guint64 value)
{
  if (word->how == '<')
    return value < word->value;
  if (word->how == '>')
    return value > word->value;
  guint64 apart = value > word->value ? value - word->value : word->value - value;
  return apart <= word->value / 100;
}

static gboolean
text_matches (const Word *word, const CoopMapPiece *piece)
{
  return g_hash_table_lookup (word->names, GUINT_TO_POINTER (piece->name))
         || g_hash_table_lookup (word->lines, GUINT_TO_POINTER (piece->line))
         || word->kinds[MIN (piece->kind, COOP_N_KINDS - 1)] || word->pins[MIN (piece->pin, COOP_N_PINS - 1)];
}

static gboolean
word_matches (const Word *word, const CoopMapPiece *piece)
{
  switch (word->kind)
    {
    case WORD_ADDR:
      return word->value >= piece->addr && word->value - piece->addr < piece->bytes;
    case WORD_SIZE:
      return compares (word, piece->bytes);
    case WORD_COST:
      return piece->used && piece->cost > 0 && compares (word, piece->cost);
    case WORD_TENSOR:
      return piece->used && piece->tensor == word->value;
    case WORD_BLOCK:
      return piece->used && piece->block == word->value;
    case WORD_OP:
      return piece->used && piece->op == word->value;
    case WORD_HOLE:
      return !piece->used && !coop_piece_is_void (piece);
    case WORD_TEXT:
      break;
    }
  return piece->used && text_matches (word, piece);
}

gboolean
coop_find_matches (const CoopFind *find, const CoopMapPiece *piece)
{
  for (guint i = 0; i < find->words->len; i++)
    if (!word_matches (find->words->pdata[i], piece))
      return FALSE;
  return TRUE;
}
