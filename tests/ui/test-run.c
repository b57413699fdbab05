/* SPDX-License-Identifier: Apache-2.0 */
/* The program itself, driven from outside as a person with a screen reader would: it runs a target, its
 * budget slider is found and moved through the accessibility bus, and the trace has the row for it.
 *
 *     test-run COOPSCOPE FAKE-TARGET
 */
#include <gio/gio.h>
#include <glib/gstdio.h>

#include "trace/store.h"

#define LIMIT_MS 20000
#define ROLE_SLIDER 51u /* ATSPI_ROLE_SLIDER */
#define ACCESSIBLE "org.a11y.atspi.Accessible"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define APP_ID "io.github.coopscope.Coopscope"

static const char *coopscope, *fake_target;

/* ---- the accessibility bus ---- */

static GVariant *
call (GDBusConnection *bus, const char *name, const char *path, const char *interface, const char *method,
      GVariant *args)
{
  return g_dbus_connection_call_sync (bus, name, path, interface, method, args, NULL,
                                      G_DBUS_CALL_FLAGS_NONE, 2000, NULL, NULL);
}

static GDBusConnection *
open_accessibility_bus (GDBusConnection *session)
{
  g_autoptr (GVariant) reply = call (session, "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress", NULL);
  g_autoptr (GError) error = NULL;
  const char *address;
  g_assert_nonnull (reply);
  g_variant_get (reply, "(&s)", &address);
  GDBusConnection *bus = g_dbus_connection_new_for_address_sync (
      address,
      G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL,
      NULL, &error);
  g_assert_no_error (error);
  return bus;
}

typedef struct {
  char *name, *path;
} Node;

static guint
get_role (GDBusConnection *bus, const char *name, const char *path)
{
  g_autoptr (GVariant) reply = call (bus, name, path, ACCESSIBLE, "GetRole", NULL);
  guint role = 0;
  if (reply)
    g_variant_get (reply, "(u)", &role);
  return role;
}

static char *
get_name (GDBusConnection *bus, const char *name, const char *path)
{
  g_autoptr (GVariant) reply
      = call (bus, name, path, PROPERTIES, "Get", g_variant_new ("(ss)", ACCESSIBLE, "Name"));
  g_autoptr (GVariant) value = NULL;
  if (!reply)
    return g_strdup ("");
  g_variant_get (reply, "(v)", &value);
  return g_variant_dup_string (value, NULL);
}

static gboolean
is_slider (GDBusConnection *bus, const char *name, const char *path, const char *label)
{
  if (get_role (bus, name, path) != ROLE_SLIDER)
    return FALSE;
  g_autofree char *said = get_name (bus, name, path);
  return g_str_equal (said, label);
}

/* Everything that can be operated says what it is. Returns how many there are. */
static guint
check_names (GDBusConnection *bus, const char *name, const char *path)
{
  /* ATSPI_ROLE_: check box, combo box, push button, slider, toggle button, entry, text */
  static const guint controls[] = { 7, 11, 43, ROLE_SLIDER, 62, 79, 61 };
  guint role = get_role (bus, name, path), n = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (controls); i++)
    if (role == controls[i])
      {
        g_autofree char *said = get_name (bus, name, path);
        if (*said == '\0')
          g_error ("%s (role %u) has no name", path, role);
        n++;
      }
  g_autoptr (GVariant) reply = call (bus, name, path, ACCESSIBLE, "GetChildren", NULL);
  if (!reply)
    return n;
  g_autoptr (GVariantIter) children = NULL;
  const char *child_name, *child_path;
  g_variant_get (reply, "(a(so))", &children);
  while (g_variant_iter_next (children, "(&s&o)", &child_name, &child_path))
    n += check_names (bus, child_name, child_path);
  return n;
}

static gboolean
find_slider (GDBusConnection *bus, const char *name, const char *path, const char *label, Node *found)
{
  if (is_slider (bus, name, path, label))
    {
      *found = (Node) { g_strdup (name), g_strdup (path) };
      return TRUE;
    }
  g_autoptr (GVariant) reply = call (bus, name, path, ACCESSIBLE, "GetChildren", NULL);
  if (!reply)
    return FALSE;
  g_autoptr (GVariantIter) children = NULL;
  const char *child_name, *child_path;
  g_variant_get (reply, "(a(so))", &children);
  while (g_variant_iter_next (children, "(&s&o)", &child_name, &child_path))
    if (find_slider (bus, child_name, child_path, label, found))
      return TRUE;
  return FALSE;
}

