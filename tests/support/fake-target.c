/* SPDX-License-Identifier: Apache-2.0 */
/* A training process without PyTorch, for the tests of the tool: finds the wire as the adapter does,
 * and pushes a stream that a small pool of equal slots would make: operators, blocks, evictions,
 * rematerializations, steps. Changes of policy come back as events, as they must.
 *
 *     fake-target [--events N] [--rate PER_SECOND] [--exit CODE] [--die SIGNAL] [--garbage]
 *                 [--no-end] [--silent] [--print] [--done] [--collect COOP --trace FILE]
 *
 * --collect makes a wire of its own and starts `coop collect` on it, as coopscope.start does in a
 * notebook. --done prints "done" before it leaves.
 *
 * SIGINT: prints "interrupts N" (how often within 300 ms) and leaves with 130, having said END. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

#define SLOTS 64u
#define SLOT_BYTES ((uint64_t) 1 << 20)
#define EVICTED_MAX 256u

typedef struct {
  uint64_t block, tensor, op;
} Slot;

typedef struct {
  CoopWire *wire;
  uint64_t start, events, last_block, last_op, last_tensor, last_search, step, generation;
  Slot slot[SLOTS];                  /* block 0: free */
  unsigned queue[SLOTS], first, live;   /* slots in use, oldest first, in a circle */
  Slot evicted[EVICTED_MAX];
  unsigned n_evicted;
  CoopPolicy policy;
} Target;

static volatile sig_atomic_t interrupts;

static void
on_interrupt (int signum)
{
  interrupts++;
}

static uint64_t
now_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void
emit (Target *t, CoopEvent *ev, const void *body)
{
  ev->ts = now_ns () - t->start;
  coop_ring_wait (t->wire, 64 * ((size_t) 1 + ev->more), t->policy.v[COOP_PARAM_RING_WAIT].d);
  coop_ring_push (t->wire, ev, body);
  t->events++;
}

static void
emit_string (Target *t, uint64_t id, const char *text)
{
  char body[64] = "";
  CoopEvent ev = { .kind = COOP_EVENT_STRING, .more = 1 };
  strncpy (body, text, sizeof body - 1);
  ev.u.string.id = id;
  ev.u.string.bytes = strlen (body);
  emit (t, &ev, body);
}

static void
emit_policy (Target *t, CoopParam param, CoopValue old, uint32_t source)
{
  CoopEvent ev = { .kind = COOP_EVENT_POLICY };
  ev.u.policy.param = param;
  ev.u.policy.source = source;
  ev.u.policy.old_bits = old.i;
  ev.u.policy.new_bits = t->policy.v[param].i;
  ev.u.policy.generation = t->generation;
  emit (t, &ev, NULL);
}

static void
begin (Target *t)
{
  uint32_t source[COOP_N_PARAMS];
  t->generation = coop_control_read (t->wire, &t->policy, source);
  CoopEvent pool = { .kind = COOP_EVENT_POOL };
  pool.u.pool.id = 1;
  pool.u.pool.budget = t->policy.v[COOP_PARAM_BUDGET].i != 0
                           ? (uint64_t) t->policy.v[COOP_PARAM_BUDGET].i : SLOTS * SLOT_BYTES;
  pool.u.pool.capacity = 4 * SLOTS * SLOT_BYTES;
  emit (t, &pool, NULL);
  CoopEvent segment = { .kind = COOP_EVENT_SEGMENT };
  segment.u.segment.id = segment.u.segment.pool = segment.u.segment.born = 1;
  segment.u.segment.bytes = pool.u.pool.capacity;
  emit (t, &segment, NULL);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    emit_policy (t, (CoopParam) i, t->policy.v[i], source[i]);
  emit_string (t, 1, "aten.conv2d");
  emit_string (t, 2, "float32");
  emit_string (t, 3, "train.py");
  emit_string (t, 4, "forward");
  CoopEvent frame = { .kind = COOP_EVENT_FRAME };
  frame.u.frame.id = 1;
  frame.u.frame.file = 3;
  frame.u.frame.func = 4;
  frame.u.frame.line = 18;
  emit (t, &frame, NULL);
  CoopEvent stack = { .kind = COOP_EVENT_STACK };
  stack.u.stack.id = stack.u.stack.frame = 1;
  emit (t, &stack, NULL);
}

