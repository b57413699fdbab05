/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are no traces: what becomes of them in the window, and what is said of traces that do not
 * tell all. The snapshot comes as an argument.
 */
#include <glib/gstdio.h>

#include "../support/gen-events.h"
#include "fake-session.h"
#include "run-page.h"
#include "trace/store.h"
#include "ui-support.h"
#include "window.h"

static const char *snapshot;

static const CoopFrame *
frame_of (GtkWidget *window)
{
  return coop_run_page_get_frame (COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE)));
}

static const char *
said (GtkWidget *window)
{
  return coop_window_get_said (COOP_WINDOW (window));
}

static GtkWidget *
open_file (const char *path)
{
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), path, G_MAXUINT64);
  return window;
}

static char *
write_file (const char *ending, const char *text, gssize n)
{
  char *path = g_strdup_printf ("%s/import-%u%s", g_get_tmp_dir (), g_random_int (), ending);
  g_autoptr (GError) error = NULL;
  g_file_set_contents (path, text, n, &error);
  g_assert_no_error (error);
  return path;
}

/* Two operators, of which the second's output stays: 3 MiB with the constant. */
static void
test_program (void)
{
  g_autofree char *path = write_file (".jsonl",
                                      "{\"meta\":{\"name\":\"two\"}}\n"
                                      "{\"const\":[1,1048576]}\n"
                                      "{\"op\":\"a\",\"in\":[1],\"out\":[[2,1048576]],\"cost\":1000}\n"
                                      "{\"op\":\"b\",\"in\":[2],\"out\":[[3,2097152]],\"cost\":1000}\n"
                                      "{\"rel\":2}\n", -1);
  GtkWidget *window = open_file (path);
  g_assert_true (coop_window_is_busy (COOP_WINDOW (window)));
  g_assert_null (frame_of (window));
  spin_until (frame_of (window));
  g_assert_cmpuint (frame_of (window)->totals.used, ==, 3 << 20);
  g_assert_cmpuint (frame_of (window)->totals.ops, ==, 2);
  g_assert_null (said (window));
  assert_finalized (window);
  g_unlink (path);
}

/* One of a device and one of the host: the device's is larger. What it lacks is said. */
static void
test_snapshot (void)
{
  GtkWidget *window = open_file (snapshot);
  spin_until (frame_of (window));
  g_assert_cmpuint (frame_of (window)->totals.peak, ==, 5 << 20);
  g_assert_nonnull (strstr (said (window), "the history overflowed"));
  assert_finalized (window);
}

static void
assert_refused (const char *path, const char *why)
{
  GtkWidget *window = open_file (path);
  spin_until (said (window));
  g_test_message ("%s", said (window));
  g_assert_nonnull (strstr (said (window), why));
  g_assert_false (coop_window_is_busy (COOP_WINDOW (window)));
  assert_finalized (window);
}

static void
test_bad (void)
{
  g_autofree char *bytes = NULL, *name = NULL;
  gsize n;
  g_assert_true (g_file_get_contents (snapshot, &bytes, &n, NULL));
  g_autofree char *cut = write_file (".pickle", bytes, (gssize) n / 2), *text = write_file (".pickle", "hello\n", -1);
  g_autofree char *program = write_file (".jsonl", "{\"meta\":{}}\n{\"op\":\"a\",\"in\":[7],\"out\":[],\"cost\":1}\n", -1);
  const char *const paths[] = { cut, text, program };
  const char *const whys[] = { "ends in the middle", "pickle", "storage 7 was never made" };
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++)
    {
      name = g_path_get_basename (paths[i]);
      assert_refused (paths[i], name);
      assert_refused (paths[i], whys[i]);
      g_clear_pointer (&name, g_free);
      g_unlink (paths[i]);
    }
  assert_refused ("/nowhere/there.jsonl", "there.jsonl");
}

/* The window goes, or is given something else to show, while a file is read. */
static void
test_left (void)
{
  GtkWidget *window = open_file (snapshot);
  assert_finalized (window);
  window = open_file (snapshot);
  coop_window_open (COOP_WINDOW (window), "/nowhere/there.coop", G_MAXUINT64);
  spin_until (said (window));
  spin_ms (300);
  g_assert_nonnull (strstr (said (window), "there.coop"));
  g_assert_null (frame_of (window));
  assert_finalized (window);
}

static char *
record (CoopTraceDetail detail, guint64 limit, CoopRunState state)
{
  char *path = g_strdup_printf ("%s/lacks-%u.coop", g_get_tmp_dir (), g_random_int ());
  g_autoptr (GError) error = NULL;
  CoopStore *store = coop_store_create (path, NULL, &error);
  CoopModel *model = coop_model_new ();
  CoopGen *gen = coop_gen_new (5, 1 << 20);
  g_assert_no_error (error);
  coop_store_set_limits (store, limit, detail);
  for (guint i = 0; i < (limit ? 60000 : 3000); i++)
    {
      const void *body;
      CoopEvent ev = *coop_gen_next (gen, &body);
      coop_model_apply (model, &ev, body, NULL);
      coop_store_append (store, model, &ev, body);
    }
  g_assert_true (coop_store_close (store, state, 0, &error));
  coop_model_free (model);
  coop_gen_free (gen);
  return path;
}

static void
test_lacks (void)
{
  static const struct { CoopTraceDetail detail; guint64 limit; CoopRunState state; const char *text; } cases[] = {
    { COOP_DETAIL_FULL, 0, COOP_RUN_ENDED, NULL },
    { COOP_DETAIL_FULL, 0, COOP_RUN_INTERRUPTED, "The recording was interrupted" },
    { COOP_DETAIL_BLOCKS, 0, COOP_RUN_ENDED, "without tensors and operators" },
    { COOP_DETAIL_SUMMARY, 0, COOP_RUN_ENDED, "the map is empty" },
    { COOP_DETAIL_FULL, 4 << 20, COOP_RUN_ENDED, "The beginning is missing" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = record (cases[i].detail, cases[i].limit, cases[i].state);
      GtkWidget *window = open_file (path);
      spin_until (frame_of (window));
      spin_ms (50);
      g_test_message ("%s", said (window) ? said (window) : "-");
      if (cases[i].text)
        g_assert_nonnull (strstr (said (window), cases[i].text));
      else
        g_assert_null (said (window));
      assert_finalized (window);
      g_unlink (path);
    }
}

int
main (int argc, char **argv)
{
  gtk_init ();
  adw_init ();
  g_test_init (&argc, &argv, NULL);
  snapshot = argv[1];
  g_test_add_func ("/ui/import/program", test_program);
  g_test_add_func ("/ui/import/snapshot", test_snapshot);
  g_test_add_func ("/ui/import/bad", test_bad);
  g_test_add_func ("/ui/import/left", test_left);
  g_test_add_func ("/ui/import/lacks", test_lacks);
  return g_test_run ();
}
