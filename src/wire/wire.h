/* SPDX-License-Identifier: Apache-2.0 */
/* Wire: all that a training process and a tool share, in one memfd.
 *
 *   page 0     CoopWireHeader: identity, sizes, positions, counters
 *   page 1     CoopControl: every parameter as an atomic
 *   then       the ring's body, a power of two of bytes, mapped twice in a row so that no event wraps
 *
 * One producer (calls serialised by the caller: the pool's lock) and one consumer. The other side is
 * not trusted: positions are copied before they are checked, and an event that does not make sense
 * ends the session, not the process. Nothing here locks or allocates after the mapping is made.
 */
#ifndef COOP_WIRE_H
#define COOP_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/event.h"
#include "core/policy.h"

#define COOP_WIRE_MAGIC 0x31474e4952504f43ull /* "COPRING1" */
#define COOP_RING_BYTES (32u << 20)           /* default body */
#define COOP_ENV_FD "COOPSCOPE_FD"            /* number of the inherited descriptor */
#define COOP_ENV_PATH "COOPSCOPE_WIRE"        /* /proc/<pid of the tool>/fd/<n>, where the number is lost */

typedef enum {
  COOP_TARGET_NONE,      /* nobody has claimed the ring */
  COOP_TARGET_RUNNING,
  COOP_TARGET_ENDED      /* said good-bye: END is in the ring */
} CoopTargetState;

/* Parameters as atomics. A writer stores values and sources, then adds 1 to `generation`, all while
 * `writing` is odd, so that a preset is seen as a whole. */
typedef struct {
  _Atomic uint64_t generation;
  _Atomic uint64_t writing;
  _Atomic int64_t bits[COOP_N_PARAMS];
  _Atomic uint32_t source[COOP_N_PARAMS];
  _Atomic uint32_t stop;          /* the tool asks the target to detach */
} CoopControl;

typedef struct CoopWire CoopWire;

typedef enum {
  COOP_WIRE_OK,
  COOP_WIRE_SYSTEM,     /* errno says */
  COOP_WIRE_FOREIGN,    /* not a wire, or sizes that cannot be */
  COOP_WIRE_PROTOCOL,   /* another version of the protocol */
  COOP_WIRE_CLAIMED     /* another process has it */
} CoopWireError;

/* Tool: a new memfd (close-on-exec) with policy as its first generation. */
CoopWireError coop_wire_create (size_t ring_bytes, const CoopPolicy *policy, CoopWire **wire);
/* Target: maps the descriptor and does not yet claim it. `fd` stays the caller's. */
CoopWireError coop_wire_open (int fd, CoopWire **wire);
void coop_wire_free (CoopWire *wire);   /* unmaps; closes the fd made by create */
int coop_wire_fd (const CoopWire *wire);
const char *coop_wire_strerror (CoopWireError error);

/* Target: takes the ring for this process, once. */
CoopWireError coop_wire_claim (CoopWire *wire);
/* Other processes that came to claim it after that, and run unmanaged. */
unsigned coop_wire_turned_away (const CoopWire *wire);
/* Target: good-bye, after END was pushed. A GAP that is still due is told; for that alone it may wait
 * a second for a consumer that moves. */
void coop_wire_end (CoopWire *wire);
CoopTargetState coop_wire_target (const CoopWire *wire, pid_t *pid);
/* Where the trace is written, for who attaches later. At most 1023 bytes. */
void coop_wire_set_trace (CoopWire *wire, const char *path);
void coop_wire_trace (const CoopWire *wire, char *path, size_t size);

/* ---- producer ---- */
/* Sets ev->seq, copies header and body, publishes. Without room the event is dropped and counted, and
 * a GAP goes before the next one that fits; sequence numbers of dropped events are used up:
 * gap.first .. gap.first + gap.missing - 1 are missing, and the GAP's own number comes next.
 * In a forked child it does nothing and returns false: the ring belongs to the process that claimed it.
 * Returns false when dropped. Wakes nobody: the consumer polls. */
bool coop_ring_push (CoopWire *wire, CoopEvent *ev, const void *body);
/* Called without any lock: waits until `bytes` and a GAP fit, at most `ms`; returns at once while the consumer
 * is known to be dead or stalled (no progress during an earlier full wait). */
bool coop_ring_wait (CoopWire *wire, size_t bytes, double ms);
size_t coop_ring_room (const CoopWire *wire);

/* ---- consumer ---- */
/* Hands events to `take` in order, each a private copy (valid during the call), until the ring is empty, `max`
 * events were taken or take returns false. Returns how many, or -1 when the ring's content does not
 * make sense. Beats the consumer's heart. */
typedef bool (*CoopTake) (void *user, const CoopEvent *ev, const void *body);
long coop_ring_drain (CoopWire *wire, size_t max, CoopTake take, void *user);
void coop_ring_beat (CoopWire *wire);   /* alive, though nothing came */

typedef struct {
  uint64_t pushed, dropped, taken;   /* events */
  uint64_t fill, fill_peak, size;    /* bytes */
  uint64_t waits, wait_ns;
} CoopRingStats;
void coop_ring_stats (const CoopWire *wire, CoopRingStats *stats);

/* ---- control page, either side, any thread ---- */
uint64_t coop_control_generation (const CoopWire *wire);  /* one atomic load */
/* A consistent copy; returns its generation. */
uint64_t coop_control_read (const CoopWire *wire, CoopPolicy *policy, uint32_t source[COOP_N_PARAMS]);
void coop_control_set (CoopWire *wire, CoopParam param, CoopValue value, CoopSource source);
/* Several at once: those whose bit is set in mask. */
void coop_control_set_many (CoopWire *wire, const CoopPolicy *policy, uint64_t mask, CoopSource source);
bool coop_control_stop (const CoopWire *wire);
void coop_control_set_stop (CoopWire *wire);

/* ---- where both run ---- */
/* RAM of this machine and of the control group, the smaller; 0 if unknown. */
uint64_t coop_host_memory (void);

#endif