static void
follow_policy (Target *t)
{
  CoopPolicy fresh;
  uint32_t source[COOP_N_PARAMS];
  if (coop_control_generation (t->wire) == t->generation)
    return;
  t->generation = coop_control_read (t->wire, &fresh, source);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (!coop_value_equal ((CoopParam) i, fresh.v[i], t->policy.v[i]))
      {
        CoopValue old = t->policy.v[i];
        t->policy.v[i] = fresh.v[i];
        emit_policy (t, (CoopParam) i, old, source[i]);
      }
}

static uint64_t
op_begin (Target *t, uint64_t replay_of, uint64_t input)
{
  uint64_t body[8] = { input };
  CoopEvent ev = { .kind = COOP_EVENT_OP_BEGIN, .more = 1 };
  ev.u.op_begin.id = ++t->last_op;
  ev.u.op_begin.name = ev.u.op_begin.stack = 1;
  ev.u.op_begin.replay_of = replay_of;
  ev.u.op_begin.phase = COOP_PHASE_FORWARD;
  ev.u.op_begin.n_inputs = input != 0;
  ev.u.op_begin.step = (uint32_t) t->step;
  emit (t, &ev, body);
  return t->last_op;
}

static void
op_end (Target *t, uint64_t op, uint64_t output)
{
  uint64_t body[8] = { output };
  CoopEvent ev = { .kind = COOP_EVENT_OP_END, .more = 1 };
  ev.u.op_end.id = op;
  ev.u.op_end.cost = ev.u.op_end.duration = 20000;
  ev.u.op_end.n_outputs = output != 0;
  emit (t, &ev, body);
}

/* Slots that lie below the budget. */
static unsigned
limit (const Target *t)
{
  uint64_t slots = (uint64_t) t->policy.v[COOP_PARAM_BUDGET].i / SLOT_BYTES;
  return slots == 0 || slots > SLOTS ? SLOTS : slots < 4 ? 4 : (unsigned) slots;
}

/* The lowest free slot below the budget; there is one after make_room. */
static unsigned
free_slot (const Target *t)
{
  unsigned at = 0;
  while (at < limit (t) && t->slot[at].block != 0)
    at++;
  return at;
}

static unsigned
place (Target *t, uint64_t op)
{
  unsigned at = free_slot (t);
  CoopEvent ev = { .kind = COOP_EVENT_ALLOC };
  t->slot[at] = (Slot) { ++t->last_block, 0, op };
  t->queue[(t->first + t->live++) % SLOTS] = at;
  ev.u.alloc.block = t->last_block;
  ev.u.alloc.addr = at * SLOT_BYTES;
  ev.u.alloc.bytes = SLOT_BYTES;
  ev.u.alloc.requested = SLOT_BYTES - 100;
  ev.u.alloc.op = op;
  emit (t, &ev, NULL);
  return at;
}

/* Takes the oldest slot out of the queue; its content is returned and its place is free. */
static unsigned
vacate (Target *t, Slot *was)
{
  unsigned at = t->queue[t->first];
  *was = t->slot[at];
  t->slot[at].block = 0;
  t->first = (t->first + 1) % SLOTS;
  t->live--;
  return at;
}

static void
evict (Target *t, unsigned n)
{
  CoopSearchBody why = { .cost = 0.5, .ns = 900, .next_cost = 0.75 };
  CoopEvent search = { .kind = COOP_EVENT_SEARCH, .more = 1 };
  why.free_bytes = why.largest = (limit (t) - (t->live < limit (t) ? t->live : limit (t))) * SLOT_BYTES;
  search.u.search.id = ++t->last_search;
  search.u.search.need = SLOT_BYTES;
  search.u.search.lo = t->queue[t->first] * SLOT_BYTES;
  search.u.search.hi = search.u.search.lo + SLOT_BYTES;
  search.u.search.victims = n;
  search.u.search.visited = t->live;
  emit (t, &search, &why);
  for (; n > 0; n--)
    {
      Slot slot;
      unsigned at = vacate (t, &slot);
      CoopEvictBody body = { .h = 0.25, .own_cost = 20000, .staleness = 1000000 };
      CoopEvent ev = { .kind = COOP_EVENT_EVICT, .more = 1 };
      ev.u.evict.block = slot.block;
      ev.u.evict.addr = at * SLOT_BYTES;
      ev.u.evict.bytes = SLOT_BYTES;
      ev.u.evict.tensor = slot.tensor;
      ev.u.evict.search = t->last_search;
      emit (t, &ev, &body);
      t->evicted[t->n_evicted++] = slot;
    }
}

