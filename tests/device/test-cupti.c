/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's records, hand-built: in any order, cut, dropped, of others; and a session that is refused. */
#include "device/cuda-cupti.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* ---- a CUPTI of our own -------------------------------------------------------------------------- */

static struct {
  CoopCuptiRequest request;
  CoopCuptiComplete complete;
  unsigned enabled, calls, fail_at, subscribed;
  int fail_code;
  uint32_t version;
  uint64_t pushed[8];
  unsigned depth;
  size_t dropped;
} fake;

static int
refused (void)
{
  return ++fake.calls == fake.fail_at ? fake.fail_code : 0;
}

static size_t
size_of (uint32_t kind)
{
  switch (kind)
    {
    case COOP_CUPTI_KERNEL: return 216;
    case COOP_CUPTI_EXTERNAL: return 24;
    case COOP_CUPTI_MEMCPY: return 96;
    case COOP_CUPTI_MEMSET: return 88;
    case COOP_CUPTI_MEMORY: return 128;
    case COOP_CUPTI_OVERHEAD: return 56;
    default: return 40;
    }
}

static int
next (uint8_t *buffer, size_t valid, void **record)
{
  uint8_t *at = *record;
  uint32_t kind;

  if (at != NULL)
    {
      memcpy (&kind, at, sizeof kind);
      at += size_of (kind);
    }
  else
    at = buffer;
  if (at >= buffer + valid)
    return COOP_CUPTI_NO_MORE;
  *record = at;
  return 0;
}

static int f_version (uint32_t *v) { *v = fake.version; return 0; }
static int f_subscribe (void **s, void *c, void *u) { int rc = refused (); if (rc == 0) { fake.subscribed++; *s = &fake; } return rc; }
static int f_unsubscribe (void *s) { fake.subscribed--; return 0; }
static int f_register (CoopCuptiRequest r, CoopCuptiComplete c) { fake.request = r; fake.complete = c; return refused (); }
static int f_enable (int kind) { int rc = refused (); fake.enabled += rc == 0; return rc; }
static int f_disable (int kind) { fake.enabled -= fake.enabled > 0; return 0; }
static int f_flush (uint32_t forced) { return 0; }
static int f_dropped (void *c, uint32_t s, size_t *n) { *n = fake.dropped; return 0; }
static int f_push (int kind, uint64_t id) { g_assert_cmpint (kind, ==, COOP_CUPTI_CUSTOM); fake.pushed[fake.depth++] = id; return 0; }
static int f_pop (int kind, uint64_t *last) { *last = fake.pushed[--fake.depth]; return 0; }

static const CoopCuptiTable table = { f_version, f_subscribe, f_unsubscribe, f_register, f_enable, f_disable,
                                      f_flush, next, f_dropped, f_push, f_pop };

/* ---- records ------------------------------------------------------------------------------------- */

typedef struct {
  uint8_t bytes[4096];
  size_t n;
} Buffer;

static uint8_t *
add (Buffer *b, uint32_t kind)
{
  uint8_t *at = b->bytes + b->n;

  memset (at, 0, size_of (kind));
  memcpy (at, &kind, sizeof kind);
  b->n += size_of (kind);
  return at;
}

static void
put (uint8_t *record, size_t at, uint64_t value, size_t bytes)
{
  memcpy (record + at, &value, bytes);
}

static void
add_kernel (Buffer *b, uint32_t correlation, uint64_t start, uint64_t end)
{
  uint8_t *r = add (b, COOP_CUPTI_KERNEL);
  put (r, 16, start, 8);
  put (r, 24, end, 8);
  put (r, 92, correlation, 4);
}

static void
add_external (Buffer *b, uint32_t kind, uint32_t correlation, uint64_t id)
{
  uint8_t *r = add (b, COOP_CUPTI_EXTERNAL);
  put (r, 4, kind, 4);
  put (r, 8, id, 8);
  put (r, 16, correlation, 4);
}

static void
sum (void *user, uint64_t external, uint64_t ns)
{
  uint64_t *times = user;
  g_assert_cmpuint (external, <, 8);
  times[external] += ns;
}

