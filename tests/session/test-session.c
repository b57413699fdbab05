/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions over a target that pushes as the adapter does: what is seen live is what is in the file,
 * whatever way the run ends. */
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"

#define LIMIT_S 60

typedef struct {
  char *dir, *trace;
  GMainLoop *loop;
  CoopSession *session;
  GString *out, *err, *messages;
  GArray *states;
} Fixture;

static void
set_up (Fixture *f, gconstpointer user)
{
  f->dir = g_dir_make_tmp ("coop-session-XXXXXX", NULL);
  f->trace = g_build_filename (f->dir, "t.coop", NULL);
  f->loop = g_main_loop_new (NULL, FALSE);
  f->out = g_string_new (NULL);
  f->err = g_string_new (NULL);
  f->messages = g_string_new (NULL);
  f->states = g_array_new (FALSE, FALSE, sizeof (int));
}

static void
tear_down (Fixture *f, gconstpointer user)
{
  if (f->session != NULL)
    {
      gpointer gone = f->session;
      g_object_add_weak_pointer (G_OBJECT (f->session), &gone);
      g_object_unref (f->session);
      g_assert_null (gone);
    }
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_autoptr (GDir) dir = g_dir_open (f->dir, 0, NULL);
  const char *name = NULL;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (f->dir, name, NULL);
      g_remove (path);
    }
  g_rmdir (f->dir);
  g_free (f->dir);
  g_free (f->trace);
  g_main_loop_unref (f->loop);
  g_string_free (f->out, TRUE);
  g_string_free (f->err, TRUE);
  g_string_free (f->messages, TRUE);
  g_array_free (f->states, TRUE);
}

static void
on_state (CoopSession *session, Fixture *f)
{
  int state = coop_session_get_state (session);
  g_array_append_val (f->states, state);
  if (state >= COOP_SESSION_ENDED)
    g_main_loop_quit (f->loop);
}

static void
on_output (CoopSession *session, const char *text, gboolean is_stderr, Fixture *f)
{
  g_string_append (is_stderr ? f->err : f->out, text);
}

static void
on_message (CoopSession *session, const char *text, Fixture *f)
{
  g_string_append_printf (f->messages, "%s\n", text);
}

static gboolean
on_limit (gpointer user)
{
  g_error ("the session did not end within %d s", LIMIT_S);
  return G_SOURCE_REMOVE;
}

static void
watch (Fixture *f)
{
  g_signal_connect (f->session, "state-changed", G_CALLBACK (on_state), f);
  g_signal_connect (f->session, "output", G_CALLBACK (on_output), f);
  g_signal_connect (f->session, "message", G_CALLBACK (on_message), f);
}

/* `arguments` of the fake target, separated by spaces. */
static CoopSession *
try_start (Fixture *f, const char *arguments, const char *trace, GError **error)
{
  CoopRunOptions options;
  g_autofree char *line = g_strdup_printf ("%s %s", g_getenv ("COOP_FAKE_TARGET"), arguments);
  coop_run_options_init (&options);
  options.argv = g_strsplit (line, " ", -1);
  options.trace = g_strdup (trace);
  options.policy.v[COOP_PARAM_BUDGET].i = 48 << 20;
  CoopSession *session = coop_session_start (&options, error);
  coop_run_options_clear (&options);
  return session;
}

static void
start (Fixture *f, const char *arguments)
{
  g_autoptr (GError) error = NULL;
  f->session = try_start (f, arguments, f->trace, &error);
  g_assert_no_error (error);
  watch (f);
}

static void
finish (Fixture *f)
{
  guint limit = g_timeout_add_seconds (LIMIT_S, on_limit, NULL);
  if (coop_session_get_state (f->session) < COOP_SESSION_ENDED)
    g_main_loop_run (f->loop);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_source_remove (limit);
}

static void
wait_for_frame (Fixture *f, guint64 events)
{
  for (int i = 0; i < 5000; i++)
    {
      CoopFrame *frame = coop_session_frame (f->session);
      gboolean there = frame != NULL && frame->totals.seq >= events && frame->totals.seq != G_MAXUINT64;
      coop_frame_unref (frame);
      if (there)
        return;
      g_usleep (2000);
    }
  g_error ("no frame");
}

static CoopReader *
open_trace (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  CoopReader *reader = coop_reader_open (f->trace, &error);
  g_assert_no_error (error);
  return reader;
}

static void
assert_info (Fixture *f, CoopRunState state, int code, guint64 events)
{
  CoopTraceInfo info = { 0 };
  g_autoptr (GError) error = NULL;
  CoopReader *reader = open_trace (f);
  g_assert_true (coop_reader_info (reader, &info, &error));
  g_assert_no_error (error);
  g_assert_cmpint (info.state, ==, state);
  if (state != COOP_RUN_INTERRUPTED)
    g_assert_cmpint (info.exit_code, ==, code);
  if (events != 0)
    g_assert_cmpuint (info.events, ==, events);
  coop_trace_info_clear (&info);
  coop_reader_free (reader);
}

