/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: which of them may still use which bytes of the pool.
 *
 * A *stain* is a range and a stream whose queued work may touch it. A block stains its range when it
 * is handed out; record_stream adds the stream that a tensor is lent to. Whoever writes there next
 * makes its own stream wait for all other stains and leaves its own alone. So no free is put off and
 * no host waits: what PyTorch's own allocator keeps back until an event has passed is given out at
 * once, and the GPU keeps the order. With one stream, as most programs have, there is one stain and
 * nothing to do. */
#include "torch/cuda.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  uint64_t begin, end;
  void *stream;
} Stain;

static struct {
  pthread_mutex_t lock;
  const CoopCudaDevice *device;
  Stain *stain;
  size_t n, room;
  CoopCuEvent event;
  void *only;
  bool seen;
  _Atomic bool many;
} streams = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
coop_cuda_streams_begin (const CoopCudaDevice *device, uint64_t capacity)
{
  pthread_mutex_lock (&streams.lock);
  streams.device = device;
  streams.n = 0;
  streams.seen = false;
  atomic_store (&streams.many, false);
  pthread_mutex_unlock (&streams.lock);
}

bool
coop_cuda_streams_matter (void)
{
  return atomic_load_explicit (&streams.many, memory_order_relaxed);
}

/* If the table cannot grow the new stain is spread over one that is there: too much waiting, never
 * too little. */
static void
add (uint64_t begin, uint64_t end, void *stream)
{
  if (begin >= end)
    return;
  for (size_t i = 0; i < streams.n; i++)
    {
      Stain *s = &streams.stain[i];
      if (s->stream == stream && begin <= s->end && s->begin <= end)
        {
          s->begin = begin < s->begin ? begin : s->begin;
          s->end = end > s->end ? end : s->end;
          return;
        }
    }
  if (streams.n == streams.room)
    {
      size_t room = streams.room ? 2 * streams.room : 64;
      Stain *more = realloc (streams.stain, room * sizeof *more);
      for (size_t i = 0; more == NULL && i < streams.n; i++)
        if (streams.stain[i].stream == stream)
          {
            streams.stain[i].begin = 0;
            streams.stain[i].end = UINT64_MAX;
            return;
          }
      if (more == NULL)
        abort (); /* a new stream and not a word of memory */
      streams.stain = more;
      streams.room = room;
    }
  streams.stain[streams.n++] = (Stain){ begin, end, stream };
}

/* Takes the range out of stain i, which may fall in two. */
static void
clip (size_t i, uint64_t begin, uint64_t end)
{
  Stain s = streams.stain[i];

  streams.stain[i] = streams.stain[--streams.n];
  add (s.begin, s.begin > begin ? s.begin : begin, s.stream);
  add (s.end < end ? s.end : end, s.end, s.stream);
}

/* `stream` waits on the GPU for what is queued on `other` until now; if that cannot be had, the host
 * waits for everything. */
static void
wait_for (void *stream, void *other)
{
  const CoopCudaTable *fn = &streams.device->cuda->fn;
  CoopCuResult rc = coop_cuda_device_enter (streams.device);

  if (rc == 0 && streams.event == NULL)
    rc = fn->event_create (&streams.event, COOP_CU_EVENT_DISABLE_TIMING);
  if (rc == 0)
    rc = fn->event_record (streams.event, other);
  if (rc == 0)
    rc = fn->stream_wait (stream, streams.event, 0);
  if (rc != 0)
    fn->ctx_synchronize ();
}

/* Of the streams whose stains overlap the range, each once. */
static void
wait_for_all (uint64_t begin, uint64_t end, void *stream)
{
  for (size_t i = 0; i < streams.n; i++)
    {
      const Stain *s = &streams.stain[i];
      bool before = false;
      if (s->stream == stream || s->begin >= end || s->end <= begin)
        continue;
      for (size_t j = 0; j < i && !before; j++)
        before = streams.stain[j].stream == s->stream && streams.stain[j].begin < end
                 && streams.stain[j].end > begin;
      if (!before)
        wait_for (stream, s->stream);
    }
}

/* False: there is one stream, and this is it. */
static bool
matters (void *stream)
{
  if (streams.device == NULL)
    return false;
  if (!streams.seen)
    {
      streams.seen = true;
      streams.only = stream;
    }
  if (!atomic_load (&streams.many) && stream != streams.only)
    {
      add (0, UINT64_MAX, streams.only);
      atomic_store (&streams.many, true);
    }
  return atomic_load (&streams.many);
}

void
coop_cuda_will_write (uint64_t addr, uint64_t bytes, void *stream)
{
  uint64_t end = addr + ((bytes + 511) & ~(uint64_t) 511);

  pthread_mutex_lock (&streams.lock);
  if (matters (stream))
    {
      wait_for_all (addr, end, stream);
      for (size_t i = 0; i < streams.n;)
        if (streams.stain[i].stream != stream && streams.stain[i].begin < end
            && streams.stain[i].end > addr)
          {
            clip (i, addr, end);
            i = 0; /* the table has changed; each turn there is less to clip */
          }
        else
          i++;
      add (addr, end, stream);
    }
  pthread_mutex_unlock (&streams.lock);
}

void
coop_cuda_will_read (uint64_t addr, uint64_t bytes, void *stream)
{
  pthread_mutex_lock (&streams.lock);
  if (matters (stream))
    {
      wait_for_all (addr, addr + bytes, stream);
      add (addr, addr + bytes, stream);
    }
  pthread_mutex_unlock (&streams.lock);
}

void
coop_cuda_uses (uint64_t addr, uint64_t bytes, void *stream)
{
  pthread_mutex_lock (&streams.lock);
  if (matters (stream))
    add (addr, addr + bytes, stream);
  pthread_mutex_unlock (&streams.lock);
}