static void
test_kernels (void)
{
  uint64_t times[8] = { 0 };
  CoopCuptiBook *book = coop_cupti_book_new (sum, times);
  Buffer a = { .n = 0 }, b = { .n = 0 };

  add_external (&a, COOP_CUPTI_CUSTOM, 100, 1);
  add_kernel (&a, 100, 1000, 1500);
  add_kernel (&a, 101, 2000, 2100);                 /* its operator comes in the next buffer */
  add (&a, COOP_CUPTI_RUNTIME);
  add_external (&b, COOP_CUPTI_CUSTOM, 101, 2);
  add_external (&b, 3, 102, 7);                     /* the profiler's own id is not ours */
  add_kernel (&b, 102, 3000, 3300);
  add_external (&b, COOP_CUPTI_CUSTOM, 103, 1);     /* a second launch of operator 1 */
  add_kernel (&b, 103, 4000, 4070);
  add_kernel (&b, 103, 4100, 4103);                 /* two kernels of one launch */
  add_external (&b, COOP_CUPTI_CUSTOM, 104, 3);     /* a call that launched nothing */
  add_kernel (&b, 105, 0, 0);                       /* no timestamps */
  add_kernel (&b, 106, 500, 400);
  coop_cupti_book_buffer (book, &table, a.bytes, a.n);
  coop_cupti_book_buffer (book, &table, b.bytes, b.n);
  coop_cupti_book_buffer (book, &table, b.bytes, 0);
  g_assert_cmpuint (times[1], ==, 500 + 70 + 3);
  g_assert_cmpuint (times[2], ==, 100);
  g_assert_cmpuint (times[3] + times[7], ==, 0);
  g_assert_cmpuint (coop_cupti_book_totals (book)->kernels, ==, 7);
  g_assert_cmpuint (coop_cupti_book_totals (book)->kernel_ns, ==, 500 + 100 + 300 + 73);
  coop_cupti_book_free (book);
}

/* Many launches later the slot of an unclaimed kernel is taken, and it is counted as lost. */
static void
test_lost (void)
{
  uint64_t times[8] = { 0 };
  CoopCuptiBook *book = coop_cupti_book_new (sum, times);
  Buffer b = { .n = 0 };

  add_kernel (&b, 5, 100, 200);
  add_kernel (&b, 5 + 65536, 300, 400);
  add_external (&b, COOP_CUPTI_CUSTOM, 5 + 65536, 4);
  coop_cupti_book_buffer (book, &table, b.bytes, b.n);
  g_assert_cmpuint (times[4], ==, 100);
  g_assert_cmpuint (coop_cupti_book_totals (book)->lost, ==, 1);
  coop_cupti_book_free (book);
}

static void
test_others (void)
{
  CoopCuptiBook *book = coop_cupti_book_new (NULL, NULL);
  const CoopCuptiTotals *t = coop_cupti_book_totals (book);
  Buffer b = { .n = 0 };
  uint8_t *r = add (&b, COOP_CUPTI_MEMCPY);

  put (r, 8, 4096, 8);
  put (r, 16, 10, 8);
  put (r, 24, 35, 8);
  r = add (&b, COOP_CUPTI_MEMSET);
  put (r, 16, 100, 8);
  put (r, 24, 107, 8);
  r = add (&b, COOP_CUPTI_MEMORY);
  put (r, 4, 1, 4);
  put (r, 24, 1 << 20, 8);
  r = add (&b, COOP_CUPTI_MEMORY);
  put (r, 4, 2, 4);
  put (r, 24, 1 << 20, 8);
  r = add (&b, COOP_CUPTI_OVERHEAD);
  put (r, 24, 1000, 8);
  put (r, 32, 1900, 8);
  put (r, 48, (uint64_t) (uintptr_t) malloc (16), 8); /* the reader's to free */
  add (&b, 21);
  coop_cupti_book_buffer (book, &table, b.bytes, b.n);
  g_assert_cmpuint (t->copies, ==, 1);
  g_assert_cmpuint (t->copy_bytes, ==, 4096);
  g_assert_cmpuint (t->copy_ns, ==, 25);
  g_assert_cmpuint (t->set_ns, ==, 7);
  g_assert_cmpuint (t->allocs, ==, 1);
  g_assert_cmpuint (t->frees, ==, 1);
  g_assert_cmpuint (t->alloc_bytes, ==, 1 << 20);
  g_assert_cmpuint (t->overhead_ns, ==, 900);
  g_assert_cmpuint (t->unknown, ==, 1);
  coop_cupti_book_free (book);
}

