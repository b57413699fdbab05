/* SPDX-License-Identifier: Apache-2.0 */
/* Lessons: those that come with the program hold what they claim, bad ones are refused with a reason, and
 * one is finished as a person would.
 */
#include <adwaita.h>
#include <string.h>

#include "lesson-window.h"
#include "map-widget.h"
#include "ui-support.h"

static CoopToyView
play (const char *commands, const char *evictor, gint64 budget)
{
  g_autoptr (CoopProgram) program = coop_toy_new ();
  g_autoptr (GError) error = NULL;
  CoopPolicy policy;
  CoopToyView view;
  CoopValue value;
  coop_toy_policy_init (&policy);
  g_assert_cmpint (coop_param_parse (COOP_PARAM_EVICTOR, evictor, &value), ==, COOP_PARSE_OK);
  coop_policy_preset (&policy, (CoopEvictorName) value.i);
  policy.v[COOP_PARAM_GROUPS].i = 1;
  policy.v[COOP_PARAM_BUDGET].i = budget;
  coop_toy_add (program, commands, &error);
  g_assert_no_error (error);
  coop_toy_play (program, &policy, &view);
  return view;
}

static void
test_toy (void)
{
  CoopToyView view = play ("a 1200\nf 1\n# a remark\n\n", "coop", 8192);
  g_assert_cmpuint (view.frame->totals.used, ==, 0);
  g_assert_cmpuint (view.frame->totals.allocs, ==, 1);
  g_assert_cmpuint (view.frame->totals.peak, ==, 1536); /* in steps of 512 bytes */
  coop_toy_view_clear (&view);

  view = play ("a 4KiB; a 4KiB from 1; a 4KiB from 2; u 1", "lru", 8192);
  g_assert_cmpuint (view.frame->totals.evictions, ==, 2); /* 1 for 3; then 2 or 3 for 1 */
  g_assert_cmpuint (view.outcome.totals.replays, ==, 1);
  g_assert_cmpuint (view.outcome.cost_ns, ==, 4000000);
  coop_toy_view_clear (&view);

  /* the second is written in place where it lies, and comes back with the write: three operators */
  view = play ("a 1KiB; a 1KiB from 1; w 2", "lru", 4096);
  g_assert_cmpuint (view.frame->totals.used, ==, 2048);
  coop_toy_view_clear (&view);
  view = play ("a 1KiB; a 1KiB from 1; w 2; a 1KiB; a 1KiB; a 1KiB; a 1KiB; u 2", "lru", 4096);
  g_assert_cmpuint (view.outcome.totals.replays, ==, 3);
  coop_toy_view_clear (&view);

  view = play ("c 6KiB; a 4KiB", "coop", 8192);
  g_assert_cmpint (view.outcome.result, !=, COOP_PLAY_OK);
  coop_toy_view_clear (&view);
}

static void
test_toy_is_strict (void)
{
  static const char *const wrong[] = { "a", "a x", "a 0", "b 12", "f 1", "a 1KiB 5", "a 1KiB from", "a 1KiB from 7",
                                       "a 1KiB; f 2", "a 1KiB; f 1; u 1", "a 1KiB; f 1; f 1", "c 1KiB 5ms", "a -5",
                                       "a 1KiB 1ms from 1 2", "free 1", "w", "w 1", "a 1KiB; f 1; w 1", "a 1KiB; w 1 1ms", "a 99999TiB" };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (CoopProgram) program = coop_toy_new ();
      g_autoptr (GError) error = NULL;
      g_test_message ("%s", wrong[i]);
      g_assert_false (coop_toy_add (program, wrong[i], &error));
      g_assert_nonnull (error);
    }
}

