/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "preflight.h"

#include <stdio.h>
#include <string.h>

#define TORCH_MAJOR 1
#define TORCH_MINOR 13

/* Prints "python 3 11" and "torch 1 13 1.13.0a0", or "torch none". Looks torch up without importing
 * it (that takes seconds): its version is a line in version.py. The empty entry of sys.path, which
 * is there because of -c, is not the script's. */
static const char probe[]
    = "import sys,os,re\n"
      "print('python',sys.version_info[0],sys.version_info[1])\n"
      "sys.path=[p for p in sys.path if p]\n"
      "from importlib.util import find_spec\n"
      "try: s=find_spec('torch')\n"
      "except Exception: s=None\n"
      "v=None\n"
      "if s and s.origin:\n"
      "  f=os.path.join(os.path.dirname(s.origin),'version.py')\n"
      "  try: v=re.search(r'__version__[^=]*=[^0-9]*((\\d+)\\.(\\d+)[^\\'\\\"]*)',open(f).read())\n"
      "  except Exception: v=None\n"
      "print('torch',*((v[2],v[3],v[1]) if v else ('unknown' if s else 'none',)))\n";

static gboolean
is_python (const char *program)
{
  g_autofree char *base = g_path_get_basename (program);
  const char *rest = base;
  if (!g_str_has_prefix (base, "python") && !g_str_has_prefix (base, "pypy"))
    return FALSE;
  rest += g_str_has_prefix (base, "python") ? 6 : 4;
  return strspn (rest, "0123456789.") == strlen (rest);
}

/* One cluster of short options ("-Bu", "-Wignore"). Returns FALSE when what follows is not the
 * interpreter's any more; *skip is set when its value is the next argument. */
static gboolean
read_cluster (const char *letters, const char *next, CoopPythonLine *line, gboolean *skip)
{
  for (const char *p = letters; *p != 0; p++)
    {
      if (strchr ("IES", *p) != NULL && strchr (line->blind, *p) == NULL)
        line->blind[strlen (line->blind)] = *p;
      if (*p == 'c')
        return FALSE;
      if (*p == 'm')
        {
          line->module = p[1] != 0 ? p + 1 : next;
          return FALSE;
        }
      if (*p == 'W' || *p == 'X')
        {
          *skip = p[1] == 0;
          return TRUE;
        }
    }
  return TRUE;
}

void
coop_python_line_parse (char *const *argv, CoopPythonLine *line)
{
  memset (line, 0, sizeof *line);
  line->python = is_python (argv[0]);
  for (int i = 1; line->python && argv[i] != NULL; i++)
    {
      const char *arg = argv[i];
      gboolean skip = FALSE;
      if (g_str_equal (arg, "-"))
        return;
      if (arg[0] != '-')
        {
          line->script = arg;
          return;
        }
      if (g_str_equal (arg, "--check-hash-based-pycs"))
        skip = TRUE;
      else if (arg[1] != '-' && !read_cluster (arg + 1, argv[i + 1], line, &skip))
        return;
      if (skip && argv[i + 1] != NULL)
        i++;
    }
}

static char *
in_folder (const char *cwd, const char *path)
{
  return cwd == NULL ? g_strdup (path) : g_canonicalize_filename (path, cwd);
}

/* The program as the child will find it, NULL if it will not. */
static char *
find_program (const char *name, const char *cwd, char **env)
{
  if (strchr (name, '/') != NULL)
    {
      g_autofree char *path = in_folder (cwd, name);
      return g_file_test (path, G_FILE_TEST_IS_EXECUTABLE) && !g_file_test (path, G_FILE_TEST_IS_DIR)
                 ? g_steal_pointer (&path) : NULL;
    }
  const char *path = g_environ_getenv (env, "PATH");
  g_auto (GStrv) dirs = g_strsplit (path != NULL ? path : "/usr/bin:/bin", ":", -1);
  for (int i = 0; dirs[i] != NULL; i++)
    {
      g_autofree char *dir = in_folder (cwd, dirs[i][0] != 0 ? dirs[i] : ".");
      g_autofree char *file = g_build_filename (dir, name, NULL);
      if (g_file_test (file, G_FILE_TEST_IS_EXECUTABLE) && !g_file_test (file, G_FILE_TEST_IS_DIR))
        return g_steal_pointer (&file);
    }
  return NULL;
}

