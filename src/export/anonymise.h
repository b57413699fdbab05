/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymise: takes paths, host, user and command line out of a trace's texts, so that it can be
 * given to strangers. Files of the script become file1.py, file2.py, ...; those of installed packages
 * keep the part below site-packages. Names of functions and operators stay.
 */
#ifndef COOP_EXPORT_ANONYMISE_H
#define COOP_EXPORT_ANONYMISE_H

#include "trace/store.h"

typedef struct CoopAnonymiser CoopAnonymiser;

CoopAnonymiser *coop_anonymiser_new (CoopReader *reader, GError **error);
void coop_anonymiser_free (CoopAnonymiser *a);

/* Each returns `text` itself where nothing is to be hidden, and where `a` is NULL. Valid as long as `a` and
 * `text` are. */
const char *coop_anonymise_text (CoopAnonymiser *a, const char *text);
/* A fact of the run: all but a few known harmless ones are hidden. */
const char *coop_anonymise_meta (CoopAnonymiser *a, const char *key, const char *value);

#endif
