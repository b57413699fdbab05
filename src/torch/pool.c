/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: the lock, the engine behind it, and the way of its events into the ring. */
#include "torch/cuda.h"
#include "torch/quiet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RING_MARGIN (256u << 10) /* bytes that one decision may emit */

CoopProcess coop = { .lock = PTHREAD_MUTEX_INITIALIZER };
_Thread_local CoopThread coop_thread;

static struct {
  CoopMeta *meta;
  unsigned n_meta;
  CoopPolicy policy;
  uint32_t source[COOP_N_PARAMS];
  _Atomic unsigned threads;
  CoopPages *pages;   /* NULL: no segments */
  bool said_pages;
} pool;

static unsigned
thread_number (void)
{
  CoopThread *t = &coop_thread;

  if (t->number == 0)
    t->number = getpid () == gettid () ? 1 : 2 + atomic_fetch_add (&pool.threads, 1);
  return t->number - 1;
}

void
coop_tell (CoopEvent *ev, const void *body)
{
  if (coop.wire == NULL || coop.wire_ended)
    return;
  ev->ts = coop_now () - coop.start_ns;
  ev->thread = thread_number ();
  if (!coop_ring_push (coop.wire, ev, body))
    atomic_fetch_add_explicit (&coop.dropped, 1, memory_order_relaxed);
}

static void
sink (void *user, CoopEvent *ev, const void *body)
{
  coop_tell (ev, body);
}

void
coop_tell_text (CoopEvent *ev, const char *text)
{
  char body[1024] = "";
  size_t n = strlen (text);

  if (n > sizeof body)
    n = sizeof body;
  memcpy (body, text, n);
  ev->more = (uint16_t) ((n + COOP_RECORD_BYTES - 1) / COOP_RECORD_BYTES);
  coop_tell (ev, body);
}

static void
emit_meta (const CoopMeta *meta)
{
  CoopEvent ev = { .kind = COOP_EVENT_META };
  char text[sizeof meta->key + sizeof meta->value];

  ev.u.meta.key_bytes = strlen (meta->key);
  ev.u.meta.value_bytes = strlen (meta->value);
  snprintf (text, sizeof text, "%s%s", meta->key, meta->value);
  coop_tell_text (&ev, text);
}

static uint64_t
engine_now (void *user)
{
  return coop_now ();
}

bool
coop_pool_prepare (CoopWire *wire, const CoopPolicy *policy, const CoopMeta *meta, unsigned n)
{
  pool.meta = malloc (n * sizeof *meta + 1);
  if (pool.meta == NULL)
    {
      PyErr_NoMemory ();
      return false;
    }
  memcpy (pool.meta, meta, n * sizeof *meta);
  pool.n_meta = n;
  pool.policy = *policy;
  coop.wire = wire;
  if (wire != NULL)
    atomic_store (&coop.generation, coop_control_read (wire, &pool.policy, pool.source));
  coop.local = coop.policy = pool.policy;
  return true;
}

/* Address space for the largest budget anybody may set while it runs. */
static uint64_t
capacity_for (uint64_t budget)
{
  uint64_t memory = coop_host_memory ();
  uint64_t capacity = memory ? 4 * memory : (uint64_t) 1 << 38;

  if (budget > capacity)
    capacity = budget;
  return (capacity + 511) & ~(uint64_t) 511;
}

/* ---- memory in segments ------------------------------------------------------------------- */

static void
unmap (void *user, uint64_t addr, uint64_t bytes)
{
  coop_arena_trim (coop.arena, addr, bytes);
}

static void
remap (void *user, uint64_t from, uint64_t to, uint64_t bytes)
{
  if (!coop_pages_move (pool.pages, from, to, bytes) && !pool.said_pages)
    {
      pool.said_pages = true;
      fprintf (stderr, "coopscope: this process has too many mappings to move more pages; they are given "
                       "back and taken anew. Larger pages (--set page=SIZE) need fewer.\n");
    }
}