static void
assert_sound (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) findings = coop_check (f->trace, 10, NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < findings->len; i++)
    g_test_message ("%s", g_array_index (findings, CoopFinding, i).text);
  g_assert_cmpuint (findings->len, ==, 0);
}

/* ---- runs --------------------------------------------------------------------------------- */

static void
assert_same_picture (const CoopFrame *a, const CoopFrame *b)
{
  g_assert_cmpuint (a->totals.seq, ==, b->totals.seq);
  g_assert_cmpuint (a->totals.used, ==, b->totals.used);
  g_assert_cmpuint (a->totals.largest, ==, b->totals.largest);
  g_assert_cmpuint (a->totals.evictions, ==, b->totals.evictions);
  g_assert_cmpmem (a->pieces, a->n_pieces * sizeof *a->pieces, b->pieces, b->n_pieces * sizeof *b->pieces);
}

static void
test_run (Fixture *f, gconstpointer user)
{
  start (f, "--events 40000");
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_ENDED);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 0);
  g_assert_cmpint (g_array_index (f->states, int, 0), ==, COOP_SESSION_RECORDING);
  g_assert_cmpstr (f->messages->str, ==, "");
  CoopFrame *live = coop_session_frame (f->session);
  g_assert_nonnull (live);
  g_assert_true (live->totals.ended);
  g_assert_cmpuint (live->totals.evictions, >, 100);
  g_assert_cmpuint (live->totals.handovers, >, 100);
  g_assert_cmpuint (live->n_victims, >=, 2);
  g_assert_cmpuint (live->totals.used, <=, 48 << 20);
  assert_info (f, COOP_RUN_ENDED, 0, live->totals.seq + 1);
  assert_sound (f);
  g_autoptr (GError) error = NULL;
  CoopReader *reader = open_trace (f);
  CoopModel *model = coop_reader_model_at (reader, live->totals.seq, &error);
  g_assert_no_error (error);
  CoopFrame *read = coop_frame_new (model, 1);
  assert_same_picture (live, read);
  coop_frame_unref (read);
  coop_frame_unref (live);
  coop_model_free (model);
  coop_reader_free (reader);
}

static void
test_views (Fixture *f, gconstpointer user)
{
  start (f, "--events 30000 --rate 100000");
  wait_for_frame (f, 500);
  CoopFrame *frame = coop_session_frame (f->session);
  g_autoptr (GPtrArray) lines = coop_session_events (f->session, 100);
  g_autoptr (GArray) usage = coop_session_usage (f->session, 50);
  g_assert_cmpuint (lines->len, ==, 100);
  for (guint i = 1; i < lines->len; i++)
    {
      CoopEventLine *a = lines->pdata[i - 1], *b = lines->pdata[i];
      g_assert_cmpuint (a->seq, <, b->seq);
      g_assert_cmpuint (strlen (b->text), >, 3);
    }
  g_assert_cmpuint (usage->len, >, 1);
  g_assert_cmpuint (usage->len, <=, 50);
  guint described = 0;
  for (guint i = 0; i < frame->n_pieces; i++)
    {
      g_autofree char *text = coop_session_describe_block (f->session, frame->pieces[i].block);
      described += text != NULL && strstr (text, "aten.conv2d") != NULL && strstr (text, "train.py:18") != NULL;
    }
  g_assert_cmpuint (described, >, 0);   /* those of the newest frame that are in this one */
  g_assert_null (coop_session_describe_block (f->session, 0));
  g_assert_null (coop_session_describe_block (f->session, G_MAXUINT64));
  coop_frame_unref (frame);
  finish (f);
  CoopSessionHealth health;
  coop_session_health (f->session, &health);
  g_assert_cmpuint (health.dropped, ==, 0);
  g_assert_cmpuint (health.lost, ==, 0);
  g_assert_cmpuint (health.trace_bytes, >, 10000);
}

static void
test_exit_code (Fixture *f, gconstpointer user)
{
  start (f, "--events 100 --exit 7");
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_ENDED);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 7);
  assert_info (f, COOP_RUN_ENDED, 7, 0);
}

/* All that a killed run had written is in its trace. */
static void
test_killed (Fixture *f, gconstpointer user)
{
  start (f, "--events 30000 --die 9");
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_KILLED);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, SIGKILL);
  CoopFrame *live = coop_session_frame (f->session);
  g_assert_cmpuint (live->totals.seq, >=, 29999);
  assert_info (f, COOP_RUN_KILLED, SIGKILL, live->totals.seq + 1);
  assert_sound (f);
  coop_frame_unref (live);
}

