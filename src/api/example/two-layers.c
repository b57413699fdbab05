/* SPDX-License-Identifier: Apache-2.0 */
/* A network of two layers, written out by hand, forward and backward, that trains inside a memory
 * budget of libcoop.
 *
 *     cc two-layers.c $(pkg-config --cflags --libs coop) -lm -o two-layers
 *     ./two-layers            trains without a budget and with half of the peak: same bits?
 *     ./two-layers 3MiB       trains with that budget alone
 *     coop run -o net.coop -- ./two-layers 3MiB     and records it
 *
 *     h = x W1;  a = relu (h);  y = a W2;  loss = cross entropy of softmax (y) and the labels
 */
#include <coop.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 4   /* of the batch, each forward, then each backward */
#define BATCH 256 /* samples of a part */
#define INPUTS 32
#define HIDDEN 512
#define CLASSES 16
#define STEPS 8

/* ---- operators: functions of their inputs and parameters alone ---- */

/* out[m x n] = A B, either of them transposed. */
typedef struct {
  int m, n, k;
  int a_row, a_step, b_step, b_column; /* strides, in numbers */
} Product;

static int
run_product (const CoopWork *w)
{
  const Product *p = w->params;
  const float *a = w->in[0], *b = w->in[1];
  float *out = w->out[0];
  for (int i = 0; i < p->m; i++)
    for (int j = 0; j < p->n; j++)
      {
        float sum = 0;
        for (int k = 0; k < p->k; k++)
          sum += a[i * p->a_row + k * p->a_step] * b[k * p->b_step + j * p->b_column];
        out[i * p->n + j] = sum;
      }
  return 0;
}

static int
run_relu (const CoopWork *w)
{
  const float *h = w->in[0];
  float *a = w->out[0];
  for (size_t i = 0; i < w->out_bytes[0] / sizeof *a; i++)
    a[i] = h[i] > 0 ? h[i] : 0;
  return 0;
}

/* da = 0 where h <= 0, in place: then it is the gradient by h */
static int
run_relu_backward (const CoopWork *w)
{
  float *da = w->in[0];
  const float *h = w->in[1];
  for (size_t i = 0; i < w->in_bytes[0] / sizeof *da; i++)
    if (h[i] <= 0)
      da[i] = 0;
  return 0;
}

/* sum += term, in place */
static int
run_add (const CoopWork *w)
{
  float *sum = w->in[0];
  const float *term = w->in[1];
  for (size_t i = 0; i < w->in_bytes[0] / sizeof *sum; i++)
    sum[i] += term[i];
  return 0;
}

/* The mean loss, and its gradient by y. */
static int
run_loss (const CoopWork *w)
{
  const float *y = w->in[0];
  const int *label = w->in[1];
  float *loss = w->out[0], *dy = w->out[1];
  double sum = 0;
  for (int i = 0; i < BATCH; i++, y += CLASSES, dy += CLASSES)
    {
      float most = y[0], total = 0;
      for (int c = 1; c < CLASSES; c++)
        most = fmaxf (most, y[c]);
      for (int c = 0; c < CLASSES; c++)
        total += dy[c] = expf (y[c] - most);
      for (int c = 0; c < CLASSES; c++)
        dy[c] = (dy[c] / total - (c == label[i])) / BATCH;
      sum -= y[label[i]] - most - logf (total);
    }
  *loss = (float) (sum / BATCH);
  return 0;
}

/* velocity = 0.9 velocity + gradient;  weight -= rate velocity, both in place */
static int
run_update (const CoopWork *w)
{
  float *weight = w->in[0], *velocity = w->in[1];
  const float *gradient = w->in[2], *rate = w->params;
  for (size_t i = 0; i < w->in_bytes[0] / sizeof *weight; i++)
    {
      velocity[i] = 0.9f * velocity[i] + gradient[i];
      weight[i] -= *rate * velocity[i];
    }
  return 0;
}

/* ---- the network ---- */

typedef struct {
  Coop *coop;
  const CoopOperator *product, *relu, *relu_backward, *loss, *add, *update;
  CoopStorage *x[PARTS], *label, *w1, *w2, *v1, *v2;
} Net;

static void
must (Net *net, CoopResult result)
{
  if (result == COOP_DONE)
    return;
  fprintf (stderr, "two-layers: %s: %s\n", coop_result_text (result), coop_message (net->coop));
  exit (1);
}

static float
uniform (uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return (float) (*state >> 8) / (1 << 23) - 1;
}

static CoopStorage *
noise (Net *net, int n, float scale, unsigned flags, uint32_t seed)
{
  float *data = malloc ((size_t) n * sizeof *data);
  CoopStorage *s;
  if (data == NULL)
    abort ();
  for (int i = 0; i < n; i++)
    data[i] = scale * uniform (&seed);
  must (net, coop_storage_new (net->coop, (size_t) n * sizeof *data, data, flags, &s));
  free (data);
  return s;
}