/* The pages of allocator page are the system's, or several of them. */
static bool
begin_pages (CoopEngineOptions *options)
{
  uint64_t system = (uint64_t) sysconf (_SC_PAGESIZE), page = (uint64_t) pool.policy.v[COOP_PARAM_PAGE].i;

  page = (page + system - 1) / system * system;
  options->policy.v[COOP_PARAM_PAGE].i = (int64_t) page;
  options->backing = (CoopBacking){ .unmap = unmap, .remap = remap };
  pool.pages = coop_pages_new (coop.arena, page);
  return pool.pages != NULL;
}

static bool
begin (void)
{
  CoopEngineOptions options = { .policy = pool.policy, .source = pool.source, .sink = { .emit = sink },
                                .now = engine_now };
  bool segmented = pool.policy.v[COOP_PARAM_ALLOCATOR].i != COOP_ALLOCATOR_MERGE;

  coop.start_ns = coop_now ();
  if (coop.wire != NULL && coop_wire_claim (coop.wire) != COOP_WIRE_OK)
    return false;
  uint64_t budget = (uint64_t) pool.policy.v[COOP_PARAM_BUDGET].i;
  const char *why = NULL;
  options.capacity = capacity_for (budget);
  if (coop.cuda && segmented)
    {
      fprintf (stderr, "coopscope: on a GPU there is allocator merge only; memory is not managed\n");
      return false;
    }
  if (coop.arena == NULL)
    coop.arena = coop.cuda ? coop_cuda_arena (budget, &options.capacity, &why)
                           : coop_arena_new (options.capacity);
  if (coop.shadow == NULL)
    coop.shadow = coop_shadow_new ();
  if (coop.arena == NULL || coop.shadow == NULL)
    {
      fprintf (stderr, "coopscope: no memory for the pool (%s); nothing is managed, and no budget is kept\n",
               why ? why : strerror (errno));
      return false;
    }
  if (segmented && !begin_pages (&options))
    return false;
  for (unsigned i = 0; i < pool.n_meta; i++)
    emit_meta (&pool.meta[i]);
  coop_intern_begin ();
  coop.engine = coop_engine_new (&options);
  return coop.engine != NULL;
}

bool
coop_pool_begin (void)
{
  pthread_mutex_lock (&coop.lock);
  if (atomic_load (&coop.run) == COOP_RUN_WAITING)
    atomic_store (&coop.run, begin () ? COOP_RUN_ON : COOP_RUN_OFF);
  bool on = atomic_load (&coop.run) == COOP_RUN_ON;
  pthread_mutex_unlock (&coop.lock);
  return on;
}

/* Under the lock: takes over what somebody turned, each parameter with its own source. */
static void
apply_policy (void)
{
  CoopPolicy wanted, now = *coop_engine_policy (coop.engine);
  uint32_t source[COOP_N_PARAMS];
  uint64_t generation;

  if (coop.wire != NULL)
    generation = coop_control_read (coop.wire, &wanted, source);
  else
    {
      generation = atomic_load (&coop.wanted);
      wanted = coop.local;
    }
  for (int p = 0; p < COOP_N_PARAMS; p++)
    if (!coop_value_equal (p, now.v[p], wanted.v[p]))
      {
        now.v[p] = wanted.v[p];
        coop_engine_set_policy (coop.engine, &now, coop.wire ? source[p] : COOP_SOURCE_API,
                                generation);
      }
  coop.policy = *coop_engine_policy (coop.engine);
  atomic_store_explicit (&coop.generation, generation, memory_order_relaxed);
}

void
coop_lock (void)
{
  if (coop.wire != NULL && coop_ring_room (coop.wire) < RING_MARGIN)
    coop_ring_wait (coop.wire, RING_MARGIN, coop.policy.v[COOP_PARAM_RING_WAIT].d);
  pthread_mutex_lock (&coop.lock);
  uint64_t wanted = coop.wire ? coop_control_generation (coop.wire) : atomic_load (&coop.wanted);
  if (wanted != atomic_load_explicit (&coop.generation, memory_order_relaxed))
    apply_policy ();
}

void
coop_unlock (void)
{
  pthread_mutex_unlock (&coop.lock);
}

