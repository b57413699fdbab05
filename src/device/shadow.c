/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow: addresses that name evicted storages and cannot be touched.
 *
 * Address space is plentiful and costs nothing here, so ranges are never split or merged: the
 * reservation is cut into 1024 spans, a span (or a run of spans, for large ranges) serves one size
 * class, four classes a doubling, and a class keeps its freed slots in a list. Take and give are
 * O(1), and the owner of an address is two loads away from an array that never moves: a fault
 * handler may ask at any instant, also while another thread takes or gives.
 *
 * A slot's word is its owner, or, with the lowest bit set, the next free slot of its class.
 */
#include "device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TOTAL_MAX ((uint64_t) 1 << 40)
#define TOTAL_MIN ((uint64_t) 1 << 30)
#define N_SPANS 1024u
#define SMALLEST_LOG 9u                       /* 512 bytes, as the pool rounds */
#define N_CLASSES ((40 - SMALLEST_LOG + 1) * 4)
#define NO_SLOT UINT64_MAX

typedef struct {
  uint64_t bytes;              /* of one slot; set before owners */
  uint64_t n_slots;
  uint32_t n_spans;
  _Atomic (_Atomic uintptr_t *) owners;   /* NULL: span not in use, or inside a run */
  _Atomic uint32_t first;      /* span at which the run begins; its own index outside runs */
} Span;

typedef struct {
  uint64_t free_slot;          /* span << 32 | slot, or NO_SLOT */
  uint64_t fresh_span;         /* span with slots never used, or NO_SLOT */
  uint64_t fresh_slot;
} Class;

struct CoopShadow {
  uint8_t *base;
  uint64_t total, span_bytes;
  uint32_t n_used;             /* spans in use: the first n_used */
  Span span[N_SPANS];
  Class class[N_CLASSES];
};

/* Smallest class of at least `bytes`: 512 * 2^k * {1, 5/4, 6/4, 7/4}. */
static unsigned
class_of (uint64_t bytes)
{
  uint64_t quarters = (bytes + 127) >> (SMALLEST_LOG - 2);   /* of 128 bytes, >= 4 */
  if (quarters <= 4)
    return 0;
  unsigned log = 63u - (unsigned) __builtin_clzll (quarters);
  uint64_t step = (uint64_t) 1 << (log - 2);
  uint64_t n = (quarters + step - 1) >> (log - 2);           /* 4..8 */
  return (log - 2) * 4 + (unsigned) (n - 4);
}

static uint64_t
class_bytes (unsigned class)
{
  return (uint64_t) (4 + class % 4) << (class / 4 + SMALLEST_LOG - 2);
}

