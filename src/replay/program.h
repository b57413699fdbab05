/* SPDX-License-Identifier: Apache-2.0 */
/* Program: what a run asked of memory, without what a policy made of it: constants, operators with
 * inputs, outputs and cost, and the moments at which the user let go. It can be run again through the
 * engine under any policy (run.h).
 *
 * It comes from JSON lines (.jsonl, .jsonl.gz), from a trace with operators (.coop), or from a log of
 * DTR's simulator. JSON lines, one object each:
 *
 *   {"meta":{"name":..,"peak":..}}               first; every key may be missing; "machine": "bandwidth"
 *                                                (bytes a s) and "launch_ns" price the copies of moves
 *   {"const":[id,bytes]}                         exists before the step, never evicted
 *   {"op":name,"in":[ids],"out":[[id,bytes]..],"mut":[ids],"cost":ns}   ids are storages; mut, a part
 *                                                of in, is written in place
 *   {"rel":id}                                   the user's last reference went
 *
 * A program that came from a trace has more to say, in keys that other readers may ignore:
 *
 *   op: "phase":"forward"|"backward"|"optimizer"|"other", "expensive":true, "noreplay":true, "failed":true,
 *       "scratch":[ids] written, but nothing depends on it; "state":[ids] is a parameter from here on;
 *       "aside":[ids] pinned, not read; "fixed":[n..] outputs that are constant; "again":[ns..] cost
 *       of its first, second .. recomputation; "do":[["out",n] | ["tmp",block,bytes] | ["free",block]
 *       | ["rel",id] ..] what it does to memory, in order (without: its outputs, in order)
 *   {"tmp":[block,bytes]} {"free":block}         a block that is no tensor (yet)
 *   {"adopt":[id,block,bytes,"kind","pin"]}          which becomes one
 *   {"rel":id,"early":true} (also free)          before the moves that the operator before it made due
 *   {"touch":[id,"brief"|"escape"|"keep"|"state"]}  is brought back, or made to stay for ever
 *   {"pin":[id,"pin"]}                           stays from here on, as it is
 *   {"set":["parameter","value","source"]}       somebody changed the policy during the run
 */
#ifndef COOP_PROGRAM_H
#define COOP_PROGRAM_H

#include <glib.h>

#include "core/engine.h"

#define COOP_PROGRAM_ERROR (coop_program_error_quark ())
typedef enum {
  COOP_PROGRAM_ERROR_IO,       /* cannot be read or written */
  COOP_PROGRAM_ERROR_FOREIGN,  /* not a program of a kind that is known */
  COOP_PROGRAM_ERROR_DAMAGED,  /* cut short, or makes no sense; the message names the line */
  COOP_PROGRAM_ERROR_GAPS      /* a trace with events missing */
} CoopProgramError;
GQuark coop_program_error_quark (void);

typedef enum {
  COOP_DO_CONST,    /* slot, bytes */
  COOP_DO_OP,       /* op */
  COOP_DO_RELEASE,  /* slot */
  COOP_DO_TOUCH,    /* slot, use */
  COOP_DO_TMP,      /* block, bytes */
  COOP_DO_FREE,     /* block */
  COOP_DO_PIN,      /* slot, pin; as it is, without bringing anything back */
  COOP_DO_ADOPT,    /* slot, block, bytes, kind, pin */
  COOP_DO_SET       /* param, value, source */
} CoopDoKind;

typedef struct {
  guint32 slot;
  guint32 use;      /* COOP_USE_... */
} CoopProgramInput;

typedef struct {
  guint32 slot;     /* COOP_NO_SLOT: has no block of its own */
  gboolean fixed;   /* constant */
  guint64 bytes;
} CoopProgramOutput;

typedef enum { COOP_STEP_OUT, COOP_STEP_TMP, COOP_STEP_FREE, COOP_STEP_RELEASE } CoopStepKind;
typedef struct {
  CoopStepKind kind;
  guint32 index;    /* output, block or slot */
  guint64 bytes;    /* TMP */
} CoopProgramStep;

typedef struct {
  guint32 name;     /* index into names */
  guint8 phase;     /* CoopPhase */
  guint8 op_class;  /* CoopOpClass */
  gboolean replayable, failed;
  guint64 cost;     /* ns */
  guint32 n_inputs, n_outputs, n_steps, n_again;
  CoopProgramInput *inputs;
  CoopProgramOutput *outputs;
  CoopProgramStep *steps;   /* NULL: each output, in order */
  guint64 *again;
} CoopProgramOp;

typedef struct {
  CoopDoKind kind;
  guint32 slot, block;
  guint32 use;               /* TOUCH */
  guint8 tensor_kind, pin;   /* CONST, ADOPT; PIN */
  gboolean early;            /* RELEASE, FREE: before the host acts on what the operator before it made due */
  guint32 param, source;     /* SET */
  CoopValue value;
  guint64 bytes;
  CoopProgramOp *op;
} CoopProgramLine;

#define COOP_NO_SLOT G_MAXUINT32

typedef struct {
  char *name;                /* of the program, for people; never NULL */
  GArray *lines;             /* CoopProgramLine */
  GPtrArray *names;          /* of operators, char * */
  guint32 n_slots, n_blocks;
  guint64 ops, total_ns;     /* operators, and the sum of their costs */
  guint64 constant;          /* bytes of constants before the first operator, rounded to 512 */
  guint64 stated_peak;       /* as the file says; 0 if it does not */
  guint64 capacity;          /* of the pool it was recorded in; 0 unknown */
  double copy_rate;          /* bytes a ns that its machine copies (read and written again); 0 unknown */
  guint64 launch_ns;         /* what a copy takes beside */
  gboolean has_policy;       /* of the recorded run */
  CoopPolicy policy;
  GHashTable *name_index;
} CoopProgram;

/* Any of the kinds above, told by content. */
CoopProgram *coop_program_load (const char *path, GError **error);
void coop_program_free (CoopProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopProgram, coop_program_free)

/* JSON lines; gzipped if the path ends in .gz. Replaces a file only when all is written. */
gboolean coop_program_save (const CoopProgram *program, const char *path, GError **error);

/* ---- for readers of programs ---- */
CoopProgram *coop_program_new (const char *name);
/* Index of an operator's name. */
guint32 coop_program_name (CoopProgram *program, const char *name);
/* Appends; the program owns line.op. */
void coop_program_add (CoopProgram *program, const CoopProgramLine *line);
void coop_program_op_free (CoopProgramOp *op);
/* COOP_CLASS_EXPENSIVE for convolutions, matrix products and the like, by name. */
CoopOpClass coop_program_class (const char *name);
/* "aten::convolution.default", "aten.convolution" -> "convolution". */
char *coop_program_bare_name (const char *name);

#endif
