/* SPDX-License-Identifier: Apache-2.0 */
/* Policy: everything about the engine that a person may turn while a program runs.
 *
 * COOP_PARAMS is the one list. The engine reads its values from it, the control page holds one
 * atomic a row, and the flags of `coop`, the sliders of the window, the trace's policy_change
 * table, the Python API and the manual are all generated from it. A row is
 *
 *   X (ID, "name", TYPE, min, max, default, "unit", "group", "help")
 *
 * TYPE is SIZE (bytes), INT, REAL, BOOL or ENUM (the labels stand in coop_param_labels).
 * SIZE, INT, BOOL and ENUM are held in CoopValue.i, REAL in CoopValue.d.
 */
#ifndef COOP_POLICY_H
#define COOP_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COOP_KIB (1024.0)
#define COOP_MIB (1024.0 * 1024.0)
#define COOP_TIB (1024.0 * 1024.0 * 1024.0 * 1024.0)

/* budget 0 = no limit: the pool then spans the whole reservation and `peak` is measured. */
#define COOP_PARAMS(X)                                                                              \
  X (BUDGET, "budget", SIZE, 0, 256 * COOP_TIB, 0, "bytes", "memory",                               \
     "Bytes of tensor memory the program may use. 0 means no limit.")                               \
  X (ALLOCATOR, "allocator", ENUM, 0, COOP_N_ALLOCATORS - 1, COOP_ALLOCATOR_MERGE, "", "memory",    \
     "How blocks are laid out in the pool. Fixed when the run starts.")                             \
  X (GROUPS, "groups", INT, 1, 6, 2, "groups", "memory",                                            \
     "1: best fit. 2: expensive tensors at the low end, cheap at the high one. 4, 6: so in 2, 3 parts.") \
  X (DENSITY, "density", REAL, 0, 1000, 0.25, "ns/byte", "memory",                                  \
     "Cost per byte from which a tensor is placed with the expensive. 0: by the kind of operator.") \
  X (SMALL, "small", SIZE, 0, 1024 * COOP_KIB, 10 * COOP_KIB, "bytes", "memory",                    \
     "Blocks of at most this size live in an area of their own. 0 switches the area off.")          \
  X (EVICTOR, "evictor", ENUM, 0, COOP_N_EVICTORS - 1, COOP_EVICTOR_COOP, "", "eviction",           \
     "How victims are chosen when memory runs out.")                                                \
  X (COST_EXPONENT, "cost_exponent", REAL, 0, 4, 1, "", "eviction",                                 \
     "Weight of the time to recompute in the score of a tensor.")                                   \
  X (STALENESS_EXPONENT, "staleness_exponent", REAL, 0, 4, 1, "", "eviction",                       \
     "Weight of the time since last use in the score of a tensor.")                                 \
  X (SIZE_EXPONENT, "size_exponent", REAL, 0, 4, 0, "", "eviction",                                 \
     "Weight of the bytes freed in the score of a tensor. Coop uses 0, DTR 1.")                     \
  X (BESIDE, "beside", BOOL, 0, 1, 0, "", "eviction",                                               \
     "Count the free bytes on both sides of a tensor as bytes freed. DTE does.")                    \
  X (CHAIN, "chain", ENUM, 0, COOP_N_CHAINS - 1, COOP_CHAIN_UNION, "", "eviction",                  \
     "Which evicted neighbours count as cost. none; union: their groups; exact; ancestors alone.")  \
  X (DESCENT, "descent", BOOL, 0, 1, 1, "", "eviction",                                             \
     "Count the backward pass until then as cost of a gradient: what it was made from goes at once.") \
  X (SEED, "seed", INT, 0, 1000000, 1, "", "eviction",                                              \
     "Where evictor random begins. The same seed gives the same victims.")                          \
  X (COST, "cost", ENUM, 0, COOP_N_COSTS - 1, COOP_COST_MEASURED, "", "eviction",                   \
     "measured: operators are timed. model: bytes and operator kind, so that runs repeat.")         \
  X (HOLD, "hold", SIZE, 0, 1024 * COOP_KIB, 4 * COOP_KIB, "bytes", "eviction",                     \
     "Inputs of at most this size are kept for as long as an operator may be run again.")           \
  X (COMPACT, "compact", BOOL, 0, 1, 1, "", "eviction",                                              \
     "Before an operator is refused memory, move tensors together and run it once more.")           \
  X (COPY_RATE, "copy_rate", REAL, 0, 10000, 1, "GB/s", "eviction",                                  \
     "Move tensors together sooner, where victims take longer to recompute than this. 0: never.")   \
  X (STRESS, "stress", INT, 0, 1000000, 0, "operators", "checks",                                   \
     "Evict everything that is not pinned after every so many operators. 0 switches it off.")       \
  X (VERIFY, "verify", BOOL, 0, 1, 0, "", "checks",                                                 \
     "Compare the bits of every recomputed tensor with those it had when it was evicted.")          \
  X (THRASH, "thrash", INT, 0, 1000000, 10, "times", "checks",                                      \
     "Warn when one tensor is brought back more often than this in one step. 0 never warns.")       \
  X (RING_WAIT, "ring_wait", REAL, 0, 1000, 4, "ms", "trace",                                       \
     "Longest wait for room in the ring before an event is dropped and counted.")                   \
  X (STACKS, "stacks", ENUM, 0, COOP_N_STACKS - 1, COOP_STACKS_FIRST, "", "trace",                  \
     "When the line of the script is looked up: never, at an operator's first call, at every call.") \
  X (STEPS, "steps", INT, 1, 8, 8, "sizes", "allocators",                                           \
     "class: sizes between a power of two and the next: 1, 2, 4 or 8. Fixed when the run starts.")  \
  X (EXPANDABLE, "expandable", BOOL, 0, 1, 0, "", "allocators",                                     \
     "caching: segments that grow, and give back whole pages. Fixed when the run starts.")          \
  X (PAGE, "page", SIZE, 512, 20 * COOP_MIB, 2 * COOP_MIB, "bytes", "allocators",                   \
     "page: bytes of a page, rounded to 512. Fixed when the run starts.")                           \
  X (PAGE_COST, "page_cost", REAL, 0, 100000, 10, "us", "allocators",                               \
     "page: time to move one page to another address. Counted in a replay.")                        \
  X (GIVE_BACK, "give_back", BOOL, 0, 1, 1, "", "allocators",                                       \
     "class, caching: what is free as a whole may go back to the device to make room.")             \
  X (GIVE_BACK_COST, "give_back_cost", REAL, 0, 100000, 0, "us", "allocators",                      \
     "class, caching: time to give one segment back. Counted in a replay.")                         \
  X (BYTES_FIRST, "bytes_first", BOOL, 0, 1, 0, "", "coop-plus",                                    \
     "Evict by score wherever it lies until the bytes suffice; only then bring room together.")     \
  X (MOVES, "moves", BOOL, 0, 1, 0, "", "coop-plus",                                                \
     "Members of a window may move into holes elsewhere. Needs a copy_rate.")                       \
  X (EVICT_PRICE, "evict_price", REAL, 0, 100, 0.03, "", "coop-plus",                               \
     "Part of a step's time that a tensor as costly as it is stale is worth; weighed against moves.") \
  X (MOVE_COST, "move_cost", REAL, 0, 100000, 5, "us", "coop-plus",                                 \
     "Time of a move beside that of the copy.")