/* With the GIL, so that victims cannot be put to use between choice and eviction. */
static CoopStatus
alloc_evicting (uint64_t bytes, uint64_t *addr, bool refuse)
{
  CoopRequest req = { .bytes = bytes, .call = coop_thread.call, .retry = coop_thread.rescue,
                      .may_move = !coop.cuda };
  CoopCall *call = coop_thread.call;
  PyObject *type, *value, *traceback;
  uint64_t begin = coop_now ();
  PyGILState_STATE gil = PyGILState_Ensure ();
  CoopStatus status;

  coop_gc_hold ();
  PyErr_Fetch (&type, &value, &traceback);
  for (;;)
    {
      status = COOP_NO_MEMORY;
      if (refuse)
        break;
      coop_lock ();
      status = coop_engine_alloc (coop.engine, &req);
      coop_unlock ();
      if (status == COOP_NO_MEMORY && !req.retry && coop_oom (&req.oom))
        continue;
      if (status != COOP_EVICT)
        break;
      for (unsigned i = 0; i < req.n_victims; i++)
        coop_evict (req.victims[i]);
      for (unsigned i = 0; i < req.n_moves; i++)
        coop_place (&req.moves[i], req.moves[i].tensor->host);
    }
  coop_thread.call = call;
  coop_thread.refused |= status == COOP_NO_MEMORY;
  PyErr_Restore (type, value, traceback);
  coop_gc_release ();
  PyGILState_Release (gil);
  coop_thread.own_ns += coop_now () - begin;
  *addr = req.addr;
  return status;
}

/* Whether it is this request that a test wants refused. */
static bool
refused_for_test (void)
{
  return atomic_load_explicit (&coop.refuse, memory_order_relaxed) > 0
         && atomic_fetch_sub (&coop.refuse, 1) == 1;
}

CoopStatus
coop_pool_alloc (uint64_t bytes, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = coop_thread.call };
  bool may_evict = atomic_load_explicit (&coop.may_evict, memory_order_relaxed);

  if (refused_for_test ())
    return alloc_evicting (bytes, addr, true);
  coop_lock ();
  bool placed = coop_engine_try (coop.engine, &req);
  coop_unlock ();
  *addr = req.addr;
  if (placed)
    return COOP_OK;
  if (!may_evict)
    return COOP_EVICT; /* at the end of the process real memory has to do */
  return alloc_evicting (bytes, addr, false);
}

/* Totals that no event before tells. Needs the GIL, not the lock. */
static void
tell_totals (void)
{
  CoopPagesCount moved = { 0 };

  if (pool.pages)
    coop_pages_count (pool.pages, &moved);
  const struct { const char *name; uint64_t value; } totals[] = {
    { "unmanaged allocations", atomic_load (&coop.unmanaged_allocs) },
    { "unmanaged bytes", atomic_load (&coop.unmanaged_bytes) },
    { "unmanaged tensors", coop.unmanaged_tensors },
    { "tensors moved in", coop.moved_in },
    { "private copies", coop.copies },
    { "pages: moves", moved.moves },
    { "pages: bytes moved", moved.bytes },
    { "pages: ns", moved.ns },
  };

  for (unsigned i = 0; i < sizeof totals / sizeof *totals; i++)
    {
      CoopEvent ev = { .kind = COOP_EVENT_STAT };
      ev.u.stat.name = coop_string (totals[i].name);
      ev.u.stat.value = (int64_t) totals[i].value;
      coop_lock ();
      coop_tell (&ev, NULL);
      coop_unlock ();
    }
}

void
coop_pool_end (int exit_code)
{
  if (!coop_on ())
    return;
  atomic_store (&coop.may_evict, false);
  if (coop.wire == NULL || coop.wire_ended)
    return;
  tell_totals ();
  coop_lock ();
  CoopEvent ev = { .kind = COOP_EVENT_END };
  ev.u.end.exit_code = exit_code;
  coop_tell (&ev, NULL);
  coop.wire_ended = true;
  coop_wire_end (coop.wire);
  coop_unlock ();
}