static void
test_no_goodbye (Fixture *f, gconstpointer user)
{
  start (f, "--events 1000 --no-end --exit 3");
  finish (f);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 3);
  assert_info (f, COOP_RUN_INTERRUPTED, 3, 0);
}

static void
test_stop (Fixture *f, gconstpointer user)
{
  start (f, "--events 100000000 --rate 20000");
  wait_for_frame (f, 100);
  coop_session_stop (f->session);
  finish (f);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 130);
  g_assert_cmpstr (f->out->str, ==, "interrupts 1\n");
  assert_sound (f);
}

typedef struct {
  guint64 source;
  gint64 bits;
  guint found;
} BudgetRow;

static gboolean
take_budget (gpointer user, const CoopEvent *ev, const void *body)
{
  BudgetRow *row = user;
  if (ev->kind == COOP_EVENT_POLICY && ev->u.policy.param == COOP_PARAM_BUDGET)
    {
      row->source = ev->u.policy.source;
      row->bits = ev->u.policy.new_bits;
      row->found++;
    }
  return TRUE;
}

static void
test_policy (Fixture *f, gconstpointer user)
{
  BudgetRow row = { 0 };
  start (f, "--events 100000000 --rate 50000");
  wait_for_frame (f, 1000);
  coop_session_set_param (f->session, COOP_PARAM_BUDGET, (CoopValue) { .i = 20 << 20 }, COOP_SOURCE_SLIDER);
  CoopFrame *frame = coop_session_frame (f->session);
  wait_for_frame (f, frame->totals.seq + 20000);
  coop_frame_unref (frame);
  frame = coop_session_frame (f->session);
  g_assert_cmpuint (frame->totals.budget, ==, 20 << 20);
  g_assert_cmpuint (frame->totals.used, <=, 20 << 20);
  coop_frame_unref (frame);
  coop_session_stop (f->session);
  finish (f);
  CoopReader *reader = open_trace (f);
  coop_reader_events (reader, 0, take_budget, &row, NULL);
  coop_reader_free (reader);
  g_assert_cmpuint (row.found, ==, 2);   /* the initial one, and the slider's */
  g_assert_cmpint (row.bits, ==, 20 << 20);
  g_assert_cmpuint (row.source, ==, COOP_SOURCE_SLIDER);
}

static void
test_output (Fixture *f, gconstpointer user)
{
  start (f, "--events 100 --print");
  finish (f);
  g_assert_cmpstr (f->out->str, ==, "line one\nloss \357\277\275 0.125\rpart");
  g_assert_cmpstr (f->err->str, ==, "to stderr\n");
}

/* ---- what goes wrong ---------------------------------------------------------------------- */

static void
test_garbage (Fixture *f, gconstpointer user)
{
  start (f, "--events 5000 --garbage --no-end --exit 4");
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_LOST);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 4);
  g_assert_nonnull (strstr (f->messages->str, "makes no sense"));
  assert_info (f, COOP_RUN_INTERRUPTED, 0, 0);
}

static void
test_silent (Fixture *f, gconstpointer user)
{
  start (f, "--silent --exit 2");
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_ENDED);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 2);
  g_assert_nonnull (strstr (f->messages->str, "without a word from PyTorch"));
}

static void
test_unwritable (Fixture *f, gconstpointer user)
{
  g_autoptr (GError) error = NULL;
  f->session = try_start (f, "--events 5000", "/no/such/folder/t.coop", &error);
  g_assert_no_error (error);
  watch (f);
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_ENDED);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 0);
  g_assert_nonnull (strstr (f->messages->str, "no trace is written"));
  g_assert_null (coop_session_get_trace (f->session));
  CoopFrame *frame = coop_session_frame (f->session);
  g_assert_cmpuint (frame->totals.seq, >=, 4999);
  coop_frame_unref (frame);
}

static void
test_two_to_one_file (Fixture *f, gconstpointer user)
{
  g_autoptr (GError) error = NULL;
  start (f, "--events 100000000 --rate 1000");
  g_assert_null (try_start (f, "--events 10", f->trace, &error));
  g_assert_error (error, COOP_TRACE_ERROR, COOP_TRACE_ERROR_BUSY);
  g_assert_nonnull (strstr (error->message, f->trace));
  wait_for_frame (f, 10);
  coop_session_stop (f->session);
  finish (f);
  assert_sound (f);
}

