/* SPDX-License-Identifier: Apache-2.0 */
/* What the columns of a trace mean, for `coop query FILE .schema`. Names are the same all over, so most
 * are explained once; a name that means another thing somewhere has an entry with its view. */
#include "cli.h"

#include <string.h>

typedef struct {
  const char *name, *meaning;
} Entry;

static const Entry views[] = {
  { "v_event", "every event of the run, in order" },
  { "v_segment", "every range of memory that the device backs, or did" },
  { "v_operator", "every operator that ran, recomputations too" },
  { "v_operator_input", "which tensors an operator read" },
  { "v_operator_output", "which tensors an operator made" },
  { "v_tensor", "every version of a storage" },
  { "v_block", "every life of a range of the pool's memory" },
  { "v_usage", "memory in use over time, a row a millisecond with events" },
  { "v_eviction", "every search for victims, found or not" },
  { "v_evicted", "every block that was evicted, and why it was chosen" },
  { "v_fragmentation", "how scattered the free memory was at each search" },
  { "v_policy", "every value that a parameter took" },
  { "v_oom", "requests that could not be served" },
};

static const Entry columns[] = {
  { "addr", "where it begins in the pool; bytes from its begin" },
  { "address", "address on the device; known where imported" },
  { "advice", "budget that would have done; NULL if unknown" },
  { "asked", "bytes asked for" },
  { "begin_event", "event at which it began" },
  { "block", "number of the block (v_block)" },
  { "born_event", "event that began the life; NULL if it was lost" },
  { "born_ns", "when the life began" },
  { "budget", "bytes that tensors may take; NULL or 0 is no limit" },
  { "bytes", "size; of blocks rounded up to 512" },
  { "chain_cost", "ns to make the evicted neighbours that it needs" },
  { "cost", "summed score of the victims; NULL if none were found" },
  { "cost_ns", "ns that it takes to run it again" },
  { "died_event", "event that ended the life; NULL if it never did" },
  { "died_ns", "when the life ended" },
  { "device_free", "bytes free on the device; known where imported" },
  { "dtype", "type of the elements" },
  { "duration_ns", "how long it ran" },
  { "end_event", "event at which it ended" },
  { "ended", "what ended it: free, evict, handover or move" },
  { "event", "number of the event (v_event.seq)" },
  { "events", "events in that time" },
  { "evictable", "bytes that could be evicted at that moment" },
  { "evicted_bytes", "bytes of the victims" },
  { "eviction", "number of the search (v_eviction); 0 without one" },
  { "evictions", "blocks evicted in that time" },
  { "expandable", "1 if it may grow in place" },
  { "failed", "1 if it raised an error" },
  { "file", "file of the script's line that ran it" },
  { "free", "free bytes below the budget" },
  { "free_before", "free bytes before the search" },
  { "free_part", "free bytes, as a part of the budget" },
  { "func", "function of that line" },
  { "generation", "count of changes of the policy; 0 at the begin" },
  { "h", "score: the smaller, the cheaper to lose" },
  { "handovers", "tensors that came back in that time" },
  { "hi", "end of the window of victims" },
  { "id", "its number, from 1 on" },
  { "inputs", "numbers of the tensors read, a JSON array" },
  { "kind", "state, activation, gradient, other, unmanaged or unknown" },
  { "largest", "largest free range below the budget after the event" },
  { "largest_before", "largest free range before the search" },
  { "largest_min", "smallest of the largest free ranges" },
  { "life_ns", "how long it lived" },
  { "line", "line of the script" },
  { "lo", "begin of the window of victims" },
  { "module", "module that ran, named as in a state_dict: layers.3.linear1" },
  { "name", "the operator's name, such as aten::mm" },
  { "need", "bytes that had to be made free in one piece" },
  { "new", "value after it" },
  { "next_cost", "score of the second best window" },
  { "old", "value before it; the same at the begin" },
  { "op", "number of the operator (v_operator)" },
  { "operator", "name of the operator that made it" },
  { "output", "which of the operator's outputs it is" },
  { "outputs", "numbers of the tensors made, a JSON array" },
  { "own_cost", "ns to run its own operator" },
  { "param", "the parameter's name; `coop policy` explains it" },
  { "phase", "forward, backward, optimizer or other" },
  { "pin", "why it may never be evicted; none if it may" },
  { "pinned_constant", "bytes that cannot be recomputed" },
  { "pinned_escaped", "bytes whose pointer left Coopscope's sight" },
  { "pinned_max", "most bytes that could not be evicted" },
  { "pinned_operator", "bytes that the running operator needs" },
  { "pinned_unmanaged", "bytes of tensors that are not managed" },
  { "pinned_user", "bytes kept by coopscope.keep" },
  { "position", "place in the list, from 0 on" },
  { "private_pool", "private pool, as of a CUDA graph; NULL is the default" },
  { "replay_of", "operator that it recomputes; NULL the first time" },
  { "requested", "bytes that were asked for" },
  { "scattered", "part of the free bytes outside the largest free range" },
  { "search_ns", "how long the search took" },
  { "seq", "number of the event: 0, 1, 2, ..." },
  { "shape", "dimensions, a JSON array" },
  { "small", "1 if it is for small blocks" },
  { "source", "who set it: initial, flag, slider, api or preset" },
  { "staleness", "ns since it was last used" },
  { "start_ns", "when it began" },
  { "step", "step of the training" },
  { "storage", "number of the storage of which it is a version" },
  { "stream", "stream of the device; 0 is the default one" },
  { "tensor", "number of the tensor (v_tensor)" },
  { "thread", "thread that it came from; 0 is the main one" },
  { "ts_ns", "when; ns since the run began" },
  { "unclaimed", "bytes in blocks that are no tensor's" },
  { "used", "bytes in blocks after the event" },
  { "used_max", "most bytes in blocks" },
  { "used_min", "fewest bytes in blocks" },
  { "v_event.bytes", "bytes that the event is about" },
  { "v_event.kind", "what happened: alloc, free, evict, handover, ..." },
  { "v_block.file", "file of the script's line that asked for it" },
  { "v_eviction.operator", "name of the operator that needed room" },
  { "v_oom.largest", "largest free range below the budget" },
  { "v_oom.operator", "name of the operator that needed room" },
  { "v_usage.ts_ns", "begin of the millisecond; ns since the run began" },
  { "victims", "blocks to be evicted" },
  { "visited", "blocks that the search looked at" },
  { "workspace", "bytes it needed beside its inputs and outputs" },
};

static const char *
find (const Entry *entries, gsize n, const char *name)
{
  for (gsize i = 0; i < n; i++)
    if (strcmp (entries[i].name, name) == 0)
      return entries[i].meaning;
  return NULL;
}

const char *
coop_schema_view (const char *view)
{
  return find (views, G_N_ELEMENTS (views), view);
}

const char *
coop_schema_column (const char *view, const char *column)
{
  g_autofree char *own = g_strconcat (view, ".", column, NULL);
  const char *meaning = find (columns, G_N_ELEMENTS (columns), own);
  return meaning != NULL ? meaning : find (columns, G_N_ELEMENTS (columns), column);
}