static CoopStorage *
zeros (Net *net, int n)
{
  CoopStorage *s;
  must (net, coop_storage_new (net->coop, (size_t) n * sizeof (float), NULL, COOP_STATE, &s));
  return s;
}

static CoopStorage *
labels (Net *net)
{
  int label[BATCH];
  CoopStorage *s;
  for (int i = 0; i < BATCH; i++)
    label[i] = i * 7 % CLASSES;
  must (net, coop_storage_new (net->coop, sizeof label, label, 0, &s));
  return s;
}

static void
build (Net *net)
{
  Coop *coop = net->coop;
  net->product = coop_operator (coop, &(CoopOperatorInfo) { .name = "product", .run = run_product,
                                                            .expensive = true });
  net->relu = coop_operator (coop, &(CoopOperatorInfo) { .name = "relu", .run = run_relu });
  net->relu_backward
      = coop_operator (coop, &(CoopOperatorInfo) { .name = "relu_backward", .run = run_relu_backward });
  net->loss = coop_operator (coop, &(CoopOperatorInfo) { .name = "loss", .run = run_loss });
  net->add = coop_operator (coop, &(CoopOperatorInfo) { .name = "add", .run = run_add });
  net->update = coop_operator (coop, &(CoopOperatorInfo) { .name = "update", .run = run_update });
  for (uint32_t i = 0; i < PARTS; i++)
    net->x[i] = noise (net, BATCH * INPUTS, 1, 0, 10 + i);
  net->label = labels (net);
  net->w1 = noise (net, INPUTS * HIDDEN, 0.2f, COOP_STATE, 2);
  net->w2 = noise (net, HIDDEN * CLASSES, 0.1f, COOP_STATE, 3);
  net->v1 = zeros (net, INPUTS * HIDDEN);
  net->v2 = zeros (net, HIDDEN * CLASSES);
}

static CoopStorage *
product (Net *net, CoopStorage *a, CoopStorage *b, Product p)
{
  size_t bytes = (size_t) (p.m * p.n) * sizeof (float);
  CoopIn in[] = { { a, COOP_READ }, { b, COOP_READ } };
  CoopArgs args = { .in = in, .n_in = 2, .out_bytes = &bytes, .n_out = 1, .params = &p,
                    .params_bytes = sizeof p };
  CoopStorage *out;
  must (net, coop_run (net->coop, net->product, &args, &out));
  return out;
}

static CoopStorage *
relu (Net *net, CoopStorage *h)
{
  size_t bytes = coop_storage_bytes (h);
  CoopIn in[] = { { h, COOP_READ } };
  CoopArgs args = { .in = in, .n_in = 1, .out_bytes = &bytes, .n_out = 1 };
  CoopStorage *out;
  must (net, coop_run (net->coop, net->relu, &args, &out));
  return out;
}

static void
loss (Net *net, CoopStorage *y, CoopStorage *loss_dy[2])
{
  size_t bytes[] = { sizeof (float), BATCH * CLASSES * sizeof (float) };
  CoopIn in[] = { { y, COOP_READ }, { net->label, COOP_READ } };
  CoopArgs args = { .in = in, .n_in = 2, .out_bytes = bytes, .n_out = 2 };
  must (net, coop_run (net->coop, net->loss, &args, loss_dy));
}

/* Writes a from b. */
static void
in_place (Net *net, const CoopOperator *op, CoopStorage *a, CoopStorage *b)
{
  CoopIn in[] = { { a, COOP_WRITE }, { b, COOP_READ } };
  must (net, coop_run (net->coop, op, &(CoopArgs) { .in = in, .n_in = 2 }, NULL));
}

static void
update (Net *net, CoopStorage *weight, CoopStorage *velocity, CoopStorage *gradient)
{
  float rate = 0.2f;
  CoopIn in[] = { { weight, COOP_WRITE }, { velocity, COOP_WRITE }, { gradient, COOP_READ } };
  CoopArgs args = { .in = in, .n_in = 3, .params = &rate, .params_bytes = sizeof rate };
  must (net, coop_run (net->coop, net->update, &args, NULL));
}

/* What forward leaves for backward. */
typedef struct {
  CoopStorage *h, *a, *loss_dy[2];
} Kept;

static Kept
forward (Net *net, CoopStorage *x)
{
  Kept k;
  k.h = product (net, x, net->w1, (Product) { BATCH, HIDDEN, INPUTS, INPUTS, 1, HIDDEN, 1 });
  k.a = relu (net, k.h);
  CoopStorage *y = product (net, k.a, net->w2, (Product) { BATCH, CLASSES, HIDDEN, HIDDEN, 1, CLASSES, 1 });
  loss (net, y, k.loss_dy);
  coop_drop (y);
  return k;
}