CoopShadow *
coop_shadow_new (void)
{
  CoopShadow *shadow = mmap (NULL, sizeof *shadow, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (shadow == MAP_FAILED)
    return NULL;
  void *base = MAP_FAILED;
  for (shadow->total = TOTAL_MAX; shadow->total >= TOTAL_MIN; shadow->total /= 2)
    {
      base = mmap (NULL, shadow->total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
      if (base != MAP_FAILED)
        break;
    }
  if (base == MAP_FAILED)
    {
      munmap (shadow, sizeof *shadow);
      return NULL;
    }
  shadow->base = base;
  shadow->span_bytes = shadow->total / N_SPANS;
  for (unsigned i = 0; i < N_CLASSES; i++)
    shadow->class[i] = (Class) { NO_SLOT, NO_SLOT, 0 };
  return shadow;
}

/* Gives a class a fresh span, or a run of spans when one slot is larger than a span. */
static bool
span_new (CoopShadow *shadow, unsigned class)
{
  uint64_t bytes = class_bytes (class);
  uint64_t n = (bytes + shadow->span_bytes - 1) / shadow->span_bytes;
  if (n > N_SPANS - shadow->n_used)
    return false;
  uint64_t slots = n > 1 ? 1 : shadow->span_bytes / bytes;
  void *owners = mmap (NULL, slots * sizeof (uintptr_t), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (owners == MAP_FAILED)
    return false;
  uint32_t first = shadow->n_used;
  Span *span = &shadow->span[first];
  span->bytes = bytes;
  span->n_slots = slots;
  span->n_spans = (uint32_t) n;
  atomic_store_explicit (&span->owners, owners, memory_order_release);
  for (uint32_t i = first; i < first + n; i++)
    atomic_store_explicit (&shadow->span[i].first, first, memory_order_release);
  shadow->n_used += (uint32_t) n;
  shadow->class[class].fresh_span = first;
  shadow->class[class].fresh_slot = 0;
  return true;
}

/* A slot of the class as span << 32 | slot; NO_SLOT if the reservation is used up. */
static uint64_t
slot_take (CoopShadow *shadow, unsigned class)
{
  Class *c = &shadow->class[class];
  if (c->free_slot != NO_SLOT)
    {
      uint64_t slot = c->free_slot;
      uintptr_t word = atomic_load_explicit (
          &shadow->span[slot >> 32].owners[slot & UINT32_MAX], memory_order_relaxed);
      c->free_slot = word == UINTPTR_MAX ? NO_SLOT : word >> 1;
      return slot;
    }
  if (c->fresh_span == NO_SLOT && !span_new (shadow, class))
    return NO_SLOT;
  uint64_t slot = c->fresh_span << 32 | c->fresh_slot;
  if (++c->fresh_slot == shadow->span[c->fresh_span].n_slots)
    c->fresh_span = NO_SLOT;
  return slot;
}

void *
coop_shadow_take (CoopShadow *shadow, uint64_t bytes, void *owner)
{
  if (bytes > shadow->total || owner == NULL || ((uintptr_t) owner & 1) != 0)
    return NULL;
  uint64_t slot = slot_take (shadow, class_of (bytes));
  if (slot == NO_SLOT)
    return NULL;
  uint64_t index = slot >> 32;
  Span *span = &shadow->span[index];
  atomic_store_explicit (&span->owners[slot & UINT32_MAX], (uintptr_t) owner, memory_order_release);
  return shadow->base + index * shadow->span_bytes + (slot & UINT32_MAX) * span->bytes;
}

/* Span and slot that hold pointer; NULL if no slot can. */
static const Span *
find (const CoopShadow *shadow, const void *pointer, uint32_t *index, uint64_t *slot)
{
  uintptr_t at = (uintptr_t) pointer, base = (uintptr_t) shadow->base;
  if (at < base || at - base >= shadow->total)
    return NULL;
  uint64_t offset = at - base;
  uint32_t first = atomic_load_explicit (&shadow->span[offset / shadow->span_bytes].first,
                                         memory_order_acquire);
  const Span *span = &shadow->span[first];
  if (atomic_load_explicit (&span->owners, memory_order_acquire) == NULL)
    return NULL;
  *index = first;
  *slot = (offset - first * shadow->span_bytes) / span->bytes;
  return *slot < span->n_slots ? span : NULL;
}

void *
coop_shadow_owner (const CoopShadow *shadow, const void *pointer, void **base)
{
  uint32_t index = 0;
  uint64_t slot = 0;
  const Span *span = find (shadow, pointer, &index, &slot);
  if (span == NULL)
    return NULL;
  uintptr_t word = atomic_load_explicit (&span->owners[slot], memory_order_acquire);
  if (word == 0 || (word & 1) != 0)
    return NULL;
  if (base != NULL)
    *base = shadow->base + index * shadow->span_bytes + slot * span->bytes;
  return (void *) word;
}

void *
coop_shadow_give (CoopShadow *shadow, void *pointer)
{
  void *base = NULL;
  void *owner = coop_shadow_owner (shadow, pointer, &base);
  if (owner == NULL || base != pointer)
    return NULL;
  uint32_t index = 0;
  uint64_t slot = 0;
  const Span *span = find (shadow, pointer, &index, &slot);
  Class *c = &shadow->class[class_of (span->bytes)];
  uintptr_t next = c->free_slot == NO_SLOT ? UINTPTR_MAX : (uintptr_t) c->free_slot << 1 | 1;
  atomic_store_explicit (&span->owners[slot], next, memory_order_release);
  c->free_slot = (uint64_t) index << 32 | slot;
  return owner;
}