/* merge: best fit, free neighbours merge at once. class: chunks of fixed sizes, nothing merges.
 * caching: PyTorch's rules for CUDA. page: any free pages make any block. */
typedef enum {
  COOP_ALLOCATOR_MERGE, COOP_ALLOCATOR_CLASS, COOP_ALLOCATOR_CACHING, COOP_ALLOCATOR_PAGE,
  COOP_N_ALLOCATORS
} CoopAllocatorName;
typedef enum {
  COOP_EVICTOR_COOP, COOP_EVICTOR_DTR_EQ, COOP_EVICTOR_LRU, COOP_EVICTOR_NONE, COOP_EVICTOR_DTR,
  COOP_EVICTOR_DTR_LOCAL, COOP_EVICTOR_MSPS, COOP_EVICTOR_DTE, COOP_EVICTOR_SIZE,
  COOP_EVICTOR_RANDOM, COOP_EVICTOR_COOP_CLASS, COOP_EVICTOR_COOP_PLUS,
  COOP_N_EVICTORS
} CoopEvictorName;
/* none: own cost alone. union: evicted-component cost by union-find, distinct components of evicted
 * parents and children (DTR's approximation of e*). exact: e* itself, what would have to run before
 * and what would wait, followed through evicted tensors anew for each score. ancestors: the first
 * half of it. */
