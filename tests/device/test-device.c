/* SPDX-License-Identifier: Apache-2.0 */
/* The arena keeps fork's meaning and gives pages back; the shadow names owners, reuses ranges, and
 * never hands out one address twice. */
#include <glib.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"

#define MIB ((guint64) 1 << 20)

/* Arenas live as long as the process; the leak checker finds them here. */
static CoopArena *arenas[8];
static guint n_arenas;

static CoopArena *
arena_new (guint64 capacity)
{
  CoopArena *arena = coop_arena_new (capacity);
  g_assert_nonnull (arena);
  arenas[n_arenas++] = arena;
  return arena;
}

static void
test_arena_offsets (void)
{
  CoopArena *arena = arena_new (10 * MIB + 1);
  char *base = coop_arena_addr (arena, 0);
  g_assert_cmpuint (coop_arena_offset (arena, base), ==, 0);
  g_assert_cmpuint (coop_arena_offset (arena, base + 10 * MIB), ==, 10 * MIB);
  g_assert_cmpuint (coop_arena_offset (arena, base - 1), ==, G_MAXUINT64);
  g_assert_cmpuint (coop_arena_offset (arena, base + 10 * MIB + 4096), ==, G_MAXUINT64);
  g_assert_cmpuint (coop_arena_offset (arena, &base), ==, G_MAXUINT64);
  g_assert_true (coop_arena_addr (arena, 12345) == base + 12345);
}

static void
test_arena_trim (void)
{
  CoopArena *arena = arena_new (64 * MIB);
  char *base = coop_arena_addr (arena, 0);
  g_assert_cmpuint (coop_arena_resident (arena), ==, 0);
  memset (base, 7, 8 * MIB);
  g_assert_cmpuint (coop_arena_resident (arena), >=, 8 * MIB);
  coop_arena_trim (arena, 100, 4 * MIB);   /* ends inside two pages, which stay */
  g_assert_cmpint (base[100], ==, 7);
  g_assert_cmpint (base[4095], ==, 7);
  g_assert_cmpint (base[4096], ==, 0);
  g_assert_cmpint (base[4 * MIB - 1], ==, 0);
  g_assert_cmpint (base[4 * MIB], ==, 7);
  coop_arena_trim (arena, 0, G_MAXUINT64);
  g_assert_cmpuint (coop_arena_resident (arena), ==, 0);
  coop_arena_trim (arena, 65 * MIB, 1);    /* outside: nothing */
}

static void
test_arena_huge (void)
{
  CoopArena *arena = arena_new (256 * 1024 * MIB);
  char *last = coop_arena_addr (arena, 256 * 1024 * MIB - 1);
  *last = 1;
  g_assert_cmpuint (coop_arena_resident (arena), <=, 2 * MIB);
  g_assert_null (coop_arena_new (G_MAXUINT64 / 2));
}

static void
test_arena_fork (void)
{
  CoopArena *arena = arena_new (MIB);
  int *word = coop_arena_addr (arena, 512);
  *word = 1;
  pid_t pid = fork ();
  if (pid == 0)
    {
      *word = 2;
      _exit (*word);
    }
  int status = 0;
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_cmpint (WEXITSTATUS (status), ==, 2);
  g_assert_cmpint (*word, ==, 1);
}

static void
test_shadow_owner (void)
{
  CoopShadow *shadow = coop_shadow_new ();
  int a = 0, b = 0;
  char *pa = coop_shadow_take (shadow, 1000, &a), *pb = coop_shadow_take (shadow, 3 * MIB, &b);
  void *base = NULL;
  g_assert_true (coop_shadow_owner (shadow, pa, &base) == &a && base == pa);
  g_assert_true (coop_shadow_owner (shadow, pa + 999, &base) == &a && base == pa);
  g_assert_true (coop_shadow_owner (shadow, pb + 3 * MIB - 1, &base) == &b && base == pb);
  g_assert_null (coop_shadow_owner (shadow, &a, NULL));
  g_assert_null (coop_shadow_owner (shadow, NULL, NULL));
  g_assert_null (coop_shadow_give (shadow, pa + 1));
  g_assert_true (coop_shadow_give (shadow, pa) == &a);
  g_assert_null (coop_shadow_owner (shadow, pa, NULL));
  g_assert_null (coop_shadow_give (shadow, pa));
  g_assert_true (coop_shadow_take (shadow, 1000, &b) == pa);   /* reused */
  g_assert_null (coop_shadow_take (shadow, (guint64) 1 << 50, &a));
  g_assert_null (coop_shadow_take (shadow, 8, NULL));
}

