/* SPDX-License-Identifier: Apache-2.0 */
/* Events: from the engine into the ring of the tool that started the process. */
#include "config.h"

#include "api-private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TEXT 1024

/* Small number of this thread; the main thread is 0. */
static unsigned
thread_number (Coop *coop)
{
  if (getpid () == gettid ())
    return 0;
  pthread_t self = pthread_self ();
  for (unsigned i = 0; i < coop->n_threads; i++)
    if (pthread_equal (coop->thread[i], self))
      return i + 1;
  if (coop->n_threads == API_THREADS)
    return API_THREADS;
  coop->thread[coop->n_threads++] = self;
  return coop->n_threads;
}

void
api_tell (Coop *coop, CoopEvent *ev, const void *body)
{
  if (coop->wire == NULL || coop->ended)
    return;
  ev->ts = api_now () - coop->start_ns;
  ev->thread = thread_number (coop);
  if (!coop_ring_push (coop->wire, ev, body))
    coop->lost++;
}

static void
tell_text (Coop *coop, CoopEvent *ev, const char *text, size_t bytes)
{
  char body[MOST_TEXT] = "";
  memcpy (body, text, bytes);
  ev->more = (uint16_t) ((bytes + COOP_RECORD_BYTES - 1) / COOP_RECORD_BYTES);
  api_tell (coop, ev, body);
}

uint64_t
api_string (Coop *coop, const char *text)
{
  CoopEvent ev = { .kind = COOP_EVENT_STRING };
  ev.u.string.id = ++coop->last_string;
  ev.u.string.bytes = strnlen (text, MOST_TEXT);
  tell_text (coop, &ev, text, ev.u.string.bytes);
  return coop->last_string;
}

static void
tell_meta (Coop *coop, const char *key, const char *value)
{
  CoopEvent ev = { .kind = COOP_EVENT_META };
  char text[256];
  ev.u.meta.key_bytes = strlen (key);
  ev.u.meta.value_bytes = strlen (value);
  int n = snprintf (text, sizeof text, "%s%s", key, value);
  tell_text (coop, &ev, text, (size_t) n);
}

static bool
is_wire (int fd)
{
  uint64_t magic = 0;
  return pread (fd, &magic, sizeof magic, 0) == sizeof magic && magic == COOP_WIRE_MAGIC;
}

/* A descriptor of our own: of the inherited one if it still is the wire, else by its path. */
static int
find_wire (void)
{
  const char *number = getenv (COOP_ENV_FD), *path = getenv (COOP_ENV_PATH);
  char *end;
  long fd = number != NULL ? strtol (number, &end, 10) : -1;
  if (number != NULL && end != number && *end == 0 && fd >= 0 && fd < 1 << 20 && is_wire ((int) fd))
    return fcntl ((int) fd, F_DUPFD_CLOEXEC, 3);
  int own = path != NULL ? open (path, O_RDWR | O_CLOEXEC) : -1;
  if (own >= 0 && !is_wire (own))
    {
      close (own);
      return -1;
    }
  return own;
}

/* The tool's word goes where a person gave it; else the program's own, which the tool is told. */
static void
agree (Coop *coop)
{
  CoopPolicy theirs;
  uint32_t source[COOP_N_PARAMS];
  uint64_t mask = 0;
  coop_control_read (coop->wire, &theirs, source);
  for (int p = 0; p < COOP_N_PARAMS; p++)
    if (source[p] != COOP_SOURCE_INITIAL)
      {
        coop->first.v[p] = theirs.v[p];
        coop->source[p] = source[p];
      }
    else if (coop->source[p] == COOP_SOURCE_API)
      mask |= (uint64_t) 1 << p;
  if (mask != 0)
    coop_control_set_many (coop->wire, &coop->first, mask, COOP_SOURCE_API);
  coop->generation = coop_control_generation (coop->wire);
}

void
api_join (Coop *coop)
{
  int fd = find_wire ();
  CoopWire *wire = NULL;
  if (fd < 0)
    return;
  bool open = coop_wire_open (fd, &wire) == COOP_WIRE_OK;
  close (fd);
  if (!open)
    return;
  if (coop_wire_claim (wire) != COOP_WIRE_OK)
    {
      coop_wire_free (wire); /* another pool of this process, or another process, has it */
      return;
    }
  coop->wire = wire;
  agree (coop);
  tell_meta (coop, "library", "libcoop " COOP_VERSION);
}

void
api_leave (Coop *coop)
{
  if (coop->wire == NULL || coop->ended)
    return;
  CoopEvent ev = { .kind = COOP_EVENT_END };
  api_tell (coop, &ev, NULL);
  coop->ended = true;
  coop_wire_end (coop->wire);
}
