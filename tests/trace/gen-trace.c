/* SPDX-License-Identifier: Apache-2.0 */
/* gen-trace FILE SEED EVENTS: a trace of a generated run, for tests of what reads traces. */
#include <stdlib.h>

#include "trace-support.h"

int
main (int argc, char **argv)
{
  if (argc != 4)
    return 2;
  record_file (argv[1], (guint32) atoi (argv[2]), g_ascii_strtoull (argv[3], NULL, 10));
  return 0;
}
