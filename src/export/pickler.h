/* SPDX-License-Identifier: Apache-2.0 */
/* Pickler: writes Python's dicts, lists, tuples, texts and numbers as pickle protocol 4, straight into a
 * file. Texts, and what the caller asks for, are written once and referred to by number from then on.
 */
#ifndef COOP_EXPORT_PICKLER_H
#define COOP_EXPORT_PICKLER_H

#include "export/out.h"

typedef struct CoopPickler CoopPickler;

CoopPickler *coop_pickler_new (CoopOut *out);
/* Writes the end of the pickle and frees. */
void coop_pickler_finish (CoopPickler *pickle);

/* A dict's keys and values, or a list's elements, come between begin and end. */
void coop_pickler_begin_dict (CoopPickler *pickle);
void coop_pickler_end_dict (CoopPickler *pickle);
void coop_pickler_begin_list (CoopPickler *pickle);
void coop_pickler_end_list (CoopPickler *pickle);

void coop_pickler_text (CoopPickler *pickle, const char *text); /* kept and shared */
void coop_pickler_uint (CoopPickler *pickle, guint64 value);
void coop_pickler_int (CoopPickler *pickle, gint64 value);
void coop_pickler_bool (CoopPickler *pickle, gboolean value);
void coop_pickler_pair (CoopPickler *pickle, guint64 a, guint64 b); /* (a, b) */

/* Remembers the object just written; returns its number for coop_pickler_get. */
guint32 coop_pickler_keep (CoopPickler *pickle);
void coop_pickler_get (CoopPickler *pickle, guint32 number);

#endif
