/* SPDX-License-Identifier: Apache-2.0 */
/* What if: sliders on a trace play its program again; both outcomes are those that the replay gives when
 * it is asked directly, the newest wish wins, and the two maps move in step.
 */
#include <adwaita.h>
#include <glib/gstdio.h>

#include "map-widget.h"
#include "policy-panel.h"
#include "policy-row.h"
#include "replay/play-record.h"
#include "run-page.h"
#include "ui-support.h"
#include "what-if-card.h"
#include "window.h"

#define MIB (1024 * 1024)
#define LAYERS 24

static void
add (CoopProgram *program, CoopDoKind kind, guint32 slot, guint64 bytes, CoopProgramOp *op)
{
  CoopProgramLine line = { .kind = kind, .slot = slot, .bytes = bytes, .op = op, .tensor_kind = COOP_KIND_STATE };
  coop_program_add (program, &line);
}

static CoopProgramOp *
op_new (CoopProgram *program, const char *name, guint8 phase, guint64 cost, guint32 a, guint32 b, guint32 out,
        guint64 bytes)
{
  CoopProgramOp *op = g_new0 (CoopProgramOp, 1);
  *op = (CoopProgramOp) { .name = coop_program_name (program, name), .phase = phase, .replayable = TRUE, .cost = cost,
                          .n_inputs = b == COOP_NO_SLOT ? 1 : 2, .n_outputs = 1 };
  op->op_class = coop_program_class (name);
  op->inputs = g_new0 (CoopProgramInput, 2);
  op->inputs[0].slot = a;
  op->inputs[1].slot = b;
  op->outputs = g_new0 (CoopProgramOutput, 1);
  op->outputs[0] = (CoopProgramOutput) { out, FALSE, bytes };
  return op;
}

/* A net of layers, forward and back: activations pile up and are needed again, the last first. */
static CoopProgram *
net (void)
{
  CoopProgram *program = coop_program_new ("net");
  program->n_slots = 2 * LAYERS + 2;
  add (program, COOP_DO_CONST, 0, MIB, NULL);
  for (guint32 i = 1; i <= LAYERS; i++)
    add (program, COOP_DO_OP, 0, 0,
         op_new (program, i % 2 ? "convolution" : "relu", COOP_PHASE_FORWARD, 100000 * (i % 2 ? 9 : 1), i - 1,
                 COOP_NO_SLOT, i, MIB));
  add (program, COOP_DO_OP, 0, 0,
       op_new (program, "loss", COOP_PHASE_BACKWARD, 1000, LAYERS, COOP_NO_SLOT, LAYERS + 1, MIB));
  for (guint32 i = LAYERS; i >= 1; i--)
    {
      guint32 from = LAYERS + 1 + (LAYERS - i);
      add (program, COOP_DO_OP, 0, 0, op_new (program, "back", COOP_PHASE_BACKWARD, 200000, from, i - 1, from + 1, MIB));
      add (program, COOP_DO_RELEASE, from, 0, NULL);
      add (program, COOP_DO_RELEASE, i, 0, NULL);
    }
  return program;
}

static char *trace;

static void
make_trace (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CoopProgram) program = net ();
  CoopPlayOptions options;
  CoopPlayOutcome out;
  coop_play_options_init (&options);
  options.policy.v[COOP_PARAM_BUDGET].i = 14 * MIB;
  trace = g_strdup_printf ("%s/what-if-%d.coop", g_get_tmp_dir (), g_random_int ());
  coop_play_record (program, &options, trace, &out, &error);
  g_assert_no_error (error);
  g_assert_cmpint (out.result, ==, COOP_PLAY_OK);
  g_assert_cmpuint (out.totals.evictions, >, 0);
}

/* What the replay says when asked directly. */
static CoopPlayOutcome
play (const CoopPolicy *policy)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CoopProgram) program = coop_program_load (trace, &error);
  CoopPlayOptions options;
  CoopPlayOutcome out = { 0 };
  g_assert_no_error (error);
  coop_play_options_init (&options);
  options.policy = *policy;
  options.most = 20;
  coop_play (program, &options, &out);
  return out;
}

static gboolean
settled (CoopWhatIf *what_if, const CoopPolicy *policy)
{
  return !coop_what_if_is_busy (what_if)
         && memcmp (&coop_what_if_get_after (what_if)->policy, policy, sizeof *policy) == 0;
}

static void
test_newest_wins (void)
{
  CoopWhatIf *what_if = coop_what_if_new (trace);
  CoopPolicy policy;
  spin_until (coop_what_if_get_before (what_if)->known);
  policy = coop_what_if_get_before (what_if)->policy;
  g_assert_cmpint (policy.v[COOP_PARAM_BUDGET].i, ==, 14 * MIB);
  for (int i = 30; i >= 8; i--)
    {
      policy.v[COOP_PARAM_BUDGET].i = i * MIB;
      coop_what_if_ask (what_if, &policy, i == 8);
    }
  spin_until (settled (what_if, &policy) && coop_what_if_get_trace (what_if));
  CoopPlayOutcome want = play (&policy), got = coop_what_if_get_after (what_if)->outcome;
  g_assert_cmpint (got.result, ==, want.result);
  g_assert_cmpuint (got.totals.evictions, ==, want.totals.evictions);
  g_assert_cmpuint (got.totals.replays, ==, want.totals.replays);
  g_assert_cmpfloat (got.overhead, ==, want.overhead);
  g_assert_cmpuint (got.totals.evictions, >, coop_what_if_get_before (what_if)->outcome.totals.evictions);
  g_autofree char *other = g_strdup (coop_what_if_get_trace (what_if));
  g_assert_true (g_file_test (other, G_FILE_TEST_EXISTS));
  g_object_unref (what_if);
  g_assert_false (g_file_test (other, G_FILE_TEST_EXISTS)); /* nothing is left behind */
}

