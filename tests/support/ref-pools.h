/* SPDX-License-Identifier: Apache-2.0 */
/* Segmented pools the slow way: what a request should get, from the pieces and segments as they were
 * before, by trying everything. Shares no code with the engine but the scores. */
#ifndef REF_POOLS_H
#define REF_POOLS_H

#include "ref-host.h"

typedef struct RefPools RefPools;

RefPools *ref_pools_look (RefHost *host);
/* Asserts that the engine's answer to a first request is what the pool before it asked for. */
void ref_pools_check (RefHost *host, const RefPools *before, const CoopRequest *req, CoopStatus status);
void ref_pools_free (RefPools *pools);

#endif
