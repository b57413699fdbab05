/* SPDX-License-Identifier: Apache-2.0 */
/* headless-a11y: drives a GTK window through the accessibility bus, as a screen reader would, so that
 * what is tested is what a person can reach.
 *
 *   headless-a11y [--app NAME] dump             every object: depth, role, name, value
 *   headless-a11y [--app NAME] get NAME         value of a slider
 *   headless-a11y [--app NAME] set NAME VALUE   moves a slider
 *   headless-a11y [--app NAME] press NAME       a button's first action
 *
 * It waits up to 20 s for the object to appear. Exit status 0 done, 1 not found or refused, 2 wrong
 * use. It uses the session bus it finds itself in.
 */
#include <gio/gio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESSIBLE "org.a11y.atspi.Accessible"
#define VALUE "org.a11y.atspi.Value"
#define ACTION "org.a11y.atspi.Action"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define CALL_MS 5000
#define WAIT_US (20 * G_USEC_PER_SEC)
#define MAX_DEPTH 64

typedef struct {
  GDBusConnection *bus;
  const char *command, *name, *app;
  double value;
} Driver;

static GVariant *
call (Driver *driver, const char *peer, const char *path, const char *interface, const char *method,
      GVariant *args)
{
  return g_dbus_connection_call_sync (driver->bus, peer, path, interface, method, args, NULL,
                                      G_DBUS_CALL_FLAGS_NONE, CALL_MS, NULL, NULL);
}

static GVariant *
property (Driver *driver, const char *peer, const char *path, const char *interface,
          const char *name)
{
  g_autoptr (GVariant) reply = call (driver, peer, path, PROPERTIES, "Get",
                                     g_variant_new ("(ss)", interface, name));
  GVariant *value = NULL;

  if (reply != NULL)
    g_variant_get (reply, "(v)", &value);
  return value;
}

static char *
name_of (Driver *driver, const char *peer, const char *path)
{
  g_autoptr (GVariant) name = property (driver, peer, path, ACCESSIBLE, "Name");

  return name != NULL ? g_variant_dup_string (name, NULL) : g_strdup ("");
}

static char *
role_of (Driver *driver, const char *peer, const char *path)
{
  g_autoptr (GVariant) reply = call (driver, peer, path, ACCESSIBLE, "GetRoleName", NULL);
  char *role = NULL;

  if (reply != NULL)
    g_variant_get (reply, "(s)", &role);
  return role != NULL ? role : g_strdup ("?");
}

static void
dump (Driver *driver, const char *peer, const char *path, const char *name, int depth)
{
  g_autofree char *role = role_of (driver, peer, path);
  g_autoptr (GVariant) value = property (driver, peer, path, VALUE, "CurrentValue");

  g_print ("%*s%s \"%s\"", depth * 2, "", role, name);
  if (value != NULL)
    g_print (" = %.17g", g_variant_get_double (value));
  g_print ("\n");
}

/* TRUE if this object can do what is asked and did it. Labels often have the name of the slider or
 * button that they stand in, so an object that refuses is passed over. */
static gboolean
act (Driver *driver, const char *peer, const char *path)
{
  g_autoptr (GVariant) reply = NULL;

  if (g_str_equal (driver->command, "press"))
    {
      gboolean done = FALSE;

      reply = call (driver, peer, path, ACTION, "DoAction", g_variant_new ("(i)", 0));
      if (reply != NULL)
        g_variant_get (reply, "(b)", &done);
      return done;
    }
  if (g_str_equal (driver->command, "set"))
    {
      reply = call (driver, peer, path, PROPERTIES, "Set",
                    g_variant_new ("(ssv)", VALUE, "CurrentValue",
                                   g_variant_new_double (driver->value)));
      return reply != NULL;
    }
  reply = property (driver, peer, path, VALUE, "CurrentValue");
  if (reply != NULL)
    g_print ("%.17g\n", g_variant_get_double (reply));
  return reply != NULL;
}

/* Depth first. TRUE as soon as an object was acted on. */
static gboolean
visit (Driver *driver, const char *peer, const char *path, int depth)
{
  g_autofree char *name = name_of (driver, peer, path);
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariantIter) children = NULL;
  const char *child_peer, *child_path;

  if (driver->app != NULL && depth == 1 && strcmp (name, driver->app) != 0)
    return FALSE;
  if (driver->name == NULL)
    dump (driver, peer, path, name, depth);
  else if (strcmp (name, driver->name) == 0 && act (driver, peer, path))
    return TRUE;
  if (depth == MAX_DEPTH)
    return FALSE;
  reply = call (driver, peer, path, ACCESSIBLE, "GetChildren", NULL);
  if (reply == NULL)
    return FALSE;
  g_variant_get (reply, "(a(so))", &children);
  while (g_variant_iter_next (children, "(&s&o)", &child_peer, &child_path))
    if (visit (driver, child_peer, child_path, depth + 1))
      return TRUE;
  return FALSE;
}

static GDBusConnection *
connect_to_bus (GError **error)
{
  g_autoptr (GDBusConnection) session = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, error);
  g_autoptr (GVariant) reply = NULL;
  const char *address;

  if (session == NULL)
    return NULL;
  reply = g_dbus_connection_call_sync (session, "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus",
                                       "GetAddress", NULL, G_VARIANT_TYPE ("(s)"),
                                       G_DBUS_CALL_FLAGS_NONE, CALL_MS, NULL, error);
  if (reply == NULL)
    return NULL;
  g_variant_get (reply, "(&s)", &address);
  return g_dbus_connection_new_for_address_sync (
    address,
    G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
    NULL, NULL, error);
}

static gboolean
parse (Driver *driver, int argc, char **argv)
{
  int i = 1;

  if (argc > 2 && g_str_equal (argv[1], "--app"))
    {
      driver->app = argv[2];
      i = 3;
    }
  if (i == argc)
    return FALSE;
  driver->command = argv[i];
  if (i + 1 < argc)
    driver->name = argv[i + 1];
  if (i + 2 < argc)
    driver->value = g_ascii_strtod (argv[i + 2], NULL);
  if (g_str_equal (driver->command, "dump"))
    return i + 1 == argc;
  if (g_str_equal (driver->command, "get") || g_str_equal (driver->command, "press"))
    return i + 2 == argc;
  return g_str_equal (driver->command, "set") && i + 3 == argc;
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  Driver driver = { 0 };
  gint64 until = g_get_monotonic_time () + WAIT_US;

  if (!parse (&driver, argc, argv))
    {
      g_printerr ("usage: headless-a11y [--app NAME] dump | get NAME | set NAME VALUE | press NAME\n");
      return 2;
    }
  driver.bus = connect_to_bus (&error);
  if (driver.bus == NULL)
    {
      g_printerr ("headless-a11y: %s\n", error->message);
      return 1;
    }
  do
    {
      if (visit (&driver, "org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root", 0)
          || driver.name == NULL)
        return 0;
      g_usleep (50000);
    }
  while (g_get_monotonic_time () < until);
  g_printerr ("headless-a11y: nothing called \"%s\" can be %s\n", driver.name,
              g_str_equal (driver.command, "press") ? "pressed" : "read or set");
  return 1;
}
