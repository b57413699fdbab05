/* SPDX-License-Identifier: Apache-2.0 */
/* JSON parse: one line of JSON into a flat array of values. Strict (RFC 8259), bounded in depth, made
 * to be used again for the next line. */
#ifndef COOP_JSON_PARSE_H
#define COOP_JSON_PARSE_H

#include <glib.h>

typedef enum {
  COOP_JSON_NULL, COOP_JSON_BOOL, COOP_JSON_NUMBER, COOP_JSON_STRING, COOP_JSON_ARRAY, COOP_JSON_OBJECT
} CoopJsonType;

/* Values stand in document order: what belongs to a value follows it. */
typedef struct {
  CoopJsonType type;
  gboolean whole;        /* a number without point and exponent that fits into u, not negative */
  guint span;            /* values in all: 1 and those that belong to it */
  guint n;               /* members of an array or object */
  guint64 u;             /* bool, whole number */
  double d;
  const char *text;      /* string, unescaped */
  const char *key;       /* of a member of an object, else NULL */
} CoopJsonValue;

typedef struct CoopJson CoopJson;

CoopJson *coop_json_new (void);
void coop_json_free (CoopJson *json);
/* The value of the text, NULL with a sentence in *why (static) if it is not JSON. Pointers are valid
 * until the next call. */
const CoopJsonValue *coop_json_parse (CoopJson *json, const char *text, gsize length, const char **why);

/* Member of an object by key; NULL if there is none or `object` is none. */
const CoopJsonValue *coop_json_member (const CoopJsonValue *object, const char *key);
/* First member, and the one after; `n` says how many there are. */
static inline const CoopJsonValue *
coop_json_first (const CoopJsonValue *value)
{
  return value + 1;
}
static inline const CoopJsonValue *
coop_json_next (const CoopJsonValue *value)
{
  return value + value->span;
}
const char *coop_json_text (const CoopJsonValue *object, const char *key);   /* NULL: none or no string */
gboolean coop_json_whole (const CoopJsonValue *object, const char *key, guint64 *out);

#endif
