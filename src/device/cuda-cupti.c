/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI: loading, one session, and the reading of its records. See cuda-cupti.h. */
#include "device/cuda-cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST 130000u            /* below, records are laid out in another way */
#define BUFFER_BYTES ((size_t) 1 << 20)
#define SLOTS 65536u              /* launches of which one half is known; power of two */

/* ---- records ------------------------------------------------------------------------------------ */

/* Where the fields of CUPTI 13's records lie; tests/device/test-cupti-abi.c compares. */
enum {
  KERNEL_START = 16, KERNEL_END = 24, KERNEL_CORRELATION = 92,
  COPY_BYTES = 8, COPY_START = 16, COPY_END = 24, COPY_CORRELATION = 44,
  EXTERNAL_KIND = 4, EXTERNAL_ID = 8, EXTERNAL_CORRELATION = 16,
  MEMORY_OPERATION = 4, MEMORY_BYTES = 24,
  OVERHEAD_START = 24, OVERHEAD_END = 32, OVERHEAD_DATA = 48
};

/* A launch: its kernel's time and its operator come in either order. */
typedef struct {
  uint32_t correlation;
  bool has_external, has_time;
  uint64_t external, ns;
} Launch;

struct CoopCuptiBook {
  CoopCuptiSink sink;
  void *user;
  CoopCuptiTotals totals;
  Launch launch[SLOTS];
};

CoopCuptiBook *
coop_cupti_book_new (CoopCuptiSink sink, void *user)
{
  CoopCuptiBook *book = calloc (1, sizeof *book);

  if (book != NULL)
    {
      book->sink = sink;
      book->user = user;
    }
  return book;
}

void
coop_cupti_book_free (CoopCuptiBook *book)
{
  free (book);
}

const CoopCuptiTotals *
coop_cupti_book_totals (const CoopCuptiBook *book)
{
  return &book->totals;
}

static uint32_t
u32 (const uint8_t *record, unsigned at)
{
  uint32_t v;
  memcpy (&v, record + at, sizeof v);
  return v;
}

static uint64_t
u64 (const uint8_t *record, unsigned at)
{
  uint64_t v;
  memcpy (&v, record + at, sizeof v);
  return v;
}

/* Ends before they begin: timestamps that CUPTI could not take are zero. */
static uint64_t
span (const uint8_t *record, unsigned start, unsigned end)
{
  uint64_t a = u64 (record, start), b = u64 (record, end);
  return a == 0 || b < a ? 0 : b - a;
}

/* Correlation ids count up, so the slot of one is taken over by a much later one. */
static Launch *
launch_of (CoopCuptiBook *book, uint32_t correlation)
{
  Launch *l = &book->launch[correlation & (SLOTS - 1)];

  if (l->correlation != correlation)
    {
      book->totals.lost += l->has_time;
      *l = (Launch){ .correlation = correlation };
    }
  return l;
}

static void
settle (CoopCuptiBook *book, Launch *l)
{
  if (!l->has_external || !l->has_time)
    return;
  if (book->sink != NULL)
    book->sink (book->user, l->external, l->ns);
  l->has_time = false; /* an operator's launch may have more than one kernel: the id stays */
}

static void
enter_kernel (CoopCuptiBook *book, const uint8_t *r)
{
  Launch *l = launch_of (book, u32 (r, KERNEL_CORRELATION));

  book->totals.kernels++;
  book->totals.kernel_ns += span (r, KERNEL_START, KERNEL_END);
  l->ns = span (r, KERNEL_START, KERNEL_END) + (l->has_time ? l->ns : 0);
  l->has_time = true;
  settle (book, l);
}

static void
enter_record (CoopCuptiBook *book, const uint8_t *r)
{
  CoopCuptiTotals *t = &book->totals;
  Launch *l;

  switch (u32 (r, 0))
    {
    case COOP_CUPTI_KERNEL:
      enter_kernel (book, r);
      break;
    case COOP_CUPTI_EXTERNAL:
      if (u32 (r, EXTERNAL_KIND) != COOP_CUPTI_CUSTOM)
        break; /* PyTorch's profiler's */
      l = launch_of (book, u32 (r, EXTERNAL_CORRELATION));
      l->external = u64 (r, EXTERNAL_ID);
      l->has_external = true;
      settle (book, l);
      break;
    case COOP_CUPTI_MEMCPY:
      t->copies++;
      t->copy_bytes += u64 (r, COPY_BYTES);
      t->copy_ns += span (r, COPY_START, COPY_END);
      break;
    case COOP_CUPTI_MEMSET:
      t->sets++;
      t->set_ns += span (r, COPY_START, COPY_END);
      break;
    case COOP_CUPTI_MEMORY:
      t->allocs += u32 (r, MEMORY_OPERATION) == 1;
      t->frees += u32 (r, MEMORY_OPERATION) == 2;
      t->alloc_bytes += u32 (r, MEMORY_OPERATION) == 1 ? u64 (r, MEMORY_BYTES) : 0;
      break;
    case COOP_CUPTI_OVERHEAD:
      t->overhead_ns += span (r, OVERHEAD_START, OVERHEAD_END);
      free ((void *) (uintptr_t) u64 (r, OVERHEAD_DATA)); /* it is the reader's */
      break;
    case COOP_CUPTI_RUNTIME:
    case COOP_CUPTI_DRIVER:
      break; /* switched on for the correlation alone */
    default:
      t->unknown++;
    }
}

