/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pickle reader share.
 *
 *   pickle.c        bytes -> opcodes -> values
 *   pickle-value.c  values: storing, looking in
 */
#ifndef COOP_PICKLE_PRIVATE_H
#define COOP_PICKLE_PRIVATE_H

#include "trace/pickle.h"

/* A value is a tag in the low 4 bits and 60 bits of payload: a small integer, or an index. */
#define COOP_PICKLE_BITS 60

typedef struct {
  union {
    CoopPickleValue *items; /* of a dict: key, value, key, value */
    guint64 sealed;         /* number, where the items are gone */
  };
  guint32 n, room;
  guint64 offset;           /* of the opcode that made it */
} CoopPickleSequence;

#define COOP_PICKLE_SEALED_ROOM G_MAXUINT32

typedef struct {
  const char *text;
  gsize bytes;
} CoopPickleText;

struct CoopPickle {
  GArray *sequences;      /* CoopPickleSequence: lists, tuples, dicts */
  GArray *texts;          /* CoopPickleText */
  GArray *ints;           /* guint64: what does not fit into a value */
  GArray *reals;          /* double */
  GHashTable *text_index; /* CoopPickleText -> index + 1 */
  GStringChunk *chunk;
  CoopPickleValue root;
  guint protocol;
};

CoopPickle *coop_pickle_new (void);
CoopPickleValue coop_pickle_new_sequence (CoopPickle *pickle, CoopPickleType type, guint64 offset);
CoopPickleSequence *coop_pickle_sequence (const CoopPickle *pickle, CoopPickleValue value);
void coop_pickle_append (CoopPickleSequence *sequence, const CoopPickleValue *items, guint64 n);
CoopPickleValue coop_pickle_new_int (CoopPickle *pickle, gint64 value);
/* 2^63 and more */
CoopPickleValue coop_pickle_new_unsigned (CoopPickle *pickle, guint64 value);
CoopPickleValue coop_pickle_new_real (CoopPickle *pickle, double value);
CoopPickleValue coop_pickle_new_text (CoopPickle *pickle, const char *text, gsize bytes);
static inline CoopPickleValue
coop_pickle_value (CoopPickleType type, guint64 payload)
{
  return payload << 4 | type;
}

#endif