/* The first gradient is the sum, the others are added to it. */
static void
accumulate (Net *net, CoopStorage **sum, CoopStorage *gradient)
{
  if (*sum == NULL)
    *sum = gradient;
  else
    {
      in_place (net, net->add, *sum, gradient);
      coop_drop (gradient);
    }
}

static void
backward (Net *net, CoopStorage *x, Kept *k, CoopStorage **g1, CoopStorage **g2)
{
  CoopStorage *dy = k->loss_dy[1];
  CoopStorage *da = product (net, dy, net->w2, (Product) { BATCH, HIDDEN, CLASSES, CLASSES, 1, 1, CLASSES });
  in_place (net, net->relu_backward, da, k->h);
  accumulate (net, g1, product (net, x, da, (Product) { INPUTS, HIDDEN, BATCH, 1, INPUTS, HIDDEN, 1 }));
  accumulate (net, g2, product (net, k->a, dy, (Product) { HIDDEN, CLASSES, BATCH, 1, HIDDEN, CLASSES, 1 }));
  CoopStorage *all[] = { k->h, k->a, dy, da };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    coop_drop (all[i]);
}

static float
read_loss (Net *net, CoopStorage *s)
{
  void *bytes;
  float value;
  must (net, coop_get (s, COOP_READ, &bytes));
  memcpy (&value, bytes, sizeof value);
  coop_release (s);
  coop_drop (s);
  return value;
}

static float
step (Net *net)
{
  Kept kept[PARTS];
  CoopStorage *g1 = NULL, *g2 = NULL;
  float sum = 0;

  coop_part (net->coop, COOP_FORWARD);
  for (int i = 0; i < PARTS; i++)
    kept[i] = forward (net, net->x[i]);
  coop_part (net->coop, COOP_BACKWARD);
  for (int i = PARTS - 1; i >= 0; i--)
    backward (net, net->x[i], &kept[i], &g1, &g2);
  coop_part (net->coop, COOP_OPTIMIZER);
  update (net, net->w1, net->v1, g1);
  update (net, net->w2, net->v2, g2);
  coop_drop (g1);
  coop_drop (g2);
  for (int i = 0; i < PARTS; i++)
    sum += read_loss (net, kept[i].loss_dy[0]);
  return sum / PARTS;
}

/* ---- training ---- */

typedef struct {
  float loss[STEPS];
  float w1[INPUTS * HIDDEN], w2[HIDDEN * CLASSES];
} Result;

static void
copy_out (Net *net, CoopStorage *s, void *to)
{
  void *bytes;
  must (net, coop_get (s, COOP_READ, &bytes));
  memcpy (to, bytes, coop_storage_bytes (s));
  coop_release (s);
}

/* Trains in a pool of `budget`; the peak of its memory. */
static uint64_t
train (const char *budget, Result *result)
{
  Net net = { 0 };
  CoopStats stats;
  char why[256] = "";
  const char *policy[] = { "budget", budget, NULL };
  if (coop_new (&(CoopOptions) { .policy = policy, .why = why, .why_size = sizeof why }, &net.coop) != COOP_DONE)
    {
      fprintf (stderr, "two-layers: %s\n", why);
      exit (1);
    }
  build (&net);
  for (int i = 0; i < STEPS; i++)
    result->loss[i] = step (&net);
  copy_out (&net, net.w1, result->w1);
  copy_out (&net, net.w2, result->w2);
  coop_stats (net.coop, &stats);
  printf ("budget %8llu: loss %.6f to %.6f, peak %llu, evicted %llu, run again %llu\n",
          (unsigned long long) stats.budget, (double) result->loss[0], (double) result->loss[STEPS - 1],
          (unsigned long long) stats.peak, (unsigned long long) stats.evictions,
          (unsigned long long) stats.rematerializations);
  coop_destroy (net.coop);
  return stats.peak;
}

int
main (int argc, char **argv)
{
  static Result free_run, tight;
  char budget[32];
  if (argc > 2)
    {
      fprintf (stderr, "usage: two-layers [BUDGET]\n");
      return 2;
    }
  if (argc == 2)
    {
      train (argv[1], &tight);
      return 0;
    }
  uint64_t peak = train ("0", &free_run);
  snprintf (budget, sizeof budget, "%llu", (unsigned long long) peak / 2);
  train (budget, &tight);
  bool same = memcmp (&free_run, &tight, sizeof tight) == 0;
  printf (same ? "same bits\n" : "DIFFERENT BITS\n");
  return same ? 0 : 1;
}
