/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson: see the header. */
#include "config.h"

#include "lesson.h"

#include <gio/gio.h>
#include <glib/gi18n.h>
#include <string.h>

#include "format.h"

/* ---- numbers ---- */

static char *
number_for (const char *name, const CoopToyView *view)
{
  const CoopModelTotals *t = &view->frame->totals;
  const CoopPlayOutcome *out = &view->outcome;
  const struct { const char *name; guint64 value; gboolean bytes; } numbers[] = {
    { "used", t->used, TRUE },        { "free", t->free, TRUE },          { "largest", t->largest, TRUE },
    { "budget", t->budget, TRUE },    { "peak", t->peak, TRUE },          { "evicted", t->evicted_bytes, TRUE },
    { "holes", t->holes, FALSE },     { "evictions", t->evictions, FALSE }, { "recomputed", t->replays, FALSE },
    { "searches", t->searches, FALSE },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (g_str_equal (numbers[i].name, name))
      return numbers[i].bytes ? coop_format_bytes (numbers[i].value) : coop_format_count (numbers[i].value);
  if (g_str_equal (name, "result"))
    return g_strdup (coop_play_label (out->result));
  if (g_str_equal (name, "overhead"))
    return g_strdup_printf ("%.2f", out->overhead);
  return NULL;
}

char *
coop_lesson_fill (const char *text, const CoopToyView *view, GError **error)
{
  GString *filled = g_string_new (NULL);
  for (const char *c = text; *c;)
    {
      const char *end = *c == '{' ? strchr (c, '}') : NULL;
      if (!end)
        {
          g_string_append_c (filled, *c++);
          continue;
        }
      g_autofree char *name = g_strndup (c + 1, (gsize) (end - c - 1));
      g_autofree char *number = number_for (name, view);
      if (!number)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, _("there is no number {%s}"), name);
          g_string_free (filled, TRUE);
          return NULL;
        }
      g_string_append (filled, number);
      c = end + 1;
    }
  return g_string_free (filled, FALSE);
}

/* ---- reading ---- */

static void
step_free (gpointer data)
{
  CoopLessonStep *step = data;
  g_free (step->text);
  g_free (step->ask);
  g_free (step->answer);
  g_free (step->because);
  g_free (step->commands);
  g_ptr_array_unref (step->choices);
  g_clear_pointer (&step->program, coop_program_free);
  g_free (step);
}

void
coop_lesson_free (CoopLesson *lesson)
{
  g_free (lesson->title);
  g_free (lesson->about);
  g_ptr_array_unref (lesson->steps);
  g_free (lesson);
}

typedef struct {
  CoopLesson *lesson;
  CoopLessonStep *step;
  CoopPolicy policy;
  GString *commands; /* of all steps since the program began */
} Parse;

static gboolean
bad (GError **error, const char *format, const char *what)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, format, what);
  return FALSE;
}

static gboolean
set_policy (Parse *p, const char *value, GError **error)
{
  g_auto (GStrv) words = g_strsplit (value, " ", -1);
  for (char **word = words; *word; word++)
    {
      char *sign = strchr (*word, '=');
      CoopValue parsed;
      if (!**word)
        continue;
      if (sign)
        *sign = '\0';
      int param = sign ? coop_param_find (*word) : -1;
      if (param < 0 || coop_param_parse ((CoopParam) param, sign + 1, &parsed) != COOP_PARSE_OK)
        return bad (error, _("“%s” is not a parameter or not a value of it"), *word);
      if (param == COOP_PARAM_EVICTOR)
        {
          gint64 groups = p->policy.v[COOP_PARAM_GROUPS].i;
          coop_policy_preset (&p->policy, (CoopEvictorName) parsed.i);
          p->policy.v[COOP_PARAM_GROUPS].i = groups; /* lessons say it themselves */
        }
      p->policy.v[param] = parsed;
    }
  if (p->step)
    p->step->policy = p->policy;
  return TRUE;
}

static void
begin_step (Parse *p, const char *text)
{
  p->step = g_new0 (CoopLessonStep, 1);
  p->step->text = g_strdup (text);
  p->step->commands = g_strdup (p->commands->str);
  p->step->choices = g_ptr_array_new_with_free_func (g_free);
  p->step->policy = p->policy;
  p->step->program = coop_toy_new ();
  coop_toy_add (p->step->program, p->commands->str, NULL);
  g_ptr_array_add (p->lesson->steps, p->step);
}