void
coop_cupti_book_buffer (CoopCuptiBook *book, const CoopCuptiTable *table, uint8_t *buffer, size_t valid)
{
  void *record = NULL;

  while (valid > 0 && table->next (buffer, valid, &record) == COOP_CUPTI_OK)
    enter_record (book, record);
}

/* ---- the session -------------------------------------------------------------------------------- */

static const char *const symbols[] = {
#define X(member, symbol, arguments) #symbol,
  COOP_CUPTI_FUNCTIONS (X)
#undef X
};

static const int kinds[] = { COOP_CUPTI_EXTERNAL, COOP_CUPTI_RUNTIME, COOP_CUPTI_DRIVER, COOP_CUPTI_MEMCPY,
                             COOP_CUPTI_MEMSET, COOP_CUPTI_MEMORY, COOP_CUPTI_OVERHEAD, COOP_CUPTI_KERNEL };
#define N_KINDS (sizeof kinds / sizeof *kinds)

/* The one piece of state outside of an object: the completion callback is given none. */
static struct {
  pthread_mutex_t lock;
  CoopCuptiTable table;
  CoopCuptiBook *book;             /* NULL: no session */
  void *subscriber;
} session = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
on_request (uint8_t **buffer, size_t *bytes, size_t *most)
{
  *buffer = aligned_alloc (8, BUFFER_BYTES);
  *bytes = *buffer ? BUFFER_BYTES : 0;
  *most = 0;
}

static void
on_complete (void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
  size_t dropped = 0;

  pthread_mutex_lock (&session.lock);
  if (session.book != NULL)
    {
      coop_cupti_book_buffer (session.book, &session.table, buffer, valid);
      if (session.table.dropped (context, stream, &dropped) == COOP_CUPTI_OK)
        session.book->totals.dropped += dropped;
    }
  pthread_mutex_unlock (&session.lock);
  free (buffer);
}

static bool
refuse (char why[160], const char *what, int code)
{
  if (code == COOP_CUPTI_TAKEN)
    snprintf (why, 160, "a profiler has CUPTI (torch.profiler, Nsight): one at a time");
  else if (code == COOP_CUPTI_PRIVILEGES)
    snprintf (why, 160, "CUPTI is not allowed to this user");
  else if (code == COOP_CUPTI_UNKNOWN)
    snprintf (why, 160, "CUPTI does not answer (no driver?)");
  else
    snprintf (why, 160, "CUPTI: %s (%d)", what, code);
  return false;
}

bool
coop_cupti_start_with (const CoopCuptiTable *table, CoopCuptiBook *book, char why[160])
{
  uint32_t version = 0;
  int rc = table->version (&version);

  if (rc != 0 || version < OLDEST)
    return refuse (why, "too old for this", (int) version);
  if (session.book != NULL)
    return refuse (why, "in use already", 0);
  /* Without a callback of its own it claims CUPTI: that is how profilers see each other. */
  if ((rc = table->subscribe (&session.subscriber, NULL, NULL)) != 0)
    return refuse (why, "cannot be claimed", rc);
  pthread_mutex_lock (&session.lock);
  session.table = *table;
  session.book = book;
  pthread_mutex_unlock (&session.lock);
  rc = table->register_callbacks (on_request, on_complete);
  for (size_t i = 0; rc == 0 && i < N_KINDS; i++)
    rc = table->enable (kinds[i]);
  if (rc == 0)
    return true;
  coop_cupti_stop ();
  return refuse (why, "records cannot be switched on", rc);
}

bool
coop_cupti_start (CoopCuptiBook *book, char why[160])
{
  /* The copy that is in the process already: a second one would be another CUPTI. */
  void *library = dlopen ("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD), *f;
  CoopCuptiTable table;

  if (library == NULL)
    library = dlopen ("libcupti.so.13", RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL)
    {
      snprintf (why, 160, "libcupti.so.13 is not there");
      return false;
    }
  _Static_assert (sizeof table == sizeof symbols, "one pointer a symbol");
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    {
      if ((f = dlsym (library, symbols[i])) == NULL)
        {
          snprintf (why, 160, "libcupti.so.13 has no %s", symbols[i]);
          return false;
        }
      memcpy ((char *) &table + i * sizeof f, &f, sizeof f);
    }
  return coop_cupti_start_with (&table, book, why);
}

void
coop_cupti_stop (void)
{
  if (session.book == NULL)
    return;
  for (size_t i = 0; i < N_KINDS; i++)
    session.table.disable (kinds[i]);
  session.table.flush (1);
  pthread_mutex_lock (&session.lock);
  session.book = NULL;
  pthread_mutex_unlock (&session.lock);
  session.table.unsubscribe (session.subscriber);
}

void
coop_cupti_push (uint64_t external)
{
  if (session.book != NULL)
    session.table.push (COOP_CUPTI_CUSTOM, external);
}

void
coop_cupti_pop (void)
{
  uint64_t last;

  if (session.book != NULL)
    session.table.pop (COOP_CUPTI_CUSTOM, &last);
}

void
coop_cupti_flush (void)
{
  if (session.book != NULL)
    session.table.flush (0);
}