static void
test_no_program (void)
{
  CoopWhatIf *what_if = coop_what_if_new ("/nowhere/at-all.coop");
  spin_until (coop_what_if_get_error (what_if));
  g_assert_false (coop_what_if_is_busy (what_if));
  g_object_unref (what_if);
}

/* Number of operators of the program that have begun at an event of a trace. */
static gboolean
take_number (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  *(guint64 *) user = g_ascii_strtoull (values[0], NULL, 10);
  return FALSE;
}

static guint64
begun_at (const char *path, guint64 event)
{
  guint64 n = 0;
  CoopReader *reader = coop_reader_open (path, NULL);
  g_autofree char *sql = g_strdup_printf (
      "SELECT count(*) FROM op WHERE replay_of IS NULL AND begin_event <= %" G_GUINT64_FORMAT, event);
  coop_reader_query (reader, sql, 10, take_number, &n, NULL);
  coop_reader_free (reader);
  return n;
}

static void
test_in_step (void)
{
  CoopWhatIf *what_if = coop_what_if_new (trace);
  CoopPolicy policy;
  spin_until (coop_what_if_get_before (what_if)->known);
  policy = coop_what_if_get_before (what_if)->policy;
  coop_policy_preset (&policy, COOP_EVICTOR_LRU);
  policy.v[COOP_PARAM_BUDGET].i = 10 * MIB;
  coop_what_if_ask (what_if, &policy, TRUE);
  spin_until (settled (what_if, &policy) && coop_what_if_get_trace (what_if));
  for (guint64 event = 0; event < 200; event += 7)
    {
      guint64 other = coop_what_if_match (what_if, event);
      g_assert_cmpuint (begun_at (coop_what_if_get_trace (what_if), other), ==, begun_at (trace, event));
    }
  g_object_unref (what_if);
}

static CoopPolicyRow *
row_of (GtkWidget *root, CoopParam param)
{
  if (COOP_IS_POLICY_ROW (root) && coop_policy_row_get_param (COOP_POLICY_ROW (root)) == param)
    return COOP_POLICY_ROW (root);
  for (GtkWidget *child = gtk_widget_get_first_child (root); child; child = gtk_widget_get_next_sibling (child))
    {
      CoopPolicyRow *found = row_of (child, param);
      if (found)
        return found;
    }
  return NULL;
}

/* As a person does it: the slider of the budget, the list of evictors, two maps, undo, reset. */
static void
test_in_the_window (void)
{
  GtkWidget *window = coop_window_new (NULL);
  gtk_window_set_default_size (GTK_WINDOW (window), 1300, 950);
  gtk_window_present (GTK_WINDOW (window));
  coop_window_open (COOP_WINDOW (window), trace, G_MAXUINT64);
  CoopRunPage *page = COOP_RUN_PAGE (find_widget (window, COOP_TYPE_RUN_PAGE));
  GtkWidget *card = find_widget (window, COOP_TYPE_WHAT_IF_CARD);
  CoopPolicyRow *budget = row_of (window, COOP_PARAM_BUDGET), *evictor = row_of (window, COOP_PARAM_EVICTOR);
  spin_until (coop_run_page_get_frame (page));
  spin_ms (300);
  g_assert_false (gtk_widget_get_visible (card));
  gtk_range_set_value (GTK_RANGE (find_widget (GTK_WIDGET (budget), GTK_TYPE_SCALE)), 10);
  spin_until (gtk_widget_get_visible (card) && find_text (card, "10.0 MiB"));
  gtk_drop_down_set_selected (GTK_DROP_DOWN (find_widget (GTK_WIDGET (evictor), GTK_TYPE_DROP_DOWN)), COOP_EVICTOR_LRU);
  spin_until (find_text (card, "lru, merge, 10.0 MiB"));
  g_assert_cmpfloat (coop_policy_row_get_value (row_of (window, COOP_PARAM_COST_EXPONENT)).d, ==, 0); /* its preset */
  g_assert_nonnull (find_text (card, "coop, merge, 14.0 MiB"));
  coop_what_if_card_set_maps (COOP_WHAT_IF_CARD (card), TRUE);
  GtkWidget *first = find_widget (window, COOP_TYPE_MAP_WIDGET), *other = NULL;
  for (GtkWidget *sibling = gtk_widget_get_next_sibling (gtk_widget_get_parent (first)); sibling && !other;
       sibling = gtk_widget_get_next_sibling (sibling))
    other = find_widget (sibling, COOP_TYPE_MAP_WIDGET);
  g_assert_nonnull (other);
  spin_until (gtk_widget_get_mapped (other));
  spin_ms (500);
  g_signal_emit_by_name (card, "undo");
  spin_until (find_text (card, "coop, merge, 10.0 MiB"));
  g_signal_emit_by_name (card, "reset");
  spin_until (coop_policy_row_get_value (budget).i == 14 * MIB);
  spin_until (!find_text (card, "10.0 MiB"));
  assert_finalized (window);
}

int
main (int argc, char **argv)
{
  gtk_test_init (&argc, &argv, NULL);
  adw_init ();
  make_trace ();
  g_test_add_func ("/ui/what-if/newest-wins", test_newest_wins);
  g_test_add_func ("/ui/what-if/no-program", test_no_program);
  g_test_add_func ("/ui/what-if/in-step", test_in_step);
  g_test_add_func ("/ui/what-if/in-the-window", test_in_the_window);
  int status = g_test_run ();
  g_unlink (trace);
  return status;
}
