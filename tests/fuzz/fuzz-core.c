/* SPDX-License-Identifier: Apache-2.0 */
/* The engine under programs that a fuzzer writes: each byte is a decision of the toy machine
 * (support/ref-program.h), which checks values and invariants after every step.
 *
 *     clang -fsanitize=fuzzer,address,undefined -DCOOP_LIBFUZZER ...   for a real fuzzer, or
 *     fuzz-core [FILE...]    runs the files; without any, a few random inputs of growing length
 */
#include "support/ref-program.h"

typedef struct
{
  const uint8_t *data;
  size_t left;
} Input;

static bool
next (void *user, uint8_t *byte)
{
  Input *input = user;
  if (input->left == 0)
    return false;
  *byte = *input->data++;
  input->left--;
  return true;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  Input input = { data, size };
  RefBytes source = { .next = next, .user = &input };
  RefProgramStats stats = { 0 };
  ref_program_run (&source, 2000, &stats);
  return 0;
}

#ifndef COOP_LIBFUZZER
static void
run_random (GRand *rand, size_t size)
{
  uint8_t *data = g_malloc (size + 1);
  /* runs of one byte beside noise: what a uniform generator never makes */
  for (size_t i = 0; i < size; i++)
    data[i] = i > 0 && g_rand_int_range (rand, 0, 4) == 0 ? data[i - 1]
                                                         : (uint8_t) g_rand_int_range (rand, 0, 256);
  LLVMFuzzerTestOneInput (data, size);
  g_free (data);
}

int
main (int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    {
      char *data;
      gsize size;
      if (!g_file_get_contents (argv[i], &data, &size, NULL))
        return 2;
      LLVMFuzzerTestOneInput ((const uint8_t *) data, size);
      g_free (data);
    }
  if (argc > 1)
    return 0;
  GRand *rand = g_rand_new_with_seed (20260101);
  for (unsigned i = 0; i < 200; i++)
    run_random (rand, i * 16);
  g_rand_free (rand);
  return 0;
}
#endif
