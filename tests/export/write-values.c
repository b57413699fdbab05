/* SPDX-License-Identifier: Apache-2.0 */
/* write-values pickle|proto NUMBER...: the numbers as a list in a pickle, or as fields 1, 2, ... of a
 * message inside another, on standard output. For borders that traces do not reach. */
#include <stdio.h>
#include <string.h>

#include "export/pickler.h"
#include "export/proto.h"

static void
write_pickle (CoopOut *out, int n, char **numbers)
{
  CoopPickler *pickler = coop_pickler_new (out);
  coop_pickler_begin_list (pickler);
  for (int i = 0; i < n; i++)
    if (numbers[i][0] == '-')
      coop_pickler_int (pickler, g_ascii_strtoll (numbers[i], NULL, 10));
    else
      coop_pickler_uint (pickler, g_ascii_strtoull (numbers[i], NULL, 10));
  coop_pickler_text (pickler, "twice");
  coop_pickler_text (pickler, "twice");
  g_autofree char *length = g_strnfill (300, 'x');
  coop_pickler_text (pickler, length);
  coop_pickler_text (pickler, "\xff not UTF-8");
  coop_pickler_bool (pickler, TRUE);
  coop_pickler_bool (pickler, FALSE);
  for (int i = 0; i < 300; i++) /* numbers of the memo beyond a byte */
    {
      g_autofree char *text = g_strdup_printf ("text %d", i);
      coop_pickler_text (pickler, text);
      coop_pickler_text (pickler, text);
    }
  coop_pickler_end_list (pickler);
  coop_pickler_finish (pickler);
}

static void
write_proto (CoopOut *out, int n, char **numbers)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint begun = coop_proto_begin (bytes, 1000);
  for (int i = 0; i < n; i++)
    if (numbers[i][0] == '-')
      coop_proto_sint64 (bytes, (guint) i + 1, g_ascii_strtoll (numbers[i], NULL, 10));
    else
      coop_proto_uint (bytes, (guint) i + 1, g_ascii_strtoull (numbers[i], NULL, 10));
  guint inner = coop_proto_begin (bytes, 2000);
  g_autofree char *text = g_strnfill (20000, 'y');
  coop_proto_text (bytes, 1, text);
  coop_proto_double (bytes, 2, -0.1);
  coop_proto_end (bytes, inner);
  coop_proto_end (bytes, begun);
  coop_out_write (out, bytes->data, bytes->len);
}

int
main (int argc, char **argv)
{
  CoopOut *out = coop_out_open ("-", FALSE, NULL, NULL);
  if (argc < 2 || out == NULL)
    return 2;
  if (strcmp (argv[1], "pickle") == 0)
    write_pickle (out, argc - 2, argv + 2);
  else
    write_proto (out, argc - 2, argv + 2);
  return coop_out_close (out, TRUE, NULL) ? 0 : 1;
}