/* A collector that is stopped for a while: the target goes on, and the gap is told. */
static void
test_small_ring (Fixture *f, gconstpointer user)
{
  CoopRunOptions options;
  g_autofree char *line = g_strdup_printf ("%s --events 200000", g_getenv ("COOP_FAKE_TARGET"));
  coop_run_options_init (&options);
  options.argv = g_strsplit (line, " ", -1);
  options.trace = g_strdup (f->trace);
  options.ring_bytes = 65536;
  options.policy.v[COOP_PARAM_RING_WAIT].d = 0;   /* never wait: drops are certain */
  f->session = coop_session_start (&options, NULL);
  coop_run_options_clear (&options);
  g_assert_nonnull (f->session);
  watch (f);
  finish (f);
  CoopSessionHealth health;
  coop_session_health (f->session, &health);
  CoopFrame *frame = coop_session_frame (f->session);
  g_assert_cmpuint (health.dropped, >, 0);
  g_assert_cmpuint (frame->totals.missing, ==, health.dropped);
  g_assert_nonnull (strstr (f->messages->str, "events were dropped"));
  g_assert_null (strstr (f->messages->str, "does not fit"));
  coop_frame_unref (frame);
}

/* A session that is let go leaves the script running; its captured output breaks nothing. */
static void
test_let_go (Fixture *f, gconstpointer user)
{
  CoopRunOptions options;
  g_autofree char *result = g_build_filename (f->dir, "result", NULL);
  g_autofree char *text = NULL;
  coop_run_options_init (&options);
  options.argv = g_new0 (char *, 4);
  options.argv[0] = g_strdup ("sh");
  options.argv[1] = g_strdup ("-c");
  options.argv[2] = g_strdup_printf ("%s --events 20000 --rate 20000 --print --done; echo $? > %s.tmp; "
                                     "mv %s.tmp %s", g_getenv ("COOP_FAKE_TARGET"), result, result, result);
  options.trace = g_strdup (f->trace);
  f->session = coop_session_start (&options, NULL);
  coop_run_options_clear (&options);
  wait_for_frame (f, 1000);
  g_clear_object (&f->session);
  assert_info (f, COOP_RUN_INTERRUPTED, 0, 0);
  for (int i = 0; i < 1000 && !g_file_get_contents (result, &text, NULL, NULL); i++)
    g_usleep (10000);
  g_assert_cmpstr (text, ==, "0\n");
}

static void
test_attach (Fixture *f, gconstpointer user)
{
  g_autoptr (GError) error = NULL;
  start (f, "--events 60000 --rate 30000");
  wait_for_frame (f, 2000);
  CoopSession *first = f->session;
  g_signal_handlers_disconnect_by_data (first, f);
  f->session = coop_session_attach (coop_session_get_pid (first), &error);
  g_assert_no_error (error);
  g_assert_cmpstr (coop_session_get_trace (f->session), ==, f->trace);
  coop_session_set_param (f->session, COOP_PARAM_STRESS, (CoopValue) { .i = 5 }, COOP_SOURCE_API);
  watch (f);
  finish (f);
  g_assert_cmpint (coop_session_get_state (f->session), ==, COOP_SESSION_ENDED);
  g_assert_cmpint (coop_session_get_exit (f->session), ==, 0);
  g_autoptr (GArray) usage = coop_session_usage (f->session, 100000);
  g_assert_cmpuint (g_array_index (usage, CoopSample, 0).ts, <, 20000000);   /* from the start on */
  while (coop_session_get_state (first) < COOP_SESSION_ENDED)
    g_usleep (1000);
  CoopFrame *a = coop_session_frame (first), *b = coop_session_frame (f->session);
  g_assert_cmpint (b->policy.v[COOP_PARAM_STRESS].i, ==, 5);
  assert_same_picture (a, b);
  coop_frame_unref (a);
  coop_frame_unref (b);
  g_object_unref (first);
}

static void
test_attach_refused (Fixture *f, gconstpointer user)
{
  g_autoptr (GError) error = NULL;
  g_assert_null (coop_session_attach (G_MAXINT, &error));
  g_assert_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS);
  g_clear_error (&error);
  g_assert_null (coop_session_attach (getpid (), &error));
  g_assert_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_PROCESS);
}

int
main (int argc, char **argv)
{
#define ADD(name, function) \
  g_test_add ("/session/" name, Fixture, NULL, set_up, function, tear_down)
  g_test_init (&argc, &argv, NULL);
  ADD ("run", test_run);
  ADD ("views", test_views);
  ADD ("exit-code", test_exit_code);
  ADD ("killed", test_killed);
  ADD ("no-goodbye", test_no_goodbye);
  ADD ("stop", test_stop);
  ADD ("policy", test_policy);
  ADD ("output", test_output);
  ADD ("garbage", test_garbage);
  ADD ("silent", test_silent);
  ADD ("unwritable", test_unwritable);
  ADD ("two-to-one-file", test_two_to_one_file);
  ADD ("small-ring", test_small_ring);
  ADD ("let-go", test_let_go);
  ADD ("attach", test_attach);
  ADD ("attach-refused", test_attach_refused);
  return g_test_run ();
}