static void
test_shadow_untouchable (void)
{
  if (g_test_subprocess ())
    {
      int owner = 0;
      CoopShadow *shadow = coop_shadow_new ();
      volatile char *p = coop_shadow_take (shadow, 4096, &owner);
      signal (SIGSEGV, SIG_DFL);
      p[17] = 1;
      exit (0);
    }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_failed ();
}

/* The mapping that holds pointer, as the kernel sees it. */
static void
find_mapping (const void *pointer, char **begin, char **end)
{
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents ("/proc/self/maps", &text, NULL, NULL));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (int i = 0; lines[i] != NULL; i++)
    {
      char mode[8];
      if (sscanf (lines[i], "%p-%p %7s", (void **) begin, (void **) end, mode) == 3
          && (const char *) pointer >= *begin && (const char *) pointer < *end)
        {
          g_assert_cmpstr (mode, ==, "---p");
          return;
        }
    }
  g_assert_not_reached ();
}

/* One mapping, whatever the number of ranges. */
static void
test_shadow_mappings (void)
{
  CoopShadow *shadow = coop_shadow_new ();
  int owner = 0;
  char *begin = NULL, *end = NULL;
  find_mapping (coop_shadow_take (shadow, 4096, &owner), &begin, &end);
  for (int i = 0; i < 200000; i++)
    {
      char *p = coop_shadow_take (shadow, 1 + (guint64) i % 20000, &owner);
      g_assert_true (p >= begin && p < end);
    }
  find_mapping (begin, &begin, &end);
}

typedef struct {
  char *begin;
  guint64 bytes;
  gint64 name;   /* its address is the owner */
} Range;

static int
by_begin (const void *a, const void *b)
{
  const Range *const *x = a, *const *y = b;
  return (*x)->begin < (*y)->begin ? -1 : (*x)->begin > (*y)->begin;
}

static void
assert_disjoint (GPtrArray *live)
{
  g_ptr_array_sort (live, by_begin);
  for (guint i = 1; i < live->len; i++)
    {
      Range *a = live->pdata[i - 1], *b = live->pdata[i];
      g_assert_true (a->begin + a->bytes <= b->begin);
    }
}

/* Random takes and gives against a list: ranges never overlap and every inner address names its owner. */
static void
test_shadow_random (void)
{
  CoopShadow *shadow = coop_shadow_new ();
  g_autoptr (GPtrArray) live = g_ptr_array_new_with_free_func (g_free);
  for (int i = 0; i < 60000; i++)
    {
      if (live->len == 0 || g_test_rand_int_range (0, 100) < 52)
        {
          Range *r = g_new0 (Range, 1);
          r->bytes = 1 + (guint64) pow (2, g_test_rand_double_range (0, 29));
          r->begin = coop_shadow_take (shadow, r->bytes, &r->name);
          g_assert_nonnull (r->begin);
          g_assert_cmpuint ((gsize) r->begin % 64, ==, 0);
          g_ptr_array_add (live, r);
        }
      else
        {
          guint at = (guint) g_test_rand_int_range (0, (gint32) live->len);
          Range *r = live->pdata[at];
          void *base = NULL;
          char *inside = r->begin + (guint64) g_test_rand_double_range (0, (double) r->bytes - 1);
          g_assert_true (coop_shadow_owner (shadow, inside, &base) == &r->name);
          g_assert_true (base == r->begin);
          g_assert_true (coop_shadow_give (shadow, r->begin) == &r->name);
          g_ptr_array_remove_index_fast (live, at);
        }
      if (i % 5000 == 0)
        assert_disjoint (live);
    }
  assert_disjoint (live);
}