/* ---- sessions ------------------------------------------------------------------------------------ */

static void
test_session (void)
{
  uint64_t times[8] = { 0 };
  CoopCuptiBook *book = coop_cupti_book_new (sum, times);
  char why[160];
  uint8_t *buffer;
  size_t bytes, most;
  Buffer b = { .n = 0 };

  memset (&fake, 0, sizeof fake);
  fake.version = 130001;
  coop_cupti_push (9); /* no session: nothing happens */
  g_assert_true (coop_cupti_start_with (&table, book, why));
  g_assert_cmpuint (fake.enabled, ==, 8);
  g_assert_false (coop_cupti_start_with (&table, book, why));
  coop_cupti_push (6);
  g_assert_cmpuint (fake.pushed[0], ==, 6);
  coop_cupti_pop ();
  g_assert_cmpuint (fake.depth, ==, 0);
  fake.request (&buffer, &bytes, &most);
  g_assert_nonnull (buffer);
  g_assert_cmpuint ((uintptr_t) buffer % 8, ==, 0);
  add_external (&b, COOP_CUPTI_CUSTOM, 1, 6);
  add_kernel (&b, 1, 10, 30);
  memcpy (buffer, b.bytes, b.n);
  fake.dropped = 3;
  fake.complete (NULL, 0, buffer, bytes, b.n);
  g_assert_cmpuint (times[6], ==, 20);
  g_assert_cmpuint (coop_cupti_book_totals (book)->dropped, ==, 3);
  coop_cupti_stop ();
  g_assert_cmpuint (fake.enabled + fake.subscribed, ==, 0);
  coop_cupti_stop ();
  fake.request (&buffer, &bytes, &most); /* a straggler after the end */
  memcpy (buffer, b.bytes, b.n);
  fake.complete (NULL, 0, buffer, bytes, b.n);
  g_assert_cmpuint (times[6], ==, 20);
  coop_cupti_book_free (book);
}

static void
test_refused (void)
{
  const struct { int code; const char *word; } answers[] = {
    { COOP_CUPTI_TAKEN, "profiler" }, { COOP_CUPTI_PRIVILEGES, "allowed" }, { COOP_CUPTI_UNKNOWN, "driver" },
    { 7, "(7)" } };
  CoopCuptiBook *book = coop_cupti_book_new (NULL, NULL);
  char why[160];

  for (unsigned i = 0; i < G_N_ELEMENTS (answers); i++)
    for (unsigned k = 1; k <= 10; k++) /* subscribe, register, eight kinds */
      {
        memset (&fake, 0, sizeof fake);
        fake.version = 130001;
        fake.fail_at = k;
        fake.fail_code = answers[i].code;
        g_assert_false (coop_cupti_start_with (&table, book, why));
        g_assert_nonnull (strstr (why, answers[i].word));
        g_assert_cmpuint (fake.enabled + fake.subscribed, ==, 0);
      }
  memset (&fake, 0, sizeof fake);
  fake.version = 120008;
  g_assert_false (coop_cupti_start_with (&table, book, why));
  g_assert_nonnull (strstr (why, "too old"));
  coop_cupti_book_free (book);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cupti/kernels", test_kernels);
  g_test_add_func ("/cupti/lost", test_lost);
  g_test_add_func ("/cupti/others", test_others);
  g_test_add_func ("/cupti/session", test_session);
  g_test_add_func ("/cupti/refused", test_refused);
  return g_test_run ();
}
