/* SPDX-License-Identifier: Apache-2.0 */
/* Pickle: a strict reader of Python's pickles that hold plain data and nothing else.
 *
 * Protocols 2 to 5: dict, list, tuple, str, bytes, int, float, bool, None. Whatever imports, calls or
 * builds something (GLOBAL, REDUCE, BUILD, ...) is refused with its byte offset, and nothing is ever
 * executed. The file is read once, from front to back, in pieces; what is shared in it stays shared.
 *
 * Python's own writer finishes a list before it is put into a dict. One key may be named whose lists
 * are handed over at that moment and replaced by a number, so that a million call stacks need not be
 * kept item by item.
 */
#ifndef COOP_PICKLE_H
#define COOP_PICKLE_H

#include <glib.h>

#include "trace/store.h"

typedef guint64 CoopPickleValue; /* 0: nothing */

typedef enum {
  COOP_PICKLE_NOTHING, /* no value: a key that is not there */
  COOP_PICKLE_NONE, COOP_PICKLE_BOOL, COOP_PICKLE_INT, COOP_PICKLE_WIDE, COOP_PICKLE_REAL, COOP_PICKLE_TEXT,
  COOP_PICKLE_BYTES, COOP_PICKLE_LIST, COOP_PICKLE_TUPLE, COOP_PICKLE_DICT,
  COOP_PICKLE_SEALED   /* a list that was handed over, and what became of it */
} CoopPickleType;

typedef struct CoopPickle CoopPickle;

/* Bytes read, 0 at the end, -1 on an error with errno. */
typedef gssize (*CoopPickleRead) (gpointer user, void *buffer, gsize n);
/* A list that is the value of the key: its number. */
typedef guint64 (*CoopPickleSeal) (gpointer user, CoopPickle *pickle, CoopPickleValue list);

typedef struct {
  CoopPickleRead read;
  gpointer read_user;
  const char *seal_key; /* NULL: none */
  CoopPickleSeal seal;
  gpointer seal_user;
  gboolean (*go_on) (gpointer user, guint64 offset); /* now and then; FALSE cancels. May be NULL */
  gpointer go_on_user;
} CoopPickleSource;

/* NULL with FOREIGN (not a pickle, or not plain data), IO or CANCELLED; the message has the offset. */
CoopPickle *coop_pickle_read (const CoopPickleSource *source, GError **error);
void coop_pickle_free (CoopPickle *pickle);
CoopPickleValue coop_pickle_root (const CoopPickle *pickle);
guint coop_pickle_protocol (const CoopPickle *pickle);

static inline CoopPickleType
coop_pickle_type (CoopPickleValue value)
{
  return (CoopPickleType) (value & 15);
}

/* Of a list or tuple: how many items, and one of them; 0 and nothing for anything else. */
guint64 coop_pickle_length (const CoopPickle *pickle, CoopPickleValue sequence);
CoopPickleValue coop_pickle_item (const CoopPickle *pickle, CoopPickleValue sequence, guint64 i);
/* Of a dict. The value of a key that comes twice is the last one's. */
guint64 coop_pickle_pairs (const CoopPickle *pickle, CoopPickleValue dict);
void coop_pickle_pair (const CoopPickle *pickle, CoopPickleValue dict, guint64 i, CoopPickleValue *key,
                       CoopPickleValue *value);
/* Where in the file a list, tuple or dict begins; 0 for anything else. */
guint64 coop_pickle_offset (const CoopPickle *pickle, CoopPickleValue value);
CoopPickleValue coop_pickle_get (const CoopPickle *pickle, CoopPickleValue dict, const char *key);
/* Equal texts are equal values: to look up the same key a million times, get its value once. */
CoopPickleValue coop_pickle_text_value (const CoopPickle *pickle, const char *text); /* nothing: not in it */
CoopPickleValue coop_pickle_find (const CoopPickle *pickle, CoopPickleValue dict, CoopPickleValue key);

/* Valid as long as the pickle, NUL-terminated; NULL if it is no text. */
const char *coop_pickle_text (const CoopPickle *pickle, CoopPickleValue value, gsize *bytes);
/* Integers and booleans modulo 2^64; FALSE if it is none, or longer. */
gboolean coop_pickle_int (const CoopPickle *pickle, CoopPickleValue value, guint64 *out);
gboolean coop_pickle_real (const CoopPickle *pickle, CoopPickleValue value, double *out);
guint64 coop_pickle_sealed (CoopPickleValue value);

#endif
