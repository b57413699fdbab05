/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder alone. */
#ifndef COOP_MAP_PRIVATE_H
#define COOP_MAP_PRIVATE_H

#include "draw/map.h"

#define COOP_HATCH_PERIOD 6
#define COOP_HATCH_WIDTH 2

/* `part` of 256 of b over a. */
uint32_t coop_map_mix (uint32_t a, uint32_t b, uint32_t part);
/* k where bytes_per_pixel = 2^k. */
int coop_map_shift (const CoopMapView *view);

#endif
