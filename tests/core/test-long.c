/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of very many members, beside the brute force; and the names that people read. */
#include "core/engine-private.h"
#include "support/ref-host.h"

/* The list of members begins short, grows with the window and is moved to its begin again and again. */
static void
test_long_window (void)
{
  static const unsigned kib[] = { 20, 150, 130, 400, 700, 3 };
  CoopPolicy policy;
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = 1 << 20;
  policy.v[COOP_PARAM_SMALL].i = 0;
  policy.v[COOP_PARAM_HOLD].i = 0;
  policy.v[COOP_PARAM_COMPACT].i = 0;
  RefHost *host = ref_host_new (2 << 20, &policy);
  GRand *rand = g_rand_new_with_seed (20261130);
  for (unsigned i = 0; i < 2048; i++)
    if (i == 100 || i == 600)
      ref_host_constant (host, 512, COOP_KIND_OTHER, i);
    else
      ref_make (host, 512, (uint64_t) g_rand_int_range (rand, 1, 5000), 0);
  host->check = true;
  for (unsigned i = 0; i < G_N_ELEMENTS (kib); i++)
    {
      uint64_t windows = host->brute_windows;
      ref_make (host, kib[i] * 1024, (uint64_t) g_rand_int_range (rand, 100000, 900000), 0);
      g_assert_cmpuint (host->brute_windows, ==, windows + 1);
    }
  CoopTotals totals;
  coop_engine_totals (host->engine, &totals);
  g_assert_cmpuint (totals.evictions, >, 1400); /* the largest alone spans that many */
  host->check = false;
  g_rand_free (rand);
  ref_host_free (host);
}

static void
test_labels (void)
{
  static const unsigned kinds[] = {
#define X(ID, value, label) value,
    COOP_EVENT_KINDS (X)
#undef X
  };
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (unsigned i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_assert_nonnull (coop_event_kind_label (kinds[i]));
      g_assert_true (g_hash_table_add (seen, (gpointer) coop_event_kind_label (kinds[i])));
    }
  g_assert_cmpstr (coop_event_kind_label (COOP_EVENT_HANDOVER), ==, "handover");
  g_assert_null (coop_event_kind_label (0));
  g_assert_null (coop_event_kind_label (COOP_N_EVENT_KINDS));
  for (unsigned i = 0; i < COOP_N_KINDS; i++)
    g_assert_nonnull (coop_kind_label (i));
  for (unsigned i = 0; i < COOP_N_PHASES; i++)
    g_assert_nonnull (coop_phase_label (i));
  for (unsigned i = 0; i < COOP_N_PINS; i++)
    g_assert_nonnull (coop_pin_label (i));
  g_assert_null (coop_kind_label (COOP_N_KINDS));
  g_assert_null (coop_phase_label (COOP_N_PHASES));
  g_assert_null (coop_pin_label (COOP_N_PINS));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/long/window", test_long_window);
  g_test_add_func ("/long/labels", test_labels);
  return g_test_run ();
}
