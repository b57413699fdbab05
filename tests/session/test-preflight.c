/* SPDX-License-Identifier: Apache-2.0 */
/* How Python command lines are read, and what is refused before anything starts. */
#include <glib/gstdio.h>
#include <string.h>

#include "session/preflight.h"

static void
check_line (const char *command, const char *script, const char *module, const char *blind)
{
  g_auto (GStrv) argv = g_strsplit (command, " ", -1);
  CoopPythonLine line;
  coop_python_line_parse (argv, &line);
  g_assert_true (line.python);
  g_assert_cmpstr (line.script, ==, script);
  g_assert_cmpstr (line.module, ==, module);
  g_assert_cmpstr (line.blind, ==, blind);
}

static void
test_lines (void)
{
  check_line ("python train.py -I x", "train.py", NULL, "");
  check_line ("/usr/bin/python3.11 -u -W ignore -X dev train.py", "train.py", NULL, "");
  check_line ("python3 -Wignore -Xdev a/b.py", "a/b.py", NULL, "");
  check_line ("python3 -m torch.distributed.run x.py", NULL, "torch.distributed.run", "");
  check_line ("python3 -mpkg x.py", NULL, "pkg", "");
  check_line ("python3 -c pass x.py", NULL, NULL, "");
  check_line ("python3 - x.py", NULL, NULL, "");
  check_line ("python3 -Iu train.py", "train.py", NULL, "I");
  check_line ("python3 -E -S -E train.py", "train.py", NULL, "ES");
  check_line ("python3 --check-hash-based-pycs never t.py", "t.py", NULL, "");
  check_line ("python3", NULL, NULL, "");
  char *others[] = { "python-config", "ipython", "pythonx3", "bash", NULL };
  for (char **name = others; *name != NULL; name++)
    {
      char *argv[] = { *name, "x.py", NULL };
      CoopPythonLine line;
      coop_python_line_parse (argv, &line);
      g_assert_false (line.python);
    }
}

/* An interpreter that answers the probe with what `says` holds. */
static char *
fake_python (const char *dir, const char *says)
{
  char *path = g_build_filename (dir, "python3", NULL);
  g_autofree char *text = g_strdup_printf ("#!/bin/sh\n%s\n", says);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  g_assert_cmpint (g_chmod (path, 0755), ==, 0);
  return path;
}

static void
check_start (const char *program, const char *script, const char *cwd, int code, const char *says)
{
  CoopRunOptions options = { .argv = (char *[]) { (char *) program, (char *) script, NULL },
                             .cwd = (char *) cwd };
  g_auto (GStrv) env = g_get_environ ();
  g_autoptr (GError) error = NULL;
  gboolean ok = coop_preflight (&options, env, &error);
  if (says == NULL)
    {
      g_assert_no_error (error);
      g_assert_true (ok);
      return;
    }
  g_assert_false (ok);
  g_assert_error (error, COOP_SESSION_ERROR, code);
  g_assert_nonnull (strstr (error->message, says));
  g_assert_null (strchr (error->message, '\n'));
}

static void
test_refusals (void)
{
  g_autofree char *dir = g_dir_make_tmp ("coop-preflight-XXXXXX", NULL);
  g_autofree char *script = g_build_filename (dir, "train.py", NULL);
  g_assert_true (g_file_set_contents (script, "pass\n", -1, NULL));
  g_autofree char *python = fake_python (dir, "echo python 3 11; echo torch 2 1 2.1.0");
  check_start (python, script, NULL, 0, NULL);
  check_start (python, "train.py", dir, 0, NULL);
  check_start ("sh", "whatever", NULL, 0, NULL);
  check_start ("no-such-program-x", NULL, NULL, COOP_SESSION_ERROR_COMMAND, "no-such-program-x");
  check_start ("/etc/passwd", NULL, NULL, COOP_SESSION_ERROR_COMMAND, "/etc/passwd");
  check_start (python, "missing.py", dir, COOP_SESSION_ERROR_COMMAND, "missing.py");
  check_start (python, script, "/no/such/dir", COOP_SESSION_ERROR_COMMAND, "/no/such/dir");
  g_free (fake_python (dir, "echo python 3 11; echo torch none"));
  check_start (python, script, NULL, COOP_SESSION_ERROR_TORCH, "no PyTorch");
  g_free (fake_python (dir, "echo python 3 11; echo torch 1 12 1.12.1+cpu"));
  check_start (python, script, NULL, COOP_SESSION_ERROR_TORCH, "1.12.1+cpu");
  g_free (fake_python (dir, "echo python 3 11; echo torch 1 13 1.13.0a0+gitunknown"));
  check_start (python, script, NULL, 0, NULL);
  g_free (fake_python (dir, "echo python 3 8; echo torch 2 0 2.0"));
  check_start (python, script, NULL, COOP_SESSION_ERROR_TORCH, "3.8");
  g_free (fake_python (dir, "echo first >&2; echo 'broken thing' >&2; exit 3"));
  check_start (python, script, NULL, COOP_SESSION_ERROR_TORCH, "broken thing");
  g_remove (python);
  g_remove (script);
  g_rmdir (dir);
}

static void
test_environ (void)
{
  g_auto (GStrv) env = g_strdupv ((char *[]) { "PYTHONPATH=/old:/older", NULL });
  env = coop_python_environ (env, "/p");
  g_assert_cmpstr (g_environ_getenv (env, "PYTHONPATH"), ==, "/p/coopscope/_site:/old:/older");
  g_auto (GStrv) empty = g_strdupv ((char *[]) { NULL });
  empty = coop_python_environ (empty, "/p");
  g_assert_cmpstr (g_environ_getenv (empty, "PYTHONPATH"), ==, "/p/coopscope/_site");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/preflight/lines", test_lines);
  g_test_add_func ("/preflight/refusals", test_refusals);
  g_test_add_func ("/preflight/env", test_environ);
  return g_test_run ();
}