static void
make_room (Target *t)
{
  while (t->live > 1 && free_slot (t) == limit (t))
    evict (t, t->live < 3 ? 1 : 2);
  while (t->n_evicted > EVICTED_MAX - 2 * SLOTS)
    {
      CoopEvent ev = { .kind = COOP_EVENT_RELEASE };
      ev.u.release.tensor = t->evicted[--t->n_evicted].tensor;
      emit (t, &ev, NULL);
    }
}

static void
free_oldest (Target *t)
{
  Slot slot;
  CoopEvent release = { .kind = COOP_EVENT_RELEASE }, ev = { .kind = COOP_EVENT_FREE };
  release.u.release.tensor = t->slot[t->queue[t->first]].tensor;
  release.u.release.block = t->slot[t->queue[t->first]].block;
  emit (t, &release, NULL);
  ev.u.free.addr = vacate (t, &slot) * SLOT_BYTES;
  ev.u.free.block = slot.block;
  ev.u.free.bytes = SLOT_BYTES;
  ev.u.free.tensor = slot.tensor;
  emit (t, &ev, NULL);
}

static void
run_op (Target *t)
{
  make_room (t);
  Slot *last = t->live > 0 ? &t->slot[t->queue[(t->first + t->live - 1) % SLOTS]] : NULL;
  uint64_t op = op_begin (t, 0, last != NULL ? last->tensor : 0);
  Slot *slot = &t->slot[place (t, op)];
  CoopTensorBody body = { .kind = COOP_KIND_ACTIVATION, .dtype = 2, .ndim = 2, .dims = { 512, 512 } };
  CoopEvent ev = { .kind = COOP_EVENT_TENSOR, .more = 1 };
  slot->tensor = ev.u.tensor.id = ev.u.tensor.storage = ++t->last_tensor;
  ev.u.tensor.op = op;
  ev.u.tensor.bytes = SLOT_BYTES;
  ev.u.tensor.block = slot->block;
  emit (t, &ev, &body);
  op_end (t, op, slot->tensor);
}

static void
bring_back (Target *t)
{
  make_room (t);
  if (t->n_evicted == 0)
    return;
  Slot back = t->evicted[--t->n_evicted];
  uint64_t op = op_begin (t, back.op, 0);
  Slot *slot = &t->slot[place (t, op)];
  op_end (t, op, back.tensor);
  CoopEvent ev = { .kind = COOP_EVENT_HANDOVER };
  ev.u.handover.old_block = slot->block;   /* the temporary's life ends, the user's begins */
  ev.u.handover.block = slot->block = ++t->last_block;
  ev.u.handover.addr = (uint64_t) (slot - t->slot) * SLOT_BYTES;
  ev.u.handover.bytes = SLOT_BYTES;
  ev.u.handover.tensor = slot->tensor = back.tensor;
  slot->op = back.op;
  emit (t, &ev, NULL);
}

static void
train (Target *t, uint64_t events, double rate)
{
  for (uint64_t i = 0; t->events < events && interrupts == 0 && !coop_control_stop (t->wire); i++)
    {
      follow_policy (t);
      run_op (t);
      if (i % 4 == 3)
        bring_back (t);
      if (i % 3 == 2 && t->live > 4)
        free_oldest (t);
      if (i % 100 == 99)
        {
          CoopEvent ev = { .kind = COOP_EVENT_STEP };
          ev.u.step.step = ++t->step;
          emit (t, &ev, NULL);
        }
      uint64_t due = rate > 0 ? t->start + (uint64_t) ((double) t->events / rate * 1e9) : 0;
      while (now_ns () + 200000 < due && interrupts == 0)
        usleep (500);
    }
}

static int
open_wire (CoopWire **wire)
{
  const char *number = getenv (COOP_ENV_FD), *path = getenv (COOP_ENV_PATH);
  if (number != NULL && coop_wire_open (atoi (number), wire) == COOP_WIRE_OK)
    return 0;
  int fd = path != NULL ? open (path, O_RDWR | O_CLOEXEC) : -1;
  CoopWireError error = fd >= 0 ? coop_wire_open (fd, wire) : COOP_WIRE_SYSTEM;
  if (fd >= 0)
    close (fd);
  return error == COOP_WIRE_OK ? 0 : -1;
}

/* Writes nonsense where the position is, as a stray pointer could. */
static void
scribble (void)
{
  const char *path = getenv (COOP_ENV_PATH);
  int fd = open (path, O_RDWR | O_CLOEXEC);
  void *page = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED)
    memset ((char *) page + 64, 0xa5, 192);
  close (fd);
}

