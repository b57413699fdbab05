/* SPDX-License-Identifier: Apache-2.0 */
/* The control page: defaults, sources, ranges, and a writer that died half way. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire-support.h"

static void
test_first_generation (void)
{
  CoopWire *wire = support_wire (0), *other = NULL;
  CoopPolicy policy, initial;
  guint32 source[COOP_N_PARAMS];
  coop_policy_init (&initial);
  g_assert_cmpint (coop_wire_open (coop_wire_fd (wire), &other), ==, COOP_WIRE_OK);
  g_assert_cmpuint (coop_control_generation (other), ==, 1);
  g_assert_cmpuint (coop_control_read (other, &policy, source), ==, 1);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    {
      g_assert_true (coop_value_equal ((CoopParam) i, policy.v[i], initial.v[i]));
      g_assert_cmpuint (source[i], ==, COOP_SOURCE_INITIAL);
    }
  coop_control_set (wire, COOP_PARAM_BUDGET, (CoopValue) { .i = 123456 }, COOP_SOURCE_SLIDER);
  g_assert_cmpuint (coop_control_read (other, &policy, source), ==, 2);
  g_assert_cmpint (policy.v[COOP_PARAM_BUDGET].i, ==, 123456);
  g_assert_cmpuint (source[COOP_PARAM_BUDGET], ==, COOP_SOURCE_SLIDER);
  g_assert_cmpuint (source[COOP_PARAM_SMALL], ==, COOP_SOURCE_INITIAL);
  g_assert_false (coop_control_stop (other));
  coop_control_set_stop (wire);
  g_assert_true (coop_control_stop (other));
  coop_wire_free (other);
  coop_wire_free (wire);
}

static void
test_range (void)
{
  CoopWire *wire = support_wire (0);
  CoopPolicy policy;
  coop_control_set (wire, COOP_PARAM_GROUPS, (CoopValue) { .i = 99 }, COOP_SOURCE_API);
  coop_control_set (wire, COOP_PARAM_BUDGET, (CoopValue) { .i = -5 }, COOP_SOURCE_API);
  coop_control_set (wire, COOP_PARAM_DENSITY, (CoopValue) { .d = NAN }, COOP_SOURCE_API);
  coop_control_read (wire, &policy, NULL);
  g_assert_cmpint (policy.v[COOP_PARAM_GROUPS].i, ==, 6);
  g_assert_cmpint (policy.v[COOP_PARAM_BUDGET].i, ==, 0);
  g_assert_cmpfloat (policy.v[COOP_PARAM_DENSITY].d, ==, 0.25);
  coop_wire_free (wire);
}

static CoopControl *
map_control (CoopWire *wire)
{
  long page = sysconf (_SC_PAGESIZE);
  void *map = mmap (NULL, (size_t) page, PROT_READ | PROT_WRITE, MAP_SHARED, coop_wire_fd (wire), page);
  g_assert_true (map != MAP_FAILED);
  return map;
}

/* `writing` left odd by a killed writer: reads come back, and the next writer repairs it. */
static void
test_dead_writer (void)
{
  CoopWire *wire = support_wire (0);
  CoopControl *control = map_control (wire);
  CoopPolicy policy;
  atomic_store (&control->writing, 7);
  coop_control_read (wire, &policy, NULL);
  coop_control_set (wire, COOP_PARAM_STRESS, (CoopValue) { .i = 3 }, COOP_SOURCE_SLIDER);
  g_assert_cmpuint (atomic_load (&control->writing) % 2, ==, 0);
  coop_control_read (wire, &policy, NULL);
  g_assert_cmpint (policy.v[COOP_PARAM_STRESS].i, ==, 3);
  coop_wire_free (wire);
}

/* Whatever the other side writes, what is read is inside the ranges. */
static void
test_scribbled (void)
{
  CoopWire *wire = support_wire (0);
  CoopControl *control = map_control (wire);
  CoopPolicy policy;
  guint32 source[COOP_N_PARAMS];
  for (int round = 0; round < 200; round++)
    {
      guint8 *bytes = (guint8 *) control;
      for (gsize i = 0; i < sizeof *control; i++)
        bytes[i] = (guint8) g_test_rand_int ();
      atomic_store (&control->writing, 0);
      coop_control_read (wire, &policy, source);
      for (int i = 0; i < COOP_N_PARAMS; i++)
        {
          CoopValue clamped = coop_param_clamp ((CoopParam) i, policy.v[i]);
          g_assert_cmpmem (&clamped, sizeof clamped, &policy.v[i], sizeof policy.v[i]);
          g_assert_cmpuint (source[i], <, COOP_N_SOURCES);
        }
    }
  coop_wire_free (wire);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/control/first-generation", test_first_generation);
  g_test_add_func ("/control/range", test_range);
  g_test_add_func ("/control/dead-writer", test_dead_writer);
  g_test_add_func ("/control/scribbled", test_scribbled);
  return g_test_run ();
}