/* The program of a step holds all commands before, too. */
static gboolean
set_program (Parse *p, const char *commands, GError **error)
{
  g_string_append_printf (p->commands, "%s\n", commands);
  g_free (p->step->commands);
  p->step->commands = g_strdup (p->commands->str);
  coop_program_free (p->step->program);
  p->step->program = coop_toy_new ();
  return coop_toy_add (p->step->program, p->commands->str, error);
}

static gboolean
take (Parse *p, const char *key, const char *value, GError **error)
{
  char **place = NULL;
  if (g_str_equal (key, "title"))
    place = &p->lesson->title;
  else if (g_str_equal (key, "about"))
    place = &p->lesson->about;
  else if (g_str_equal (key, "policy"))
    return set_policy (p, value, error);
  else if (g_str_equal (key, "step"))
    {
      begin_step (p, value);
      return TRUE;
    }
  else if (!p->step)
    return bad (error, _("“%s” comes before the first step"), key);
  else if (g_str_equal (key, "new"))
    {
      g_string_truncate (p->commands, 0);
      return set_program (p, "", error);
    }
  else if (g_str_equal (key, "do"))
    return set_program (p, value, error);
  else if (g_str_equal (key, "choice"))
    {
      g_ptr_array_add (p->step->choices, g_strdup (value));
      return TRUE;
    }
  else if (g_str_equal (key, "ask"))
    place = &p->step->ask;
  else if (g_str_equal (key, "answer"))
    place = &p->step->answer;
  else if (g_str_equal (key, "because"))
    place = &p->step->because;
  if (!place || *place)
    return bad (error, _("“%s” is no key, or stands twice"), key);
  *place = g_strdup (value);
  return TRUE;
}

static gboolean
fill (char **text, const CoopToyView *view, GError **error)
{
  if (!*text)
    return TRUE;
  char *filled = coop_lesson_fill (*text, view, error);
  if (!filled)
    return FALSE;
  g_free (*text);
  *text = filled;
  return TRUE;
}

static gboolean
finish_step (CoopLessonStep *step, GError **error)
{
  CoopToyView view;
  guint right = 0;
  coop_toy_play (step->program, &step->policy, &view);
  gboolean ok = fill (&step->text, &view, error) && fill (&step->ask, &view, error)
                && fill (&step->answer, &view, error) && fill (&step->because, &view, error);
  coop_toy_view_clear (&view);
  if (!ok || !step->ask)
    return ok;
  for (guint i = 0; step->answer && i < step->choices->len; i++)
    right += g_str_equal (step->choices->pdata[i], step->answer);
  if (right != 1)
    return bad (error, _("the replay says “%s”, and that is not one of the choices"), step->answer ? step->answer : "");
  return TRUE;
}

/* Puts lines that go on together: in commands each stays a line. */
static gboolean
take_lines (Parse *p, char **lines, GError **error)
{
  for (char **line = lines; *line;)
    {
      char *colon = strchr (*line, ':');
      if (!**line || **line == '#')
        {
          line++;
          continue;
        }
      if (g_ascii_isspace (**line) || !colon)
        return bad (error, _("a line without a key: “%s”"), *line);
      g_autofree char *key = g_strndup (*line, (gsize) (colon - *line));
      g_autoptr (GString) value = g_string_new (g_strstrip (colon + 1));
      for (line++; *line && g_ascii_isspace (**line); line++)
        g_string_append_printf (value, "%s%s", value->len == 0 ? "" : g_str_equal (key, "do") ? "\n" : " ",
                                g_strstrip (*line));
      if (!take (p, key, value->str, error))
        return FALSE;
    }
  return TRUE;
}

CoopLesson *
coop_lesson_parse (const char *text, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (CoopLesson) lesson = g_new0 (CoopLesson, 1);
  g_autoptr (GString) commands = g_string_new (NULL);
  Parse parse = { .lesson = lesson, .commands = commands };
  lesson->steps = g_ptr_array_new_with_free_func (step_free);
  coop_toy_policy_init (&parse.policy);
  for (char **line = lines; *line; line++)
    if (g_str_has_suffix (*line, "\r"))
      (*line)[strlen (*line) - 1] = '\0';
  if (!g_utf8_validate (text, -1, NULL))
    return bad (error, "%s", _("not a text in UTF-8")) ? NULL : NULL;
  if (!take_lines (&parse, lines, error))
    return NULL;
  if (!lesson->title || lesson->steps->len == 0)
    return bad (error, "%s", _("a lesson has a title and steps")) ? NULL : NULL;
  for (guint i = 0; i < lesson->steps->len; i++)
    if (!finish_step (lesson->steps->pdata[i], error))
      {
        g_prefix_error (error, _("step %u: "), i + 1);
        return NULL;
      }
  return g_steal_pointer (&lesson);
}