/* As coopscope.start: the wire is ours, `coop collect` inherits it and says when it is ready. */
static pid_t
start_collector (const char *coop, const char *trace, CoopWire **wire)
{
  CoopPolicy policy;
  int ready[2];
  char line[256], number[16];
  coop_policy_init (&policy);
  policy.v[COOP_PARAM_BUDGET].i = 32 << 20;
  if (coop_wire_create (0, &policy, wire) != COOP_WIRE_OK || pipe (ready) != 0)
    return -1;
  pid_t pid = fork ();
  if (pid == 0)
    {
      int fd = dup (coop_wire_fd (*wire));   /* without close-on-exec */
      snprintf (number, sizeof number, "%d", fd);
      dup2 (ready[1], STDOUT_FILENO);
      close (ready[0]);
      close (ready[1]);
      execl (coop, coop, "collect", "--fd", number, "--trace", trace, NULL);
      _exit (127);
    }
  close (ready[1]);
  ssize_t n = read (ready[0], line, sizeof line);
  close (ready[0]);
  return n > 0 ? pid : -1;
}

static void
say_end (Target *t, int code)
{
  CoopEvent ev = { .kind = COOP_EVENT_END };
  ev.u.end.exit_code = code;
  emit (t, &ev, NULL);
  coop_wire_end (t->wire);
}

typedef struct {
  uint64_t events;
  double rate;
  int code, die;
  bool garbage, no_end, silent, print, done;
  const char *coop, *trace;
} Options;

static void
read_options (int argc, char **argv, Options *o)
{
  for (int i = 1; i < argc; i++)
    {
      const char *value = i + 1 < argc ? argv[i + 1] : "0";
      if (strcmp (argv[i], "--events") == 0)
        o->events = strtoull (value, NULL, 10), i++;
      else if (strcmp (argv[i], "--rate") == 0)
        o->rate = strtod (value, NULL), i++;
      else if (strcmp (argv[i], "--exit") == 0)
        o->code = atoi (value), i++;
      else if (strcmp (argv[i], "--die") == 0)
        o->die = atoi (value), i++;
      else if (strcmp (argv[i], "--collect") == 0)
        o->coop = value, i++;
      else if (strcmp (argv[i], "--trace") == 0)
        o->trace = value, i++;
      o->garbage |= strcmp (argv[i], "--garbage") == 0;
      o->no_end |= strcmp (argv[i], "--no-end") == 0;
      o->silent |= strcmp (argv[i], "--silent") == 0;
      o->print |= strcmp (argv[i], "--print") == 0;
      o->done |= strcmp (argv[i], "--done") == 0;
    }
}

static void
print_something (void)
{
  printf ("line one\nloss \xff 0.125\rpart");
  fprintf (stderr, "to stderr\n");
  fflush (stdout);
}

static void
say_interrupts (void)
{
  for (int i = 0; i < 6; i++)
    usleep (50000);   /* a second signal ends a sleep early */
  printf ("interrupts %d\n", (int) interrupts);
  fflush (stdout);
}

static int
leave (Target *t, const Options *o)
{
  int code = interrupts > 0 ? 130 : o->code;
  if (o->garbage)
    scribble ();
  if (interrupts > 0)
    say_interrupts ();
  if (o->die != 0)
    {
      signal (o->die, SIG_DFL);
      raise (o->die);
    }
  if (!o->no_end)
    say_end (t, code);
  coop_wire_free (t->wire);
  return code;
}

int
main (int argc, char **argv)
{
  Target target = { .start = now_ns () };
  Options o = { .events = 10000 };
  pid_t collector = 0;
  read_options (argc, argv, &o);
  signal (SIGINT, on_interrupt);
  if (o.print)
    print_something ();
  if (o.silent)
    return o.code;
  if (o.coop != NULL)
    collector = start_collector (o.coop, o.trace, &target.wire);
  if (collector < 0 || (o.coop == NULL && open_wire (&target.wire) != 0)
      || coop_wire_claim (target.wire) != COOP_WIRE_OK)
    {
      fprintf (stderr, "fake-target: no wire\n");
      return 99;
    }
  begin (&target);
  train (&target, o.events, o.rate);
  int code = leave (&target, &o);
  if (collector > 0)
    {
      int status = 0;
      waitpid (collector, &status, 0);
      printf ("collector %d\n", status);
    }
  if (o.done)
    printf ("done\n");
  return code;
}
