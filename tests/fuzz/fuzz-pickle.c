/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of anybody's as a memory snapshot: the pickle reader, and all that looks at its values up to
 * the point where a trace would be written.
 *
 *     clang -fsanitize=fuzzer,address,undefined -DCOOP_LIBFUZZER ...   for a real fuzzer, or
 *     fuzz-pickle FILE...    runs the files
 */
#include <stdio.h>
#include <string.h>

#include "trace/snapshot-private.h"

#ifdef COOP_LIBFUZZER /* the store, which defines it, stays out */
G_DEFINE_QUARK (coop-trace-error-quark, coop_trace_error)
#endif

typedef struct {
  const uint8_t *data;
  size_t left;
} Input;

static gssize
read_input (gpointer user, void *buffer, gsize n)
{
  Input *input = user;
  n = MIN (n, input->left);
  n = MIN (n, 7); /* in small pieces: what lies across two is met all the time */
  if (n > 0)
    memcpy (buffer, input->data, n);
  input->data += n;
  input->left -= n;
  return (gssize) n;
}

static void
look (const CoopSnap *snap)
{
  for (guint i = 0; i < snap->devices->len; i++)
    {
      CoopSnapLives lives;
      CoopSnapMap map;
      CoopSnapSpace space;
      coop_snap_lives_find (&lives, snap->devices->pdata[i]);
      coop_snap_map_make (&map, snap->devices->pdata[i], &lives);
      coop_snap_space_init (&space);
      coop_snap_space_begin (&space, snap->devices->pdata[i], &map);
      coop_snap_space_clear (&space);
      coop_snap_map_clear (&map);
      coop_snap_lives_clear (&lives);
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  Input input = { data, size };
  CoopSnap *snap = coop_snap_new ();
  CoopPickleSource source = { .read = read_input, .read_user = &input, .seal_key = "frames", .seal = coop_snap_seal,
                              .seal_user = snap };
  CoopPickle *pickle = coop_pickle_read (&source, NULL);
  if (pickle != NULL && coop_snap_fill (snap, pickle, NULL))
    look (snap);
  coop_pickle_free (pickle);
  coop_snap_free (snap);
  return 0;
}

#ifndef COOP_LIBFUZZER
int
main (int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    {
      g_autofree char *data = NULL;
      gsize size;
      if (!g_file_get_contents (argv[i], &data, &size, NULL))
        return 1;
      LLVMFuzzerTestOneInput ((const uint8_t *) data, size);
      printf ("%s: %zu bytes\n", argv[i], size);
    }
  return 0;
}
#endif