typedef enum {
  COOP_CHAIN_NONE, COOP_CHAIN_UNION, COOP_CHAIN_EXACT, COOP_CHAIN_ANCESTORS, COOP_N_CHAINS
} CoopChain;
typedef enum { COOP_COST_MEASURED, COOP_COST_MODEL, COOP_N_COSTS } CoopCostSource;
typedef enum { COOP_STACKS_OFF, COOP_STACKS_FIRST, COOP_STACKS_EVERY, COOP_N_STACKS } CoopStacks;

typedef enum {
#define X(ID, name, type, min, max, def, unit, group, help) COOP_PARAM_##ID,
  COOP_PARAMS (X)
#undef X
  COOP_N_PARAMS
} CoopParam;

typedef enum {
  COOP_TYPE_SIZE, COOP_TYPE_INT, COOP_TYPE_REAL, COOP_TYPE_BOOL, COOP_TYPE_ENUM
} CoopParamType;

/* Who changed a parameter. Stored in the trace. */
typedef enum {
  COOP_SOURCE_INITIAL, COOP_SOURCE_FLAG, COOP_SOURCE_SLIDER, COOP_SOURCE_API, COOP_SOURCE_PRESET,
  COOP_SOURCE_REHEARSAL, COOP_N_SOURCES
} CoopSource;

typedef union {
  int64_t i;
  double d;
} CoopValue;

typedef struct {
  CoopParam id;
  const char *name;
  CoopParamType type;
  double min, max, def;
  const char *unit, *group, *help;
  const char *const *labels; /* ENUM: NULL-terminated, index = value; else NULL */
} CoopParamInfo;

typedef struct {
  CoopValue v[COOP_N_PARAMS];
} CoopPolicy;

typedef enum {
  COOP_PARSE_OK,
  COOP_PARSE_SYNTAX,   /* not a number, an unknown unit, an unknown label */
  COOP_PARSE_RANGE     /* outside min..max */
} CoopParse;

extern const CoopParamInfo coop_param_info[COOP_N_PARAMS];
extern const char *const coop_source_labels[COOP_N_SOURCES + 1];

/* Every parameter at its default, evictor `coop`. */
void coop_policy_init (CoopPolicy *policy);

/* Sets the evictor and every parameter that its preset names (exponents of cost, staleness and size,
 * chain, beside, groups; bytes_first and moves); leaves the others. coop: 1 1 0 union, 2 groups; coop-class, and none (which
 * never evicts), as coop. coop-plus: 1 1 1 union, 1 group, bytes_first, moves. All others 1 group: dtr 1 1 1 exact; dtr-eq 1 1 1 union; dtr-local 1 1 1 none; msps 1 0 1
 * ancestors; dte 1 1 1 union beside; lru 0 1 0 none; size 0 0 1 none; random none of it. */
void coop_policy_preset (CoopPolicy *policy, CoopEvictorName evictor);

/* Parameter by name, or -1. `-` and `_` are the same letter. */
int coop_param_find (const char *name);

/* The known name nearest to `word` by edit distance among parameters (labels of `param` when
 * param >= 0), or NULL where nothing is near. Static storage. */
const char *coop_param_nearest (int param, const char *word);

/* Reads one value. SIZE accepts bytes, KB MB GB TB (10^3), KiB MiB GiB TiB (2^10), decimals with a
 * point, a space before the unit; negative numbers and commas are COOP_PARSE_SYNTAX.
 * BOOL accepts 0 1 true false on off yes no. ENUM accepts its labels. */
CoopParse coop_param_parse (CoopParam param, const char *text, CoopValue *value);
CoopParse coop_size_parse (const char *text, uint64_t *bytes);

/* Writes the value as `coop_param_parse` reads it (SIZE as bytes). Returns the length, as snprintf. */
int coop_param_format (CoopParam param, CoopValue value, char *out, size_t size);

/* A size for people: "37.7 MiB". Returns the length, as snprintf. */
int coop_size_format (uint64_t bytes, char *out, size_t size);

/* Clamps into min..max, rounds INT, SIZE, ENUM, BOOL. */
CoopValue coop_param_clamp (CoopParam param, CoopValue value);
bool coop_value_equal (CoopParam param, CoopValue a, CoopValue b);

#endif