/* Pages change places at random, as the allocator moves them: every byte goes along, and what they left
 * is empty. */
static void
test_pages_move (void)
{
  enum { PAGE = 65536, N = 64 };
  CoopArena *arena = coop_arena_new (2 * N * PAGE);
  CoopPages *pages = coop_pages_new (arena, PAGE);
  CoopPagesCount count;
  int at[N], owner[2 * N];
  memset (owner, -1, sizeof owner);
  for (int i = 0; i < N; i++)
    {
      at[i] = i;
      owner[i] = i;
      memset (coop_arena_addr (arena, (guint64) i * PAGE), i + 1, PAGE);
    }
  for (int step = 0; step < 2000; step++)
    {
      int i = g_test_rand_int_range (0, N), to = g_test_rand_int_range (0, 2 * N);
      if (owner[to] >= 0)
        continue;
      g_assert_true (coop_pages_move (pages, (guint64) at[i] * PAGE, (guint64) to * PAGE, PAGE));
      owner[at[i]] = -1;
      owner[to] = i;
      at[i] = to;
    }
  for (int p = 0; p < 2 * N; p++)
    for (int b = 0; b < PAGE; b += 4096)
      g_assert_cmpint (((guint8 *) coop_arena_addr (arena, (guint64) p * PAGE))[b], ==, owner[p] + 1);
  /* several at once, from as many mappings */
  int lo = 0;
  while (owner[lo] < 0 || owner[lo + 1] < 0)
    lo++;
  guint8 first = *(guint8 *) coop_arena_addr (arena, (guint64) lo * PAGE);
  int hi = 0;
  while (owner[hi] >= 0 || owner[hi + 1] >= 0)
    hi++;
  g_assert_true (coop_pages_move (pages, (guint64) lo * PAGE, (guint64) hi * PAGE, 2 * PAGE));
  g_assert_cmpint (*(guint8 *) coop_arena_addr (arena, (guint64) hi * PAGE), ==, first);
  coop_pages_count (pages, &count);
  g_assert_cmpuint (count.refused, ==, 0);
  g_assert_cmpuint (count.bytes % PAGE, ==, 0);
  g_assert_cmpuint (count.ns, >, 0);
  coop_pages_free (pages);
}

/* Where mappings run short the page is given back, not moved; the process keeps what it needs. */
static void
test_pages_limit (void)
{
  enum { PAGE = 4096, N = 256 };
  CoopArena *arena = coop_arena_new (2 * N * PAGE);
  CoopPages *pages = coop_pages_new (arena, PAGE);
  CoopPagesCount count;
  coop_pages_limit (pages, 8);   /* this process has more already */
  memset (coop_arena_addr (arena, 0), 7, PAGE);
  g_assert_false (coop_pages_move (pages, 0, (guint64) N * PAGE, PAGE));
  g_assert_cmpint (*(guint8 *) coop_arena_addr (arena, 0), ==, 0);
  g_assert_cmpint (*(guint8 *) coop_arena_addr (arena, (guint64) N * PAGE), ==, 0);
  coop_pages_count (pages, &count);
  g_assert_cmpuint (count.refused, ==, 1);
  g_assert_cmpuint (count.moves, ==, 0);
  coop_pages_free (pages);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/arena/offsets", test_arena_offsets);
  g_test_add_func ("/arena/trim", test_arena_trim);
  g_test_add_func ("/arena/huge", test_arena_huge);
  g_test_add_func ("/arena/fork", test_arena_fork);
  g_test_add_func ("/pages/move", test_pages_move);
  g_test_add_func ("/pages/limit", test_pages_limit);
  g_test_add_func ("/shadow/owner", test_shadow_owner);
  g_test_add_func ("/shadow/untouchable", test_shadow_untouchable);
  g_test_add_func ("/shadow/mappings", test_shadow_mappings);
  g_test_add_func ("/shadow/random", test_shadow_random);
  return g_test_run ();
}
