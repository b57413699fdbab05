/* SPDX-License-Identifier: Apache-2.0 */
/* Storages: what the caller holds, and the caller's own looks into them. */
#include "api-private.h"

#include <stdlib.h>
#include <string.h>

static void
link_storage (CoopStorage *s)
{
  Coop *coop = s->coop;
  s->prev = NULL;
  s->next = coop->storages;
  if (s->next != NULL)
    s->next->prev = s;
  coop->storages = s;
}

static void
unlink_storage (CoopStorage *s)
{
  if (s->prev != NULL)
    s->prev->next = s->next;
  else
    s->coop->storages = s->next;
  if (s->next != NULL)
    s->next->prev = s->prev;
  s->next = s->prev = NULL;
}

CoopStorage *
api_storage_make (Coop *coop, uint64_t addr, size_t bytes)
{
  CoopStorage *s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  s->coop = coop;
  s->addr = addr;
  s->bytes = bytes;
  s->users = 1;
  link_storage (s);
  coop->n_storages++;
  return s;
}

void
api_storage_unuse (CoopStorage *s)
{
  Coop *coop = s->coop;
  if (--s->users > 0)
    return;
  CoopTensor *t = s->tensor;
  uint64_t addr = s->addr;
  if (t != NULL)
    t->host = NULL;
  free (s);
  if (addr != COOP_NO_ADDR)
    api_give (coop, addr);
  else if (t != NULL)
    coop_engine_release (coop->engine, t);
}

void
api_storage_unmake (CoopStorage *s)
{
  s->coop->n_storages--;
  unlink_storage (s);
  api_storage_unuse (s);
}

CoopResult
coop_storage_new (Coop *coop, size_t bytes, const void *data, unsigned flags, CoopStorage **storage)
{
  uint64_t addr;
  CoopStorage *s = NULL;
  *storage = NULL;
  api_lock (coop);
  CoopResult result = bytes == 0 || bytes > coop->capacity
                          ? api_fail (coop, COOP_FAILED_VALUE, "a storage of %zu bytes cannot be", bytes)
                          : COOP_DONE;
  if (result == COOP_DONE && !api_take (coop, NULL, bytes, false, &addr))
    result = COOP_FAILED_MEMORY;
  if (result == COOP_DONE && (s = api_storage_make (coop, addr, bytes)) == NULL)
    {
      api_give (coop, addr);
      result = api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
    }
  if (s != NULL)
    {
      int64_t dim = (int64_t) bytes;
      CoopAdopt adopt = { .addr = addr, .requested = bytes, .pin = COOP_PIN_CONSTANT, .ndim = 1,
                          .kind = flags & COOP_STATE ? COOP_KIND_STATE : COOP_KIND_OTHER,
                          .dtype = coop->dtype, .dims = &dim, .host = s };
      if (data != NULL)
        memcpy (api_at (coop, addr), data, bytes);
      else
        memset (api_at (coop, addr), 0, bytes);
      s->tensor = coop_engine_adopt (coop->engine, &adopt);
      *storage = s;
    }
  api_act (coop);
  api_unlock (coop);
  return result;
}

void
coop_drop (CoopStorage *s)
{
  if (s == NULL)
    return;
  Coop *coop = s->coop;
  api_lock (coop);
  s->dropped = true;
  coop->n_storages--;
  if (s->gets == NULL)
    unlink_storage (s);
  api_storage_unuse (s);
  api_act (coop);
  api_unlock (coop);
}

size_t
coop_storage_bytes (const CoopStorage *s)
{
  return s->bytes;
}

bool
coop_storage_present (CoopStorage *s)
{
  api_lock (s->coop);
  bool present = s->addr != COOP_NO_ADDR;
  api_unlock (s->coop);
  return present;
}

/* ---- getting ------------------------------------------------------------------------------ */

static CoopResult
open_call (CoopStorage *s, ApiGet *g, uint64_t name, unsigned use)
{
  Coop *coop = s->coop;
  g->input = (CoopInput) { s->tensor, use };
  g->call = (CoopCall) { .inputs = &g->input, .n_inputs = 1, .phase = coop->phase, .name = name,
                         .thread = api_thread () };
  if (!coop_engine_begin (coop->engine, &g->call))
    return api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
  api_act (coop);
  return api_prepare (coop, &g->call);
}

/* The new version begins before its first byte is written: until the release, what is run again may not
 * take these bytes for the old ones. */
static CoopResult
overwrite (CoopStorage *s, ApiGet *g)
{
  CoopTensor *written[1] = { NULL };
  CoopResult result = open_call (s, g, s->coop->put_name, COOP_USE_WRITE);
  if (result != COOP_DONE)
    return result;
  coop_engine_end (s->coop->engine, &g->call, NULL, 0, 0, written);
  if (written[0] != NULL)
    s->tensor = written[0];
  return COOP_DONE;
}

/* A get is an operator of the caller's own, open until it is released. */
static CoopResult
get (CoopStorage *s, ApiGet *g)
{
  s->users++;
  CoopResult result = g->writing ? overwrite (s, g) : COOP_DONE;
  if (result == COOP_DONE)
    result = open_call (s, g, s->coop->get_name, COOP_USE_READ);
  if (result != COOP_DONE)
    api_storage_unuse (s);
  return result;
}

CoopResult
coop_get (CoopStorage *s, CoopAccess access, void **bytes)
{
  Coop *coop = s->coop;
  ApiGet *g = calloc (1, sizeof *g);
  CoopResult result;
  *bytes = NULL;
  api_lock (coop);
  if (g == NULL)
    result = api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
  else if (s->dropped || (s->gets != NULL && (access != COOP_READ || s->gets->writing)))
    result = api_fail (coop, COOP_FAILED_VALUE, "the storage was %s already",
                       s->dropped ? "dropped" : "got");
  else
    {
      g->writing = access != COOP_READ;
      result = get (s, g);
    }
  if (g != NULL && result == COOP_DONE)
    {
      g->outer = s->gets;
      s->gets = g;
      *bytes = api_at (coop, s->addr);
    }
  else
    free (g);
  api_act (coop);
  api_unlock (coop);
  return result;
}

void
coop_release (CoopStorage *s)
{
  Coop *coop = s->coop;
  api_lock (coop);
  ApiGet *g = s->gets;
  if (g != NULL)
    {
      s->gets = g->outer;
      coop_engine_end (coop->engine, &g->call, NULL, 0, 0, NULL);
      free (g);
      if (s->dropped && s->gets == NULL)
        unlink_storage (s);
      api_storage_unuse (s);
      api_act (coop);
    }
  api_unlock (coop);
}

CoopResult
coop_keep (CoopStorage *s)
{
  Coop *coop = s->coop;
  CoopInput input = { s->tensor, COOP_USE_KEEP };
  CoopCall call = { .inputs = &input, .n_inputs = 1, .phase = coop->phase, .thread = api_thread () };
  api_lock (coop);
  input.tensor = s->tensor;
  CoopResult result = coop_engine_begin (coop->engine, &call)
                          ? COOP_DONE
                          : api_fail (coop, COOP_FAILED_MEMORY, "no memory for the pool's own books");
  s->users++;
  if (result == COOP_DONE)
    result = api_prepare (coop, &call);
  if (result == COOP_DONE)
    coop_engine_end (coop->engine, &call, NULL, 0, 0, NULL);
  api_storage_unuse (s);
  api_act (coop);
  api_unlock (coop);
  return result;
}
