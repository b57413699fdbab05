/* SPDX-License-Identifier: Apache-2.0 */
/* Pool: the lock, the engine behind it, and the way of its events into the ring. */
#include "torch/host.h"

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
  unsigned reports;
  _Atomic unsigned threads;
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

static bool
begin (void)
{
  CoopEngineOptions options = { .policy = pool.policy, .source = pool.source, .sink = { .emit = sink },
                                .now = engine_now };

  coop.start_ns = coop_now ();
  if (coop.wire != NULL && coop_wire_claim (coop.wire) != COOP_WIRE_OK)
    return false;
  options.capacity = capacity_for ((uint64_t) pool.policy.v[COOP_PARAM_BUDGET].i);
  if (coop.arena == NULL)
    coop.arena = coop_arena_new (options.capacity);
  if (coop.shadow == NULL)
    coop.shadow = coop_shadow_new ();
  if (coop.arena == NULL || coop.shadow == NULL)
    {
      fprintf (stderr, "coopscope: no address space for the pool (%s); memory is not managed\n",
               strerror (errno));
      return false;
    }
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

static void
say (const char *label, uint64_t bytes, const char *after)
{
  char text[32];

  coop_size_format (bytes, text, sizeof text);
  fprintf (stderr, "%s%s%s", label, text, after);
}

/* What a person needs to know beside PyTorch's own error. */
static void
report_no_memory (const CoopOom *oom)
{
  if (coop_thread.quiet || pool.reports++ >= 3)
    return;
  say ("coopscope: out of memory: asked ", oom->asked, "");
  say (", free ", oom->free, "");
  say (", largest run ", oom->largest, "");
  say (", budget ", oom->budget, "\n");
  fprintf (stderr, "coopscope:   pinned:");
  for (int p = COOP_PIN_NONE + 1; p < COOP_N_PINS; p++)
    if (oom->pinned[p] > 0)
      {
        fprintf (stderr, " %s", coop_pin_label (p));
        say (" ", oom->pinned[p], ",");
      }
  say (" evictable ", oom->evictable, ",");
  say (" unclaimed ", oom->unclaimed, "");
  say ("; outside the pool ", atomic_load (&coop.unmanaged_bytes), "\n");
  if (oom->advice > 0)
    {
      say ("coopscope:   a budget of ", oom->advice, " would do");
      fprintf (stderr, " (--budget %llu)\n", (unsigned long long) oom->advice);
    }
}

/* With the GIL, so that victims cannot be put to use between choice and eviction. */
static CoopStatus
alloc_evicting (uint64_t bytes, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = coop_thread.call, .retry = coop_thread.rescue };
  CoopCall *call = coop_thread.call;
  PyObject *type, *value, *traceback;
  uint64_t begin = coop_now ();
  PyGILState_STATE gil = PyGILState_Ensure ();
  CoopStatus status;

  PyErr_Fetch (&type, &value, &traceback);
  for (;;)
    {
      coop_lock ();
      status = coop_engine_alloc (coop.engine, &req);
      coop_unlock ();
      if (status != COOP_EVICT)
        break;
      for (unsigned i = 0; i < req.n_victims; i++)
        coop_evict (req.victims[i]);
    }
  coop_thread.call = call;
  coop_thread.refused |= status == COOP_NO_MEMORY;
  if (status == COOP_NO_MEMORY && !req.retry)
    report_no_memory (&req.oom);
  PyErr_Restore (type, value, traceback);
  PyGILState_Release (gil);
  coop_thread.own_ns += coop_now () - begin;
  *addr = req.addr;
  return status;
}

CoopStatus
coop_pool_alloc (uint64_t bytes, uint64_t *addr)
{
  CoopRequest req = { .bytes = bytes, .call = coop_thread.call };
  bool may_evict = atomic_load_explicit (&coop.may_evict, memory_order_relaxed);

  coop_lock ();
  bool placed = coop_engine_try (coop.engine, &req);
  coop_unlock ();
  *addr = req.addr;
  if (placed)
    return COOP_OK;
  if (!may_evict)
    return COOP_EVICT; /* at the end of the process real memory has to do */
  return alloc_evicting (bytes, addr);
}

/* Totals that no event before tells. Needs the GIL, not the lock. */
static void
tell_totals (void)
{
  const struct { const char *name; uint64_t value; } totals[] = {
    { "unmanaged allocations", atomic_load (&coop.unmanaged_allocs) },
    { "unmanaged bytes", atomic_load (&coop.unmanaged_bytes) },
    { "unmanaged tensors", coop.unmanaged_tensors },
    { "tensors moved in", coop.moved_in },
    { "private copies", coop.copies },
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
