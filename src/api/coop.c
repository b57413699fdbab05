/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: their lock, policy and message. */
#include "api-private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define RING_MARGIN (256u << 10) /* bytes that one decision may emit */
#define ALIGN 512u
#define LEAST_SPACE (64u << 10)

uint64_t
api_now (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* ---- messages ----------------------------------------------------------------------------- */

const char *
coop_result_text (CoopResult result)
{
  switch (result)
    {
    case COOP_DONE:
      return "done";
    case COOP_FAILED_MEMORY:
      return "out of memory";
    case COOP_FAILED_OPERATOR:
      return "an operator failed";
    case COOP_FAILED_BITS:
      return "an operator gave other bits when it was run again";
    case COOP_FAILED_VALUE:
      return "an argument cannot be";
    case COOP_FAILED_SYSTEM:
      return "the system refused";
    }
  return "unknown result";
}

CoopResult
api_fail (Coop *coop, CoopResult result, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  vsnprintf (coop->message, sizeof coop->message, format, args);
  va_end (args);
  return result;
}

const char *
coop_message (const Coop *coop)
{
  return coop->message;
}

/* ---- policy ------------------------------------------------------------------------------- */

/* Under the lock: takes over what the tool's sliders say, each parameter with its own source. */
static void
apply_wire (Coop *coop)
{
  CoopPolicy wanted, now = *coop_engine_policy (coop->engine);
  uint32_t source[COOP_N_PARAMS];
  uint64_t generation = coop_control_read (coop->wire, &wanted, source);
  bool less = false;
  for (int p = 0; p < COOP_N_PARAMS; p++)
    if (!coop_value_equal ((CoopParam) p, now.v[p], wanted.v[p]))
      {
        less |= p == COOP_PARAM_BUDGET;
        now.v[p] = wanted.v[p];
        coop_engine_set_policy (coop->engine, &now, (CoopSource) source[p], generation);
      }
  coop->generation = generation;
  if (less)
    api_evict_down (coop);
}

void
api_lock (Coop *coop)
{
  CoopWire *wire = coop->wire;
  if (wire != NULL && coop_ring_room (wire) < RING_MARGIN)
    coop_ring_wait (wire, RING_MARGIN, 4);
  pthread_mutex_lock (&coop->lock);
  if (wire == NULL || coop->ended)
    return;
  if (coop_control_generation (wire) != coop->generation)
    apply_wire (coop);
  if (coop_control_stop (wire))
    api_leave (coop);
}

void
api_unlock (Coop *coop)
{
  pthread_cond_broadcast (&coop->ended_one);
  pthread_mutex_unlock (&coop->lock);
}

/* Reads key = value into a policy. *mask gets a bit for each parameter that was named. */
static CoopResult
read_pair (Coop *coop, const char *key, const char *value, CoopPolicy *policy, uint64_t *mask)
{
  bool preset = strcmp (key, "preset") == 0;
  int p = preset ? COOP_PARAM_EVICTOR : coop_param_find (key);
  CoopValue read;
  if (p < 0)
    {
      const char *near = coop_param_nearest (-1, key);
      return api_fail (coop, COOP_FAILED_VALUE, "there is no parameter \"%s\"%s%s%s", key,
                       near ? "; is it \"" : "", near ? near : "", near ? "\"?" : "");
    }
  const CoopParamInfo *info = &coop_param_info[p];
  switch (coop_param_parse ((CoopParam) p, value, &read))
    {
    case COOP_PARSE_SYNTAX:
      return api_fail (coop, COOP_FAILED_VALUE, "\"%s\" is no value of %s", value, info->name);
    case COOP_PARSE_RANGE:
      return api_fail (coop, COOP_FAILED_VALUE, "%s of %s is outside of %g to %g", value, info->name,
                       info->min, info->max);
    case COOP_PARSE_OK:
      break;
    }
  CoopPolicy before = *policy;
  if (preset)
    coop_policy_preset (policy, (CoopEvictorName) read.i);
  else
    policy->v[p] = read;
  *mask |= (uint64_t) 1 << p;
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (!coop_value_equal ((CoopParam) i, before.v[i], policy->v[i]))
      *mask |= (uint64_t) 1 << i;
  return COOP_DONE;
}

/* Whether the policy would lay out blocks otherwise than those that are there. */
static bool
is_fixed (const Coop *coop, const CoopPolicy *policy)
{
  static const CoopParam fixed[]
      = { COOP_PARAM_ALLOCATOR, COOP_PARAM_STEPS, COOP_PARAM_EXPANDABLE, COOP_PARAM_PAGE };
  const CoopValue *now = coop_engine_policy (coop->engine)->v;
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    if (!coop_value_equal (fixed[i], now[fixed[i]], policy->v[fixed[i]]))
      return true;
  return false;
}

CoopResult
coop_set (Coop *coop, const char *key, const char *value)
{
  uint64_t mask = 0;
  api_lock (coop);
  CoopPolicy policy = *coop_engine_policy (coop->engine);
  CoopResult result = read_pair (coop, key, value, &policy, &mask);
  if (result == COOP_DONE && is_fixed (coop, &policy))
    result = api_fail (coop, COOP_FAILED_VALUE, "%s is fixed when the pool begins", key);
  if (result == COOP_DONE && coop->wire != NULL && !coop->ended)
    {
      coop_control_set_many (coop->wire, &policy, mask, COOP_SOURCE_API);
      apply_wire (coop);
    }
  else if (result == COOP_DONE)
    {
      coop_engine_set_policy (coop->engine, &policy, COOP_SOURCE_API, ++coop->generation);
      if (mask & (uint64_t) 1 << COOP_PARAM_BUDGET)
        api_evict_down (coop);
    }
  api_unlock (coop);
  return result;
}

int
coop_value (Coop *coop, const char *key, char *out, size_t size)
{
  int p = coop_param_find (key);
  if (p < 0)
    return -1;
  api_lock (coop);
  CoopValue value = coop_engine_policy (coop->engine)->v[p];
  api_unlock (coop);
  return coop_param_format ((CoopParam) p, value, out, size);
}

/* ---- begin and end ------------------------------------------------------------------------ */

static CoopResult
use_memory (Coop *coop, const CoopOptions *options)
{
  uint64_t skip = (ALIGN - (uintptr_t) options->memory % ALIGN) % ALIGN;
  coop->memory = (uint8_t *) options->memory + skip;
  coop->capacity = options->capacity > skip ? (options->capacity - skip) / ALIGN * ALIGN : 0;
  if (coop->capacity > 0)
    return COOP_DONE;
  return api_fail (coop, COOP_FAILED_VALUE, "%zu bytes are too few for a pool", options->capacity);
}

static bool
reserve (Coop *coop, uint64_t capacity)
{
  coop->capacity = (capacity + ALIGN - 1) / ALIGN * ALIGN;
  coop->memory = mmap (NULL, coop->capacity, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  coop->own_memory = coop->memory != MAP_FAILED;
  return coop->own_memory;
}

/* Where address space is short (limits, valgrind), room for a budget to grow is what can be had. */
static CoopResult
reserve_memory (Coop *coop, const CoopOptions *options)
{
  uint64_t budget = (uint64_t) coop->first.v[COOP_PARAM_BUDGET].i, memory = coop_host_memory ();
  uint64_t least = budget > options->capacity ? budget : options->capacity, wish = least;
  if (options->capacity == 0)
    wish = memory > 0 ? 4 * memory : UINT64_C (1) << 38;
  if (least < LEAST_SPACE)
    least = LEAST_SPACE;
  while (wish > least && !reserve (coop, wish))
    wish /= 2;
  if (coop->own_memory || reserve (coop, least))
    return COOP_DONE;
  return api_fail (coop, COOP_FAILED_SYSTEM, "no address space for the pool: %s", strerror (errno));
}

/* The caller's memory is a budget, too. */
static void
limit_budget (Coop *coop)
{
  CoopValue *budget = &coop->first.v[COOP_PARAM_BUDGET];
  if (budget->i != 0 && (uint64_t) budget->i <= coop->capacity)
    return;
  budget->i = (int64_t) coop->capacity;
  coop->source[COOP_PARAM_BUDGET] = COOP_SOURCE_API;
}

static CoopResult
read_options (Coop *coop, const CoopOptions *options)
{
  uint64_t mask = 0;
  coop_policy_init (&coop->first);
  for (const char *const *p = options->policy; p != NULL && p[0] != NULL; p += 2)
    {
      if (p[1] == NULL)
        return api_fail (coop, COOP_FAILED_VALUE, "%s has no value", p[0]);
      CoopResult result = read_pair (coop, p[0], p[1], &coop->first, &mask);
      if (result != COOP_DONE)
        return result;
    }
  for (int p = 0; p < COOP_N_PARAMS; p++)
    if (mask & (uint64_t) 1 << p)
      coop->source[p] = COOP_SOURCE_API;
  return COOP_DONE;
}

static void
sink (void *user, CoopEvent *ev, const void *body)
{
  api_tell (user, ev, body);
}

static uint64_t
engine_now (void *user)
{
  return api_now ();
}

/* Segments of a device are ranges of the pool's own memory here: what is given back is given back. */
static void
on_unmap (void *user, uint64_t addr, uint64_t bytes)
{
  api_return_pages (user, addr, addr + bytes);
}

static void
on_remap (void *user, uint64_t from, uint64_t to, uint64_t bytes)
{
  api_return_pages (user, from, from + bytes);
}

static CoopResult
begin_engine (Coop *coop)
{
  coop->dtype = api_string (coop, "uint8");
  coop->get_name = api_string (coop, "coop_get");
  coop->put_name = api_string (coop, "coop_get write");
  CoopEngineOptions engine = { .capacity = coop->capacity, .policy = coop->first,
                               .source = coop->source, .sink = { sink, coop }, .now = engine_now };
  if (coop->own_memory)
    engine.backing = (CoopBacking) { .unmap = on_unmap, .remap = on_remap, .user = coop };
  coop->engine = coop_engine_new (&engine);
  return coop->engine != NULL ? COOP_DONE : api_fail (coop, COOP_FAILED_SYSTEM, "no memory");
}

static CoopResult
begin (Coop *coop, const CoopOptions *options)
{
  bool own = options->memory == NULL;
  coop->start_ns = api_now ();
  CoopResult result = read_options (coop, options);
  if (result == COOP_DONE && !own)
    {
      result = use_memory (coop, options);
      limit_budget (coop);
    }
  if (result == COOP_DONE && !options->alone)
    api_join (coop);
  if (result == COOP_DONE && !own && coop->first.v[COOP_PARAM_ALLOCATOR].i != COOP_ALLOCATOR_MERGE)
    result = api_fail (coop, COOP_FAILED_VALUE, "allocator %s wants memory of the pool's own",
                       coop_param_info[COOP_PARAM_ALLOCATOR].labels[coop->first.v[COOP_PARAM_ALLOCATOR].i]);
  if (result == COOP_DONE && own)
    result = reserve_memory (coop, options);
  else if (result == COOP_DONE)
    limit_budget (coop); /* the tool's may be larger */
  return result == COOP_DONE ? begin_engine (coop) : result;
}

static void
clear (Coop *coop)
{
  api_leave (coop);
  coop_wire_free (coop->wire);
  if (coop->engine != NULL)
    coop_engine_free_all (coop->engine);
  if (coop->own_memory)
    munmap (coop->memory, coop->capacity);
  while (coop->operators != NULL)
    {
      CoopOperator *next = coop->operators->next;
      free (coop->operators);
      coop->operators = next;
    }
  pthread_cond_destroy (&coop->ended_one);
  pthread_mutex_destroy (&coop->lock);
  free (coop);
}

CoopResult
coop_new (const CoopOptions *options, Coop **coop)
{
  static const CoopOptions none = { 0 };
  Coop *made = calloc (1, sizeof *made);
  *coop = NULL;
  if (made == NULL)
    return COOP_FAILED_SYSTEM;
  pthread_mutex_init (&made->lock, NULL);
  pthread_cond_init (&made->ended_one, NULL);
  CoopResult result = begin (made, options != NULL ? options : &none);
  if (result == COOP_DONE)
    *coop = made;
  else
    {
      int saved = errno;
      if (options != NULL && options->why != NULL)
        snprintf (options->why, options->why_size, "%s", made->message);
      clear (made);
      errno = saved;
    }
  return result;
}

void
coop_destroy (Coop *coop)
{
  if (coop == NULL)
    return;
  while (coop->storages != NULL)
    {
      CoopStorage *s = coop->storages;
      if (s->gets != NULL)
        coop_release (s);
      else
        coop_drop (s);
    }
  clear (coop);
}

/* ---- looking in --------------------------------------------------------------------------- */

void
coop_stats (Coop *coop, CoopStats *stats)
{
  CoopTotals t;
  api_lock (coop);
  coop_engine_totals (coop->engine, &t);
  *stats = (CoopStats) {
    .budget = t.budget, .capacity = t.capacity, .live = t.live, .peak = t.peak, .free = t.free,
    .largest = t.largest, .pinned = t.pinned, .evicted = t.evicted, .storages = coop->n_storages,
    .operators_run = t.ops, .rematerializations = t.replays, .evictions = t.evictions,
    .evicted_bytes = t.evicted_bytes, .searches = t.searches, .moves = t.moves, .failures = t.ooms,
    .run_ns = t.op_ns, .rematerialize_ns = t.replay_ns, .search_ns = t.search_ns,
    .events_lost = coop->lost
  };
  api_unlock (coop);
}

const char *
coop_check (Coop *coop)
{
  api_lock (coop);
  const char *wrong = coop_engine_check (coop->engine);
  api_unlock (coop);
  return wrong;
}

void
coop_part (Coop *coop, CoopPart part)
{
  _Static_assert ((int) COOP_OTHER == (int) COOP_PHASE_OTHER && (int) COOP_FORWARD == (int) COOP_PHASE_FORWARD
                  && (int) COOP_BACKWARD == (int) COOP_PHASE_BACKWARD
                  && (int) COOP_OPTIMIZER == (int) COOP_PHASE_OPTIMIZER, "parts are phases");
  api_lock (coop);
  coop->phase = part < COOP_OTHER || part > COOP_OPTIMIZER ? COOP_PHASE_OTHER : (CoopPhase) part;
  api_unlock (coop);
}

const CoopOperator *
coop_operator (Coop *coop, const CoopOperatorInfo *info)
{
  size_t length = info->name != NULL ? strlen (info->name) : 0;
  CoopOperator *op = info->name != NULL && info->run != NULL ? calloc (1, sizeof *op + length + 1) : NULL;
  if (op == NULL)
    return NULL;
  op->info = *info;
  memcpy (op->name, info->name, length);
  op->info.name = op->name;
  api_lock (coop);
  op->string = api_string (coop, op->name);
  op->next = coop->operators;
  coop->operators = op;
  api_unlock (coop);
  return op;
}
