/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

#include <glib.h>
#include <stdlib.h>

static inline int
bench_compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

/* Puts the values in order, the least first. n > 0. */
static inline double
median (double *values, guint n)
{
  qsort (values, n, sizeof *values, bench_compare);
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#endif