static char *
run_probe (const char *python, const char *cwd, char **env, GError **error)
{
  const char *argv[] = { python, "-c", probe, NULL };
  g_autofree char *out = NULL, *err = NULL;
  int status = 0;
  if (!g_spawn_sync (cwd, (char **) argv, env, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status,
                     error))
    return NULL;
  if (!g_spawn_check_wait_status (status, NULL))
    {
      char *line = g_strchomp (err);
      char *last = strrchr (line, '\n');
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_TORCH, "%s does not run: %s", python,
                   last != NULL ? last + 1 : line);
      return NULL;
    }
  return g_steal_pointer (&out);
}

static gboolean
check_torch (const char *python, const char *cwd, char **env, GError **error)
{
  g_autofree char *text = run_probe (python, cwd, env, error);
  if (text == NULL)
    return FALSE;
  int major = 0, minor = 0, torch_major = 0, torch_minor = 0;
  char version[64] = "";
  const char *torch = strstr (text, "torch ");
  if (sscanf (text, "python %d %d", &major, &minor) != 2 || torch == NULL)
    return TRUE;   /* an interpreter that says something else: let it try */
  if (major < 3 || (major == 3 && minor < 9))
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_TORCH,
                   "%s is Python %d.%d; Coopscope needs 3.9 or newer", python, major, minor);
      return FALSE;
    }
  if (g_str_has_prefix (torch, "torch none"))
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_TORCH,
                   "%s has no PyTorch (import torch fails)", python);
      return FALSE;
    }
  if (sscanf (torch, "torch %d %d %63s", &torch_major, &torch_minor, version) == 3
      && (torch_major < TORCH_MAJOR || (torch_major == TORCH_MAJOR && torch_minor < TORCH_MINOR)))
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_TORCH,
                   "%s has PyTorch %s; Coopscope needs %d.%d or newer", python, version, TORCH_MAJOR,
                   TORCH_MINOR);
      return FALSE;
    }
  return TRUE;
}

gboolean
coop_preflight (const CoopRunOptions *options, char **env, GError **error)
{
  const char *cwd = options->cwd;
  CoopPythonLine line;
  if (cwd != NULL && !g_file_test (cwd, G_FILE_TEST_IS_DIR))
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND, "no such folder: %s", cwd);
      return FALSE;
    }
  g_autofree char *program = find_program (options->argv[0], cwd, env);
  if (program == NULL)
    {
      g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND, "no such program: %s",
                   options->argv[0]);
      return FALSE;
    }
  coop_python_line_parse (options->argv, &line);
  if (line.script != NULL)
    {
      g_autofree char *script = in_folder (cwd, line.script);
      if (!g_file_test (script, G_FILE_TEST_EXISTS))
        {
          g_set_error (error, COOP_SESSION_ERROR, COOP_SESSION_ERROR_COMMAND, "no such script: %s",
                       line.script);
          return FALSE;
        }
    }
  return !line.python || check_torch (program, cwd, env, error);
}

static gboolean
has_package (const char *dir)
{
  g_autofree char *file = g_build_filename (dir, "coopscope", "_site", "sitecustomize.py", NULL);
  return g_file_test (file, G_FILE_TEST_EXISTS);
}

/* Beside the executable, built or installed: <build>/src/cli, <build>/ui, <build>/tests/x, bin; in a wheel
 * site-packages/coopscope/_bin. */
static char *
beside_executable (void)
{
  static const char *const ways[] = { "../torch/python", "../src/torch/python",
                                      "../../src/torch/python", "../lib/coopscope/python", "../.." };
  g_autofree char *exe = g_file_read_link ("/proc/self/exe", NULL);
  if (exe == NULL)
    return NULL;
  g_autofree char *here = g_path_get_dirname (exe);
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    {
      g_autofree char *dir = g_canonicalize_filename (ways[i], here);
      if (has_package (dir))
        return g_steal_pointer (&dir);
    }
  return NULL;
}

char *
coop_python_dir (void)
{
  const char *given = g_getenv ("COOPSCOPE_PYTHON");
  if (given != NULL)
    return g_canonicalize_filename (given, NULL);
  char *dir = beside_executable ();
  if (dir != NULL)
    return dir;
  return has_package (COOP_PYTHON_DIR) ? g_strdup (COOP_PYTHON_DIR) : NULL;
}

char **
coop_python_environ (char **env, const char *dir)
{
  const char *old = g_environ_getenv (env, "PYTHONPATH");
  g_autofree char *site = g_build_filename (dir, "coopscope", "_site", NULL);
  /* the folder alone: it puts `dir`, which may be a site-packages, behind all others */
  g_autofree char *path = old != NULL && old[0] != 0 ? g_strjoin (":", site, old, NULL) : g_strdup (site);
  return g_environ_setenv (env, "PYTHONPATH", path, TRUE);
}
