/* SPDX-License-Identifier: Apache-2.0 */
/* Weight: a score as a 128-bit fixed-point number, so that taking away from a sum what was added
 * leaves no rounding behind. Infinite scores are counted beside the sum. */
#ifndef COOP_WEIGHT_H
#define COOP_WEIGHT_H

#include <stdint.h>
#include <string.h>

typedef unsigned __int128 Weight;

#define WEIGHT_ONE 0x1p64
#define WEIGHT_LARGEST 0x1p62 /* above it a score counts as infinite */
#define WEIGHT_INFINITE (~(Weight) 0)

/* (Weight) (h * WEIGHT_ONE), from the bits of h. */
static inline Weight
weigh (double h)
{
  if (!(h <= WEIGHT_LARGEST))
    return WEIGHT_INFINITE;
  uint64_t bits;
  memcpy (&bits, &h, sizeof bits);
  int shift = (int) (bits >> 52) - 1023 - 52 + 64;
  Weight mantissa = (bits & ((UINT64_C (1) << 52) - 1)) | UINT64_C (1) << 52;
  return shift >= 0 ? mantissa << shift : shift > -64 ? mantissa >> -shift : 0;
}

#endif
