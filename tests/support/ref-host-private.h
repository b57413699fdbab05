/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of the toy host. */
#ifndef REF_HOST_PRIVATE_H
#define REF_HOST_PRIVATE_H

#include "ref-host.h"

void ref_host_checkpoint (RefHost *host);   /* verifies, if checks are on */
void ref_host_poison (RefHost *host, uint64_t addr, uint64_t bytes);
bool ref_host_alloc (RefHost *host, const CoopCall *call, uint64_t bytes, uint64_t *addr);
void ref_host_free_block (RefHost *host, uint64_t addr);

RefStorage *ref_storage_new (RefHost *host, uint64_t addr, uint64_t bytes);
void ref_storage_free (RefHost *host, RefStorage *storage);
/* Bytes from a hash. */
void ref_fill (uint8_t *out, uint64_t bytes, uint64_t h, unsigned index);

#endif
