/* SPDX-License-Identifier: Apache-2.0 */
/* Events whose content is a function of a number, so that a reader can check every byte. */
#ifndef WIRE_SUPPORT_H
#define WIRE_SUPPORT_H

#include <glib.h>
#include <string.h>

#include "wire/wire.h"

#define SUPPORT_MORE_MAX 40

static inline guint64
support_mix (guint64 x)
{
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/* Number of body records of event i: mostly 0 or 1, sometimes many. */
static inline guint16
support_more (guint64 i)
{
  guint64 r = support_mix (i) % 100;
  return r < 50 ? 0 : r < 95 ? 1 : (guint16) (r % SUPPORT_MORE_MAX);
}

static inline void
support_event (guint64 i, CoopEvent *ev, guint64 *body)
{
  memset (ev, 0, sizeof *ev);
  ev->ts = i;
  ev->kind = COOP_EVENT_ALLOC;
  ev->more = support_more (i);
  ev->u.alloc.block = i;
  ev->u.alloc.addr = support_mix (i + 1);
  for (guint k = 0; k < ev->more * 8u; k++)
    body[k] = support_mix (i * 1000 + k);
}

static inline void
support_check (const CoopEvent *ev, const void *body)
{
  guint64 i = ev->u.alloc.block;
  const guint64 *word = body;
  g_assert_cmpuint (ev->kind, ==, COOP_EVENT_ALLOC);
  g_assert_cmpuint (ev->more, ==, support_more (i));
  g_assert_cmpuint (ev->u.alloc.addr, ==, support_mix (i + 1));
  for (guint k = 0; k < ev->more * 8u; k++)
    if (word[k] != support_mix (i * 1000 + k))
      g_error ("event %" G_GUINT64_FORMAT ": body word %u differs", i, k);
}

static inline gboolean
support_push (CoopWire *wire, guint64 i)
{
  CoopEvent ev;
  guint64 body[SUPPORT_MORE_MAX * 8];
  support_event (i, &ev, body);
  return coop_ring_push (wire, &ev, body);
}

static inline CoopWire *
support_wire (gsize bytes)
{
  CoopPolicy policy;
  CoopWire *wire = NULL;
  coop_policy_init (&policy);
  g_assert_cmpint (coop_wire_create (bytes, &policy, &wire), ==, COOP_WIRE_OK);
  return wire;
}

/* What a reader has seen: every number up to `next` is either an event's or told by a gap. */
typedef struct {
  guint64 next, events, missing, gaps;
} Seen;

static inline bool
support_take (void *user, const CoopEvent *ev, const void *body)
{
  Seen *seen = user;
  if (ev->kind == COOP_EVENT_GAP)
    {
      g_assert_cmpuint (ev->u.gap.first, ==, seen->next);
      g_assert_cmpuint (ev->u.gap.first + ev->u.gap.missing, ==, ev->seq);
      seen->missing += ev->u.gap.missing;
      seen->gaps++;
      seen->next = ev->seq + 1;
      return true;
    }
  g_assert_cmpuint (ev->seq, ==, seen->next);
  support_check (ev, body);
  seen->next++;
  seen->events++;
  return true;
}

#endif