static double
get_value (GDBusConnection *bus, const Node *node)
{
  g_autoptr (GVariant) reply
      = call (bus, node->name, node->path, PROPERTIES, "Get",
              g_variant_new ("(ss)", "org.a11y.atspi.Value", "CurrentValue"));
  g_autoptr (GVariant) value = NULL;
  g_assert_nonnull (reply);
  g_variant_get (reply, "(v)", &value);
  return g_variant_get_double (value);
}

static void
set_value (GDBusConnection *bus, const Node *node, double value)
{
  g_autoptr (GVariant) reply
      = call (bus, node->name, node->path, PROPERTIES, "Set",
              g_variant_new ("(ssv)", "org.a11y.atspi.Value", "CurrentValue", g_variant_new_double (value)));
  g_assert_nonnull (reply);
}

static void
activate (GDBusConnection *session, const char *action)
{
  g_autoptr (GVariant) reply
      = call (session, APP_ID, "/io/github/coopscope/Coopscope/window/1", "org.gtk.Actions", "Activate",
              g_variant_new_parsed ("(%s, @av [], @a{sv} {})", action));
  g_assert_nonnull (reply);
}

/* ---- the trace ---- */

static gboolean
count_row (gpointer user, int n, const char *const *names, const char *const *values, const int *types)
{
  (*(guint *) user)++;
  return TRUE;
}

static guint
count_rows (const char *path, const char *sql)
{
  g_autoptr (GError) error = NULL;
  guint n = 0;
  CoopReader *reader = coop_reader_open (path, &error);
  g_assert_no_error (error);
  coop_reader_query (reader, sql, 10, count_row, &n, &error);
  g_assert_no_error (error);
  coop_reader_free (reader);
  return n;
}

static guint
wait_exit (GSubprocess *process)
{
  for (int ms = 0; ms < LIMIT_MS; ms += 20)
    {
      if (!g_subprocess_get_identifier (process))
        break;
      g_main_context_iteration (NULL, FALSE);
      g_usleep (20000);
    }
  g_assert_null (g_subprocess_get_identifier (process));
  g_assert_true (g_subprocess_get_if_exited (process));
  return (guint) g_subprocess_get_exit_status (process);
}

static void
test_slider_to_trace (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("coop-run-XXXXXX", &error);
  g_autofree char *trace = g_build_filename (dir, "run.coop", NULL);
  g_autoptr (GDBusConnection) session = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (GSubprocess) process = g_subprocess_new (
      G_SUBPROCESS_FLAGS_STDOUT_SILENCE, &error, coopscope, "--budget", "48MiB", "-o", trace,
      "--quit-when-done", "--", fake_target, "--events", "100000000", "--rate", "5000", NULL);
  g_assert_no_error (error);

  g_autoptr (GDBusConnection) bus = open_accessibility_bus (session);
  Node slider = { NULL, NULL };
  for (int ms = 0; !slider.path && ms < LIMIT_MS; ms += 100)
    {
      g_usleep (100000);
      find_slider (bus, "org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root", "budget", &slider);
    }
  g_assert_nonnull (slider.path);
  g_assert_cmpfloat (get_value (bus, &slider), ==, 48);
  g_usleep (500000); /* so that some of the run lies before it */
  set_value (bus, &slider, 40);
  g_usleep (1500000); /* the target has taken it over, and the window shows what is in force */
  g_assert_cmpfloat (get_value (bus, &slider), ==, 40);

  g_assert_cmpuint (check_names (bus, slider.name, "/org/a11y/atspi/accessible/root"), >, 30);

  activate (session, "stop");
  g_assert_cmpuint (wait_exit (process), ==, 130); /* what the target says to Ctrl-C */
  g_assert_cmpuint (count_rows (trace, "SELECT * FROM v_policy WHERE param = 'budget' AND source = 'slider' "
                                       "AND new = 41943040"),
                    ==, 1);
  g_assert_cmpuint (count_rows (trace, "SELECT * FROM v_policy WHERE source = 'slider'"), ==, 1);
  g_free (slider.name);
  g_free (slider.path);
  g_unlink (trace);
  g_rmdir (dir);
}

static void
test_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *said = NULL;
  g_autoptr (GSubprocess) process
      = g_subprocess_new (G_SUBPROCESS_FLAGS_STDERR_PIPE, &error, coopscope, "--evictor", "cop", "--",
                          fake_target, NULL);
  g_assert_no_error (error);
  g_subprocess_communicate_utf8 (process, NULL, NULL, NULL, &said, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (said, "“coop”"));
  g_assert_cmpint (g_subprocess_get_exit_status (process), ==, 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (argc < 3)
    g_error ("test-run COOPSCOPE FAKE-TARGET");
  coopscope = argv[1];
  fake_target = argv[2];
  g_test_add_func ("/ui/run/refused", test_refused);
  g_test_add_func ("/ui/run/slider-to-trace", test_slider_to_trace);
  return g_test_run ();
}
