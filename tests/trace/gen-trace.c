/* SPDX-License-Identifier: Apache-2.0 */
/* gen-trace FILE SEED EVENTS [COUNTER]: a trace of a generated run, for tests of what reads traces. How
 * many events were handed to the store goes into the file COUNTER, for whoever kills this program. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace-support.h"

static void
record_counted (const char *path, guint32 seed, guint64 n, const char *counter)
{
  GError *error = NULL;
  int fd = open (counter, O_RDWR | O_CREAT, 0644);
  g_assert_cmpint (ftruncate (fd, sizeof (guint64)), ==, 0);
  volatile guint64 *count = mmap (NULL, sizeof (guint64), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CoopGen *gen = coop_gen_new (seed, BUDGET);
  CoopModel *model = coop_model_new ();
  CoopStore *store = coop_store_create (path, NULL, &error);
  g_assert_no_error (error);
  while (*count < n)
    {
      record (gen, model, store, 1);
      *count += 1;
    }
  coop_store_close (store, COOP_RUN_ENDED, 0, NULL);
  coop_model_free (model);
  coop_gen_free (gen);
}

int
main (int argc, char **argv)
{
  if (argc < 4 || argc > 5)
    return 2;
  if (argc == 5)
    record_counted (argv[1], (guint32) atoi (argv[2]), g_ascii_strtoull (argv[3], NULL, 10), argv[4]);
  else
    record_file (argv[1], (guint32) atoi (argv[2]), g_ascii_strtoull (argv[3], NULL, 10));
  return 0;
}