static void
test_lesson_is_checked (void)
{
  static const struct { const char *text, *said; } wrong[] = {
    { "", "title" },
    { "title: x\n", "steps" },
    { "title: x\ndo: a 1KiB\n", "first step" },
    { "title: x\nstep: y\ndo: a\n", "“a”" },
    { "title: x\nstep: y {nothing}\n", "{nothing}" },
    { "title: x\npolicy: budget=much\nstep: y\n", "budget" },
    { "title: x\nstep: y\nfoo: z\n", "foo" },
    { "title: x\nstep: y\nno key\n", "no key" },
    { "title: x\nstep: y\ndo: a 1KiB\nask: how much?\nchoice: 2.0 KiB\nanswer: {used}\n", "1.0 KiB" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (coop_lesson_parse (wrong[i].text, &error));
      g_assert_nonnull (error);
      g_test_message ("%s", error->message);
      g_assert_nonnull (strstr (error->message, wrong[i].said));
    }
  g_autoptr (CoopLesson) lesson = coop_lesson_parse ("title: x\r\nstep: one\r\n two\r\ndo: a 1KiB\r\n a 2KiB\r\n", NULL);
  g_assert_nonnull (lesson);
  CoopLessonStep *step = lesson->steps->pdata[0];
  g_assert_cmpstr (step->text, ==, "one two");
  g_assert_cmpuint (step->program->lines->len, ==, 2);
}

static CoopLesson *
lesson_of (const char *folder, const char *name)
{
  g_autofree char *path = g_strdup_printf ("/io/github/coopscope/Coopscope/lessons/%s%s", folder, name);
  g_autoptr (GBytes) bytes = g_resources_lookup_data (path, 0, NULL);
  g_autoptr (GError) error = NULL;
  g_assert_nonnull (bytes);
  g_autofree char *text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  CoopLesson *lesson = coop_lesson_parse (text, &error);
  g_assert_no_error (error);
  return lesson;
}

/* Each step of each lesson; in German the same happens, and something is asked in every lesson. */
static void
test_languages (void)
{
  g_auto (GStrv) names = g_resources_enumerate_children ("/io/github/coopscope/Coopscope/lessons", 0, NULL);
  guint n = 0;
  for (char **name = names; *name; name++)
    {
      guint asked = 0;
      if (!g_str_has_suffix (*name, ".lesson"))
        continue;
      g_test_message ("%s", *name);
      g_autoptr (CoopLesson) english = lesson_of ("", *name), german = lesson_of ("de/", *name);
      g_assert_cmpuint (english->steps->len, >=, 3);
      g_assert_cmpuint (english->steps->len, ==, german->steps->len);
      g_assert_cmpstr (english->title, !=, german->title);
      for (guint i = 0; i < english->steps->len; i++)
        {
          const CoopLessonStep *a = english->steps->pdata[i], *b = german->steps->pdata[i];
          g_assert_cmpstr (a->text, !=, b->text);
          g_assert_cmpstr (a->commands, ==, b->commands);
          g_assert_cmpmem (a->policy.v, sizeof a->policy.v, b->policy.v, sizeof b->policy.v);
          g_assert_cmpuint (a->choices->len, ==, b->choices->len);
          g_assert_cmpint (a->ask == NULL, ==, b->ask == NULL);
          g_assert_cmpint (a->because == NULL, ==, b->because == NULL);
          asked += a->ask != NULL;
        }
      g_assert_cmpuint (asked, >=, 1);
      n++;
    }
  g_assert_cmpuint (n, >=, 9);
}

/* The first of a button with this text. */
static GtkWidget *
button_of (GtkWidget *root, const char *text)
{
  if (GTK_IS_BUTTON (root) && gtk_button_get_label (GTK_BUTTON (root)) && g_str_equal (gtk_button_get_label (GTK_BUTTON (root)), text))
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child; child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = button_of (child, text);
      if (found)
        return found;
    }
  return NULL;
}

static void
test_all_to_the_end (void)
{
  GtkWidget *window = coop_lesson_window_new (NULL);
  CoopLessonWindow *self = COOP_LESSON_WINDOW (window);
  gtk_window_present (GTK_WINDOW (window));
  g_assert_cmpuint (coop_lesson_window_get_n_lessons (self), >=, 9);
  for (guint i = 0; i < coop_lesson_window_get_n_lessons (self); i++)
    {
      g_autofree char *last = NULL;
      coop_lesson_window_choose (self, i);
      for (int k = 0; k < 20; k++)
        {
          coop_lesson_window_answer (self, "no choice at all"); /* does nothing where there is no question */
          coop_lesson_window_step (self, 1);
        }
      GtkWidget *next = button_of (window, "_Next");
      g_assert_false (gtk_widget_get_sensitive (next));
    }
  assert_finalized (window);
}

/* "Why holes form", as a person does it: predict, see, try. */
static void
test_first_lesson (void)
{
  GtkWidget *window = coop_lesson_window_new (NULL);
  CoopLessonWindow *self = COOP_LESSON_WINDOW (window);
  gtk_window_present (GTK_WINDOW (window));
  GtkWidget *next = button_of (window, "_Next");
  g_signal_emit_by_name (next, "clicked");
  g_signal_emit_by_name (next, "clicked");
  g_assert_false (gtk_widget_get_sensitive (next)); /* not before the answer */
  g_assert_cmpuint (coop_lesson_window_get_frame (self)->totals.free, ==, 0); /* nor does the map tell it */
  g_signal_emit_by_name (button_of (window, "4.0 KiB"), "clicked");
  g_assert_nonnull (find_text (window, "Right."));
  g_assert_cmpuint (coop_lesson_window_get_frame (self)->totals.free, ==, 4096);
  g_assert_cmpuint (coop_lesson_window_get_frame (self)->totals.largest, ==, 1024);
  coop_lesson_window_try (self, "f 2");
  g_assert_cmpuint (coop_lesson_window_get_frame (self)->totals.largest, ==, 3072);
  coop_lesson_window_try (self, "f 2"); /* gone */
  g_assert_nonnull (find_text (window, "“f 2”"));
  g_signal_emit_by_name (button_of (window, "_Take Back"), "clicked");
  g_assert_cmpuint (coop_lesson_window_get_frame (self)->totals.largest, ==, 1024);
  g_signal_emit_by_name (next, "clicked");
  g_signal_emit_by_name (button_of (window, "Yes: half of the pool is free."), "clicked");
  g_assert_null (find_text (window, "Right."));
  g_assert_nonnull (find_text (window, "no-room"));
  assert_finalized (window);
}

int
main (int argc, char **argv)
{
  gtk_test_init (&argc, &argv, NULL);
  adw_init ();
  g_test_add_func ("/ui/lessons/toy", test_toy);
  g_test_add_func ("/ui/lessons/toy-is-strict", test_toy_is_strict);
  g_test_add_func ("/ui/lessons/checked", test_lesson_is_checked);
  g_test_add_func ("/ui/lessons/languages", test_languages);
  g_test_add_func ("/ui/lessons/all-to-the-end", test_all_to_the_end);
  g_test_add_func ("/ui/lessons/first-lesson", test_first_lesson);
  return g_test_run ();
}
