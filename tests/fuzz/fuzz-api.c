/* SPDX-License-Identifier: Apache-2.0 */
/* libcoop under programs that a fuzzer writes: each byte is a decision. Operators fill what they write
 * from a hash of what they read, plain memory holds what the bytes should be, and whatever the pool is
 * asked for, it is right or refused. What the engine's own target (fuzz-core.c) has no host for is here:
 * moving, budgets met at once, storages that are got and overwritten by hand.
 *
 *     sh tools/fuzz.sh api [SECONDS]     a real fuzzer, or
 *     fuzz-api [FILE...]                 runs the files; without any, random inputs of growing length
 */
#include <coop.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 24
#define MUST(condition)                                                                            \
  do                                                                                               \
    if (!(condition))                                                                              \
      {                                                                                            \
        fprintf (stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                           \
        abort ();                                                                                  \
      }                                                                                            \
  while (0)

typedef struct {
  CoopStorage *storage;
  unsigned char *shadow;
  size_t bytes;
  void *got;           /* between coop_get and coop_release */
  bool writing;
} Thing;

typedef struct {
  const uint8_t *data;
  size_t left;
  Coop *coop;
  const CoopOperator *op, *once;
  Thing thing[MOST + 8];
  unsigned n;
  void *block[4];
  bool fail;           /* the next run of an operator fails */
} Program;

typedef struct {
  uint64_t seed;
  unsigned n_in, n_out;
  uint8_t access[4];
} Toy;

static unsigned
pick (Program *p, unsigned below)
{
  if (p->left == 0)
    return 0;
  p->left--;
  return *p->data++ % below;
}

static void
fill (unsigned char *data, size_t n, uint64_t h)
{
  for (size_t i = 0; i < n; i++)
    {
      h = h * 6364136223846793005u + 1442695040888963407u;
      data[i] = (unsigned char) (h >> 56);
    }
}

static void
compute (const Toy *toy, void *const *in, const size_t *in_bytes, void *const *out, const size_t *out_bytes)
{
  uint64_t h = toy->seed;
  for (unsigned i = 0; i < toy->n_in; i++)
    for (size_t k = 0; toy->access[i] != COOP_SCRATCH && k < in_bytes[i]; k++)
      h = (h ^ ((unsigned char *) in[i])[k]) * 0x100000001b3u;
  for (unsigned i = 0; i < toy->n_out; i++)
    fill (out[i], out_bytes[i], h + i);
  for (unsigned i = 0; i < toy->n_in; i++)
    if (toy->access[i] != COOP_READ)
      fill (in[i], in_bytes[i], h + 100 + i);
}

static int
run_toy (const CoopWork *work)
{
  Program *p = work->user;
  if (p->fail)
    {
      p->fail = false;
      return 1;
    }
  if (work->workspace != NULL)
    memset (work->workspace, 0xee, work->workspace_bytes);
  compute (work->params, work->in, work->in_bytes, work->out, work->out_bytes);
  return 0;
}

static size_t
size (Program *p)
{
  return 1 + pick (p, 64) * 97 + pick (p, 256);
}

static void
keep (Program *p, CoopStorage *storage, unsigned char *shadow, size_t bytes)
{
  p->thing[p->n++] = (Thing) { storage, shadow, bytes, NULL, false };
}

static void
release (Thing *t)
{
  if (t->got == NULL)
    return;
  MUST (memcmp (t->got, t->shadow, t->bytes) == 0);
  coop_release (t->storage);
  t->got = NULL;
}

static void
drop (Program *p, unsigned i)
{
  release (&p->thing[i]);
  coop_drop (p->thing[i].storage);
  free (p->thing[i].shadow);
  p->thing[i] = p->thing[--p->n];
}

static void
get (Program *p, Thing *t, bool write)
{
  if (t->got != NULL)
    {
      release (t);
      return;
    }
  if (coop_get (t->storage, write ? COOP_WRITE : COOP_READ, &t->got) != COOP_DONE)
    return;
  MUST (memcmp (t->got, t->shadow, t->bytes) == 0);
  t->writing = write;
  if (write)
    {
      fill (t->got, t->bytes, p->left);
      fill (t->shadow, t->bytes, p->left);
    }
}

static void
make (Program *p)
{
  size_t bytes = size (p);
  unsigned char *shadow = malloc (bytes);
  CoopStorage *s;
  fill (shadow, bytes, p->left);
  if (coop_storage_new (p->coop, bytes, shadow, pick (p, 2) ? COOP_STATE : 0, &s) == COOP_DONE)
    keep (p, s, shadow, bytes);
  else
    free (shadow);
}

static bool
is_among (const unsigned *from, unsigned n, unsigned i)
{
  for (unsigned k = 0; k < n; k++)
    if (from[k] == i)
      return true;
  return false;
}

/* At most one is written, and that one stands there once: what aliases mean is the caller's business. */
static unsigned
choose_inputs (Program *p, Toy *toy, CoopIn *in, unsigned *from)
{
  unsigned written = MOST + 8, n = 0;
  for (unsigned left = p->n > 0 ? pick (p, 4) : 0; left > 0; left--)
    {
      unsigned i = pick (p, p->n), what = pick (p, 8);
      Thing *t = &p->thing[i];
      if (i == written)
        continue;
      if (t->got != NULL && t->writing)
        release (t);
      bool may = t->got == NULL && written == MOST + 8 && !is_among (from, n, i);
      toy->access[n] = may && what < 2 ? COOP_WRITE : may && what < 3 ? COOP_SCRATCH : COOP_READ;
      if (toy->access[n] != COOP_READ)
        written = i;
      in[n] = (CoopIn) { t->storage, (CoopAccess) toy->access[n] };
      from[n++] = i;
    }
  return n;
}

static void
run (Program *p)
{
  Toy toy = { .seed = p->left, .n_out = pick (p, 3) };
  CoopIn in[4];
  CoopStorage *out[2];
  unsigned from[4];
  size_t out_bytes[2] = { size (p), size (p) }, in_bytes[4];
  void *shadow_in[4], *shadow_out[2];
  toy.n_in = choose_inputs (p, &toy, in, from);
  CoopArgs args = { .in = in, .n_in = toy.n_in, .out_bytes = out_bytes, .n_out = toy.n_out,
                    .workspace = pick (p, 4) == 0 ? size (p) : 0, .params = &toy, .params_bytes = sizeof toy };
  bool writes = false;
  for (unsigned i = 0; i < toy.n_in; i++)
    writes |= toy.access[i] != COOP_READ;
  p->fail = !writes && pick (p, 16) == 0;
  CoopResult result = coop_run (p->coop, pick (p, 16) == 0 ? p->once : p->op, &args, out);
  p->fail = false;
  MUST (result == COOP_DONE || result == COOP_FAILED_MEMORY || result == COOP_FAILED_OPERATOR);
  if (result != COOP_DONE)
    return;
  for (unsigned i = 0; i < toy.n_in; i++)
    {
      shadow_in[i] = p->thing[from[i]].shadow;
      in_bytes[i] = p->thing[from[i]].bytes;
    }
  for (unsigned i = 0; i < toy.n_out; i++)
    shadow_out[i] = malloc (out_bytes[i]);
  compute (&toy, shadow_in, in_bytes, shadow_out, out_bytes);
  for (unsigned i = 0; i < toy.n_out; i++)
    keep (p, out[i], shadow_out[i], out_bytes[i]);
}

static void
plain (Program *p)
{
  unsigned i = pick (p, 4);
  size_t bytes = size (p);
  coop_free (p->coop, p->block[i]);
  p->block[i] = coop_alloc (p->coop, bytes);
  if (p->block[i] != NULL)
    memset (p->block[i], 0x77, bytes);
}

static void
turn (Program *p)
{
  static const char *const turns[][2] = {
    { "budget", "40000" }, { "budget", "24000" }, { "budget", "90000" }, { "budget", "0" },
    { "budget", "64KiB" }, { "preset", "coop" }, { "preset", "lru" }, { "preset", "dtr-eq" },
    { "preset", "none" }, { "groups", "1" }, { "groups", "2" }, { "hold", "0" }, { "hold", "4096" },
    { "stress", "0" }, { "stress", "2" }, { "compact", "0" }, { "compact", "1" }, { "chain", "exact" },
    { "chain", "union" }, { "verify", "1" }
  };
  unsigned i = pick (p, sizeof turns / sizeof *turns);
  MUST (coop_set (p->coop, turns[i][0], turns[i][1]) == COOP_DONE);
}

static void
step (Program *p)
{
  unsigned what = pick (p, 32);
  if (p->n >= MOST || (what < 6 && p->n > 0))
    drop (p, pick (p, p->n));
  else if (what < 20)
    run (p);
  else if (what < 24 && p->n > 0)
    get (p, &p->thing[pick (p, p->n)], false);
  else if (what == 24 && p->n > 0)
    get (p, &p->thing[pick (p, p->n)], true);
  else if (what == 25 && p->n > 0)
    coop_keep (p->thing[pick (p, p->n)].storage);
  else if (what == 26)
    make (p);
  else if (what == 27)
    plain (p);
  else if (what == 28)
    turn (p);
  else
    coop_part (p->coop, (CoopPart) pick (p, 4));
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t bytes);

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t bytes)
{
  Program p = { .data = data, .left = bytes };
  static const char *const policy[] = { "budget", "40000", "cost", "model", "small", "0", NULL };
  static const char *const areas[] = { "budget", "90000", "cost", "model", "small", "600", NULL };
  CoopOptions options = { .capacity = 100352, .policy = pick (&p, 4) == 0 ? areas : policy, .alone = true };
  CoopStats stats;
  MUST (coop_new (&options, &p.coop) == COOP_DONE);
  p.op = coop_operator (p.coop, &(CoopOperatorInfo) { "toy", run_toy, &p, false, false });
  p.once = coop_operator (p.coop, &(CoopOperatorInfo) { "once", run_toy, &p, true, true });
  for (unsigned i = 0; i < 2000 && p.left > 0; i++)
    {
      step (&p);
      const char *wrong = coop_check (p.coop);
      MUST (wrong == NULL);
    }
  for (unsigned i = 0; i < 4; i++)
    coop_free (p.coop, p.block[i]);
  while (p.n > 0)
    drop (&p, 0);
  coop_stats (p.coop, &stats);
  MUST (stats.live == 0 && stats.evicted == 0);
  coop_destroy (p.coop);
  return 0;
}

#ifndef COOP_LIBFUZZER
static uint32_t
next_random (uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static void
run_file (const char *path)
{
  static uint8_t data[1 << 20];
  FILE *file = fopen (path, "rb");
  MUST (file != NULL);
  LLVMFuzzerTestOneInput (data, fread (data, 1, sizeof data, file));
  fclose (file);
}

int
main (int argc, char **argv)
{
  static uint8_t data[8192];
  uint32_t state = 20260101;
  for (int i = 1; i < argc; i++)
    run_file (argv[i]);
  for (unsigned i = 0; argc == 1 && i < 300; i++)
    {
      /* runs of one byte beside noise: what a uniform generator never makes */
      for (unsigned k = 0; k < i * 16; k++)
        data[k] = k > 0 && next_random (&state) % 4 == 0 ? data[k - 1] : (uint8_t) next_random (&state);
      LLVMFuzzerTestOneInput (data, i * 16);
    }
  return 0;
}
#endif
