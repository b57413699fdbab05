/* SPDX-License-Identifier: Apache-2.0 */
/* Escape: a pointer leaves our sight, so bytes must be there and stay where they are: for life, or
 * for the length of a call (tolist, torch.save). */
#include "torch/host.h"

#include <stdlib.h>

struct CoopScope {
  CoopCall call;
  CoopInput input;
  CoopTensor *written;
  CoopScope *next;
};

/* The engine's tensor of a Python tensor, with a watched host. NULL without an exception: it is none
 * of ours. */
static CoopTensor *
tensor_of (PyObject *tensor, bool *already, unsigned use)
{
  CoopView view;
  void *base;

  if (!coop_view_read (tensor, &view) || view.data == NULL)
    return NULL;
  if (coop_arena_offset (coop.arena, view.data) == UINT64_MAX
      && coop_shadow_owner (coop.shadow, view.data, &base) == NULL
      && !coop_foreign_move_in (tensor, &view))
    return NULL;
  coop_lock ();
  CoopTensor *t = coop_find (&view, false);
  *already = t != NULL && use == COOP_USE_ESCAPE && t->pin == COOP_PIN_ESCAPED
             && t->addr != COOP_NO_ADDR;
  coop_unlock ();
  CoopHost *host = t ? t->host : NULL;
  if (host == NULL)
    return NULL;
  if (host->weak == NULL && host->borrowed == NULL)
    {
      PyObject *storage = coop_storage_of (tensor);
      bool ok = storage != NULL && coop_host_watch (host, storage);
      Py_XDECREF (storage);
      if (!ok)
        return NULL;
    }
  return t;
}

static void
finish (CoopScope *s)
{
  coop_lock ();
  coop_engine_end (coop.engine, &s->call, NULL, 0, 0, &s->written);
  coop_unlock ();
}

static CoopScope *
open_scope (CoopTensor *t, unsigned use)
{
  CoopScope *s = calloc (1, sizeof *s);

  if (s == NULL)
    {
      PyErr_NoMemory ();
      return NULL;
    }
  s->input = (CoopInput){ t, use };
  s->call.inputs = &s->input;
  s->call.n_inputs = 1;
  s->call.thread = &coop_thread;
  coop_lock ();
  bool ok = coop_engine_begin (coop.engine, &s->call);
  coop_unlock ();
  if (!ok)
    PyErr_NoMemory ();
  if (ok && coop_replay_all (&s->call))
    return s;
  free (s);
  return NULL;
}

bool
coop_touch (PyObject *tensor, unsigned use, CoopScope **scope)
{
  bool already = false;

  if (!coop_on ())
    return true;
  CoopTensor *t = tensor_of (tensor, &already, use);
  if (t == NULL || already)
    return !PyErr_Occurred ();
  CoopScope *s = open_scope (t, use);
  coop_act ();
  if (s == NULL)
    return false;
  if (use == 0 && scope != NULL)
    {
      s->next = *scope;
      *scope = s;
      return true;
    }
  finish (s);
  free (s);
  coop_act ();
  return true;
}

void
coop_touch_end (CoopScope *scope)
{
  while (scope != NULL)
    {
      CoopScope *next = scope->next;
      if (coop_on ())
        finish (scope);
      free (scope);
      scope = next;
    }
  if (coop_on ())
    coop_act ();
}

/* Evicted ones at this moment; new ones come to the front of the list and need no visit. */
static unsigned
list_evicted (CoopTensor ***list)
{
  unsigned n = 0;

  for (CoopHost *h = coop_host_first (); h != NULL; h = h->next)
    n += h->shadow != NULL;
  *list = malloc ((n + 1) * sizeof **list);
  n = 0;
  for (CoopHost *h = *list ? coop_host_first () : NULL; h != NULL; h = h->next)
    if (h->shadow != NULL)
      (*list)[n++] = h->tensor;
  return n;
}

/* Keeps what it brought back until the end, so that one does not push out the other. */
static bool
bring_back (CoopTensor **list, unsigned n, CoopScope **scopes)
{
  for (unsigned i = 0; i < n; i++)
    {
      coop_lock ();
      bool evicted = list[i]->state == COOP_EVICTED;
      coop_unlock ();
      CoopScope *s = evicted ? open_scope (list[i], 0) : NULL;
      if (evicted && s == NULL)
        return false;
      if (s != NULL)
        {
          s->next = *scopes;
          *scopes = s;
        }
    }
  return true;
}

bool
coop_touch_all (bool as_fits)
{
  CoopTensor **list;
  CoopScope *scopes = NULL;
  unsigned n = list_evicted (&list);

  coop_thread.quiet = as_fits;
  bool ok = list != NULL && bring_back (list, n, &scopes);
  coop_thread.quiet = false;
  free (list);
  if (as_fits)
    {
      PyErr_Clear ();
      ok = true;
    }
  coop_touch_end (scopes);
  return ok;
}

bool
coop_detach (void)
{
  CoopPolicy policy = coop_policy_now ();

  if (coop_on ())
    {
      policy.v[COOP_PARAM_BUDGET].i = 0;
      policy.v[COOP_PARAM_STRESS].i = 0;
      coop_policy_change (&policy, (uint64_t) 1 << COOP_PARAM_BUDGET | (uint64_t) 1 << COOP_PARAM_STRESS);
      if (!coop_touch_all (false))
        return false;
      coop_pool_end (0);
    }
  if (atomic_load (&coop.run) != COOP_RUN_CHILD)
    atomic_store (&coop.run, COOP_RUN_OFF);
  return true;
}
