/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the shared pages and what each process keeps for itself. */
#ifndef COOP_WIRE_PRIVATE_H
#define COOP_WIRE_PRIVATE_H

#include <stdalign.h>

#include "wire.h"

#define COOP_TRACE_PATH_BYTES 1024
#define COOP_LINE 64
#define COOP_EVENT_MAX ((size_t) COOP_RECORD_BYTES * (1 + UINT16_MAX))

/* Page 0. Identity is written by the creator and never again; each of the other groups has one
 * writing side and cache lines of its own. */
typedef struct {
  uint64_t magic;
  uint32_t protocol;
  uint32_t record_bytes;
  uint64_t page_bytes;
  uint64_t ring_bytes;
  uint32_t n_params;
  uint32_t reserved;

  alignas (COOP_LINE) _Atomic uint32_t target_state;   /* CoopTargetState */
  _Atomic int32_t target_pid;                          /* 0: unclaimed */
  _Atomic uint32_t turned_away;                        /* other processes that wanted it */

  alignas (COOP_LINE) _Atomic uint64_t head;           /* bytes ever written */
  _Atomic uint64_t pushed, dropped;                    /* events */
  _Atomic uint64_t waits, wait_ns;

  alignas (COOP_LINE) _Atomic uint64_t tail;           /* bytes ever taken */
  _Atomic uint64_t taken;                              /* events */
  _Atomic uint64_t fill_peak;
  _Atomic uint64_t heart;                              /* ns, CLOCK_MONOTONIC; 0: never beat */

  alignas (COOP_LINE) char trace[COOP_TRACE_PATH_BYTES];
} CoopWireHeader;

_Static_assert (sizeof (CoopWireHeader) <= 4096, "header is one page");
_Static_assert (sizeof (CoopControl) <= 4096, "control is one page");

/* Sizes and positions live here, out of the other side's reach. The positions are atomics because
 * coop_ring_wait, coop_ring_room and coop_ring_stats may be called beside push and drain. */
struct CoopWire {
  int fd;                     /* -1: the caller's, not ours to close */
  CoopWireHeader *header;
  CoopControl *control;
  uint8_t *body;              /* size bytes, twice */
  size_t size, mask;
  void *map;
  size_t map_bytes;

  /* One private page that the kernel wipes in a forked child: there it reads 0 and the ring is
   * mute, whatever the child's code forgets. MADV_DONTFORK would make the child crash instead. */
  _Atomic uint32_t *own;

  /* producer */
  _Atomic uint64_t head;
  uint64_t tail_seen;         /* tail as last read: never ahead of the real one */
  uint64_t seq;               /* of the next event */
  uint64_t missing;           /* dropped and not yet told */
  uint64_t last_ts;           /* of the event pushed or dropped last */
  _Atomic uint64_t stalled_at;  /* tail that did not move during a full wait; UINT64_MAX: none */

  /* consumer */
  _Atomic uint64_t tail;
  uint8_t *event;             /* COOP_EVENT_MAX bytes: the private copy handed out */
};

uint64_t coop_wire_now (void);
/* A GAP for what was dropped, if there is something to tell and room for it. */
void coop_ring_tell_gap (CoopWire *wire, uint32_t thread);

#endif
