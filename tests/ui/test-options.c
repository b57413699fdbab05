/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of the window, and the numbers that it writes. No display. */
#include "format.h"
#include "run-options.h"

static gboolean
parse (CoopCommandLine *line, const char *text, GError **error)
{
  g_auto (GStrv) argv = g_strsplit (text, " ", -1);
  return coop_command_line_parse (line, (const char *const *) argv, "/here", error);
}

static void
test_run (void)
{
  g_autoptr (GError) error = NULL;
  CoopCommandLine line;
  gboolean ok = parse (&line, "coopscope --budget 300MiB --evictor lru --set size_exponent=0.5 --set small=0 "
                              "-o x.coop --quit-when-done -- python train.py --budget 1 -- x",
                       &error);
  g_assert_no_error (error);
  g_assert_true (ok);
  g_autofree char *command = g_strjoinv (" ", line.run.argv);
  g_assert_cmpstr (command, ==, "python train.py --budget 1 -- x");
  g_assert_cmpstr (line.run.trace, ==, "/here/x.coop");
  g_assert_cmpstr (line.run.cwd, ==, "/here");
  g_assert_true (line.quit_when_done);
  g_assert_cmpint (line.run.policy.v[COOP_PARAM_BUDGET].i, ==, 300 << 20);
  g_assert_cmpint (line.run.policy.v[COOP_PARAM_EVICTOR].i, ==, COOP_EVICTOR_LRU);
  g_assert_cmpfloat (line.run.policy.v[COOP_PARAM_COST_EXPONENT].d, ==, 0); /* lru's preset */
  g_assert_cmpfloat (line.run.policy.v[COOP_PARAM_SIZE_EXPONENT].d, ==, 0.5);
  g_assert_cmpint (line.run.policy.v[COOP_PARAM_SMALL].i, ==, 0);
  coop_command_line_clear (&line);
}

static void
test_files (void)
{
  g_autoptr (GError) error = NULL;
  CoopCommandLine line;
  g_assert_true (parse (&line, "coopscope a.coop b.coop", &error));
  g_assert_null (line.run.argv);
  g_assert_cmpuint (g_strv_length (line.files), ==, 2);
  g_assert_cmpstr (line.files[1], ==, "b.coop");
  coop_command_line_clear (&line);
  g_assert_true (parse (&line, "coopscope", &error));
  g_assert_cmpuint (g_strv_length (line.files), ==, 0);
  coop_command_line_clear (&line);
}

static void
test_refused (void)
{
  static const struct { const char *line, *says; } cases[] = {
    { "coopscope --evictor cop -- x", "“coop”" },
    { "coopscope --set buget=1 -- x", "“budget”" },
    { "coopscope --set small -- x", "KEY=VALUE" },
    { "coopscope --budget 1,5GB -- x", "1,5GB" },
    { "coopscope --budget -4 -- x", "-4" },
    { "coopscope --budget 0 -- x", "0" },
    { "coopscope --groups 9 -- x", "--groups" },
    { "coopscope --set groups=9 -- x", "range" },
    { "coopscope --budget 1GiB --", "no command" },
    { "coopscope train.py -- x", "train.py" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      CoopCommandLine line;
      g_assert_false (parse (&line, cases[i].line, &error));
      g_assert_nonnull (error);
      if (!strstr (error->message, cases[i].says))
        g_error ("%s: %s", cases[i].line, error->message);
      coop_command_line_clear (&line);
    }
}

static void
test_help (void)
{
  g_autofree char *text = coop_command_line_help ();
  g_assert_nonnull (strstr (text, "--budget=SIZE"));
  g_assert_nonnull (strstr (text, "COMMAND"));
}

static void
check_text (char *text, const char *expected)
{
  g_assert_cmpstr (text, ==, expected);
  g_free (text);
}

static void
test_format (void)
{
  check_text (coop_format_bytes (39531315), "37.7 MiB");
  check_text (coop_format_addr (0x1a00000), "0x1a00000");
  check_text (coop_format_ns (0), "0 ns");
  check_text (coop_format_ns (999), "999 ns");
  check_text (coop_format_ns (12400000), "12.4 ms");
  check_text (coop_format_ns (1500), "1.50 µs");
  check_text (coop_format_ns (999600), "1.00 ms");
  check_text (coop_format_ns (310000000), "310 ms");
  check_text (coop_format_clock (42900000000), "0:42");
  check_text (coop_format_clock (3723 * G_GUINT64_CONSTANT (1000000000)), "1:02:03");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ui/options/run", test_run);
  g_test_add_func ("/ui/options/files", test_files);
  g_test_add_func ("/ui/options/refused", test_refused);
  g_test_add_func ("/ui/options/help", test_help);
  g_test_add_func ("/ui/format", test_format);
  return g_test_run ();
}
