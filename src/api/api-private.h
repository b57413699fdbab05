/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of libcoop. Everything below wants the pool's lock unless stated otherwise. */
#ifndef COOP_API_PRIVATE_H
#define COOP_API_PRIVATE_H

#include "coop.h"

#include "core/engine.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>

#define API_THREADS 64

struct CoopOperator
{
  CoopOperatorInfo info;
  CoopOperator *next;
  uint64_t string;       /* id of its name */
  char name[];
};

/* A coop_get that was not released yet. */
typedef struct ApiGet ApiGet;
struct ApiGet
{
  CoopCall call;
  CoopInput input;
  bool writing;
  ApiGet *outer;
};

/* What the user holds, or the temporary of a borrowed tensor. */
struct CoopStorage
{
  Coop *coop;
  CoopTensor *tensor;    /* newest version */
  uint64_t addr;         /* COOP_NO_ADDR: evicted */
  size_t bytes;
  unsigned users;        /* the caller (0 or 1), coop_get and operators under way, holds of the engine */
  bool temporary, dropped, hashed;
  uint64_t hash;         /* of the evicted bytes, with policy verify */
  ApiGet *gets;          /* innermost first */
  CoopStorage *next, *prev;
};

/* What a record remembers of its arguments. Inputs are numbered as the engine has them, each once. */
typedef struct
{
  const CoopOperator *op;
  unsigned n_in, n_slots, n_out;
  size_t out_bytes[COOP_MOST];
  uint8_t slot[COOP_MOST];   /* argument -> input */
  uint8_t use[COOP_MOST];    /* of inputs */
  size_t workspace, params_bytes;
  unsigned char params[];
} ApiRecord;

struct Coop
{
  pthread_mutex_t lock;
  pthread_cond_t ended_one; /* an operator, or a get, may have */
  CoopEngine *engine;
  uint8_t *memory;
  uint64_t capacity;
  bool own_memory;
  CoopStorage *storages; /* that the caller has, or has got */
  uint64_t n_storages;   /* not dropped */
  CoopOperator *operators;
  CoopPhase phase;
  uint64_t since_stress;
  uint64_t dtype, get_name, put_name, last_string;
  uint64_t thrashed;
  char message[512];

  CoopWire *wire;        /* NULL: nobody listens */
  bool ended;            /* good-bye was said */
  uint64_t start_ns, generation, lost;
  CoopPolicy first;      /* before there is an engine */
  uint32_t source[COOP_N_PARAMS];
  pthread_t thread[API_THREADS];
  unsigned n_threads;
};

/* ---- coop.c ---- */
/* Takes the lock, and over what somebody turned. */
void api_lock (Coop *coop);
void api_unlock (Coop *coop);
CoopResult api_fail (Coop *coop, CoopResult result, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
uint64_t api_now (void);

/* ---- events.c ---- */
void api_tell (Coop *coop, CoopEvent *ev, const void *body);
uint64_t api_string (Coop *coop, const char *text);
/* The wire of the tool that started this process, if there is one. */
void api_join (Coop *coop);
void api_leave (Coop *coop);

/* ---- memory.c ---- */
void *api_at (const Coop *coop, uint64_t addr);
/* One block, evicting what must go. retry: a failure is not final. */
bool api_take (Coop *coop, const CoopCall *call, size_t bytes, bool retry, uint64_t *addr);
/* n blocks, or none. Between attempts tensors are moved together, inputs of the call too: what the
 * caller knows of addresses of tensors is void afterwards. */
bool api_take_all (Coop *coop, const CoopCall *call, const size_t *bytes, unsigned n, uint64_t *addr);
void api_give (Coop *coop, uint64_t addr);
void api_evict_all (Coop *coop);
/* Whole pages of a range that nobody will read go back to the system. */
void api_return_pages (Coop *coop, uint64_t lo, uint64_t hi);
/* The budget shrank. */
void api_evict_down (Coop *coop);
/* Does what the engine wants done. */
void api_act (Coop *coop);
uint64_t api_hash (const void *data, size_t bytes);

/* ---- storage.c ---- */
CoopStorage *api_storage_make (Coop *coop, uint64_t addr, size_t bytes);
/* Takes back what was just made, block and all. */
void api_storage_unmake (CoopStorage *storage);
/* One user less; with the last one the storage goes. */
void api_storage_unuse (CoopStorage *storage);

/* ---- replay.c ---- */
/* Brings the inputs of a call back. Not DONE: the call is aborted. Drops the lock while operators run. */
CoopResult api_prepare (Coop *coop, CoopCall *call);
/* Tells this thread's calls from those of others. */
const void *api_thread (void);
/* Calls the operator's function without the lock. */
int api_call (Coop *coop, const ApiRecord *record, uint8_t *const *in, const size_t *in_bytes,
              uint8_t *const *out, void *workspace, bool again, uint64_t *ns);

#endif
