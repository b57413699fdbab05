/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver: streams and events. Work waits in its stream and runs in order; a wait for an event
 * runs the other stream first. */
#include "fake-cuda-private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define X(member, symbol, arguments) API CoopCuResult symbol arguments;
COOP_CUDA_FUNCTIONS (X)
#undef X

Stream *
fake_stream (CoopCuStream stream)
{
  if (stream == NULL)
    return &fake.null_stream;
  for (Stream *s = fake.streams; s != NULL; s = s->next)
    if (s == stream)
      return s;
  return NULL;
}

static bool
known_event (const Event *event)
{
  for (const Event *e = fake.events; e != NULL; e = e->next)
    if (e == event)
      return true;
  return false;
}

static uint64_t
now (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void
run_bytes (const Work *w)
{
  bool reads = w->kind == WORK_COPY || w->kind == WORK_TO_HOST, writes = w->kind != WORK_TO_HOST;
  void *to = (void *) (uintptr_t) w->to, *from = (void *) (uintptr_t) w->from;

  if (w->kind == WORK_TOUCH)
    writes = w->write;
  if ((reads && !fake_accessible (w->from, w->bytes, false))
      || (w->kind != WORK_TO_HOST && !fake_accessible (w->to, w->bytes, writes)))
    {
      fake.broken = COOP_CU_ILLEGAL_ADDRESS;
      return;
    }
  if (w->kind == WORK_COPY)
    memmove (to, from, w->bytes);
  else if (w->kind == WORK_TO_HOST)
    memcpy (w->host, from, w->bytes);
  else if (w->kind == WORK_FROM_HOST)
    memcpy (to, w->host, w->bytes);
  else if (w->kind == WORK_SET)
    for (uint64_t i = 0; i < w->bytes / 4; i++)
      memcpy ((char *) to + 4 * i, &w->value, 4);
  else if (w->write)
    memset (to, 0xa5, w->bytes);
}

static void
run_work (Work *w)
{
  switch (w->kind)
    {
    case WORK_RECORD:
      if (known_event (w->event))
        {
          w->event->done = w->seq;
          w->event->ns = now ();
        }
      break;
    case WORK_WAIT:
      if (known_event (w->event) && w->event->done < w->seq)
        fake_run_stream (w->event->stream);
      break;
    case WORK_FREE:
      fake_chunk_freed (w->chunk);
      break;
    default:
      if (fake.broken == 0)
        run_bytes (w);
    }
  if (w->kind == WORK_FROM_HOST)
    free (w->host);
}

void
fake_run_stream (Stream *stream)
{
  while (stream != NULL && stream->first != NULL)
    {
      Work *w = stream->first;
      stream->first = w->next;
      if (stream->first == NULL)
        stream->last = &stream->first;
      run_work (w);
      free (w);
    }
}

void
fake_run_all (void)
{
  fake_run_stream (&fake.null_stream);
  for (Stream *s = fake.streams; s != NULL; s = s->next)
    fake_run_stream (s);
}

CoopCuResult
fake_queue (Stream *stream, const Work *work)
{
  Work *w = stream ? malloc (sizeof *w) : NULL;

  if (w == NULL)
    return COOP_CU_INVALID_HANDLE;
  *w = *work;
  w->next = NULL;
  if (stream->first == NULL)
    stream->last = &stream->first;
  *stream->last = w;
  stream->last = &w->next;
  if (!fake.lazy)
    fake_run_stream (stream);
  return fake.broken;
}

CoopCuResult
cuStreamCreate (CoopCuStream *out, unsigned flags)
{
  ENTER (true);
  Stream *s = calloc (1, sizeof *s);
  s->last = &s->first;
  s->next = fake.streams;
  fake.streams = s;
  *out = s;
  LEAVE (0);
}

CoopCuResult
cuStreamDestroy_v2 (CoopCuStream stream)
{
  ENTER (true);
  for (Stream **link = &fake.streams; *link != NULL; link = &(*link)->next)
    if (*link == stream)
      {
        fake_run_stream (stream); /* a real one lives on until its work is done */
        *link = stream->next;
        free (stream);
        LEAVE (0);
      }
  LEAVE (COOP_CU_INVALID_HANDLE);
}

CoopCuResult
cuStreamSynchronize (CoopCuStream stream)
{
  ENTER (true);
  if (fake_stream (stream) == NULL)
    LEAVE (COOP_CU_INVALID_HANDLE);
  fake_run_stream (fake_stream (stream));
  fake_pools_synchronized ();
  LEAVE (fake.broken);
}

CoopCuResult
cuStreamWaitEvent (CoopCuStream stream, CoopCuEvent event, unsigned flags)
{
  ENTER (true);
  if (!known_event (event) || flags != 0)
    LEAVE (COOP_CU_INVALID_HANDLE);
  LEAVE (fake_queue (fake_stream (stream),
                     &(Work){ .kind = WORK_WAIT, .event = event, .seq = event->asked }));
}

CoopCuResult
cuStreamIsCapturing (CoopCuStream stream, int *status)
{
  ENTER (true);
  *status = fake.capture;
  LEAVE (0);
}

CoopCuResult
cuEventCreate (CoopCuEvent *out, unsigned flags)
{
  ENTER (true);
  if (flags != COOP_CU_EVENT_DEFAULT && flags != COOP_CU_EVENT_DISABLE_TIMING)
    LEAVE (COOP_CU_INVALID_VALUE);
  Event *e = calloc (1, sizeof *e);
  e->timed = flags == COOP_CU_EVENT_DEFAULT;
  e->next = fake.events;
  fake.events = e;
  *out = e;
  LEAVE (0);
}

CoopCuResult
cuEventDestroy_v2 (CoopCuEvent event)
{
  ENTER (true);
  for (Event **link = &fake.events; *link != NULL; link = &(*link)->next)
    if (*link == event)
      {
        *link = event->next;
        free (event);
        LEAVE (0);
      }
  LEAVE (COOP_CU_INVALID_HANDLE);
}

CoopCuResult
cuEventRecord (CoopCuEvent event, CoopCuStream stream)
{
  ENTER (true);
  if (!known_event (event) || fake_stream (stream) == NULL)
    LEAVE (COOP_CU_INVALID_HANDLE);
  event->stream = fake_stream (stream);
  event->asked++;
  LEAVE (fake_queue (event->stream,
                     &(Work){ .kind = WORK_RECORD, .event = event, .seq = event->asked }));
}

CoopCuResult
cuEventQuery (CoopCuEvent event)
{
  ENTER (true);
  if (!known_event (event))
    LEAVE (COOP_CU_INVALID_HANDLE);
  LEAVE (event->done == event->asked ? 0 : COOP_CU_NOT_READY);
}

CoopCuResult
cuEventSynchronize (CoopCuEvent event)
{
  ENTER (true);
  if (!known_event (event))
    LEAVE (COOP_CU_INVALID_HANDLE);
  if (event->done < event->asked)
    fake_run_stream (event->stream);
  LEAVE (fake.broken);
}

CoopCuResult
cuEventElapsedTime (float *ms, CoopCuEvent begin, CoopCuEvent end)
{
  ENTER (true);
  if (!known_event (begin) || !known_event (end) || !begin->timed || !end->timed || begin->asked == 0
      || end->asked == 0)
    LEAVE (COOP_CU_INVALID_HANDLE);
  if (begin->done < begin->asked || end->done < end->asked)
    LEAVE (COOP_CU_NOT_READY);
  *ms = (float) (end->ns - begin->ns) / 1e6f;
  LEAVE (0);
}
