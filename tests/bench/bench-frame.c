/* SPDX-License-Identifier: Apache-2.0 */
/* From the model to pixels: what one picture of the map costs while 20,000 blocks come and go in a second, and
 * what a random moment of a large trace costs; against a cairo rectangle for each piece, the plain way to draw.
 *
 *   bench-frame                  1,000, 100,000 and 1,000,000 blocks
 *   bench-frame FILE             moments of a trace (bench-open makes one of ten million events)
 *   bench-frame --small          a few of each, for their sense alone
 */
#include <cairo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "median.h"
#include "scene.h"
#include "trace/store.h"

#define CELL 1024     /* bytes from one block to the next; half of it may be a hole */
#define WIDTH 1600
#define HEIGHT 900
#define CHANGES 333   /* 20,000 a second at 60 pictures a second */

typedef struct {
  CoopModel *model;
  guint64 seq, n, next;
  guint64 *block; /* of each cell; 0: free */
  GRand *rand;
} Bench;

static void
apply (Bench *b, CoopEvent ev)
{
  ev.seq = b->seq;
  ev.ts = b->seq++ * 50000;
  g_assert_cmpint (coop_model_apply (b->model, &ev, NULL, NULL), ==, COOP_FAULT_NONE);
}

static void
change (Bench *b, guint64 cell)
{
  CoopEvent ev = { .kind = COOP_EVENT_FREE };
  ev.u.free.addr = cell * CELL;
  ev.u.free.bytes = CELL;
  ev.u.free.block = b->block[cell];
  if (b->block[cell])
    b->block[cell] = 0;
  else
    {
      ev = (CoopEvent) { .kind = COOP_EVENT_ALLOC };
      ev.u.alloc.addr = cell * CELL;
      ev.u.alloc.bytes = ev.u.alloc.requested = CELL;
      ev.u.alloc.block = b->block[cell] = ++b->next;
    }
  apply (b, ev);
}

/* n live blocks, a hole after every eighth. */
static void
bench_init (Bench *b, guint64 n)
{
  guint64 cells = n + n / 8;
  CoopEvent pool = { .kind = COOP_EVENT_POOL };
  *b = (Bench) { .model = coop_model_new (), .n = cells, .block = g_new0 (guint64, cells), .rand = g_rand_new_with_seed (1) };
  pool.u.pool.id = 1;
  pool.u.pool.budget = pool.u.pool.capacity = cells * CELL;
  apply (b, pool);
  for (guint64 i = 0; i < cells; i++)
    if (i % 9 != 8)
      change (b, i);
}

static void
bench_clear (Bench *b)
{
  coop_model_free (b->model);
  g_free (b->block);
  g_rand_free (b->rand);
}

static double
now_ms (void)
{
  return (double) g_get_monotonic_time () / 1e3;
}

static guint
picture (CoopModel *model)
{
  const CoopSceneOptions options = { .width = WIDTH, .height = HEIGHT, .scale = 1 };
  CoopFrame *frame = coop_frame_new (model, 1);
  CoopScene *scene = coop_scene_new (frame, &options);
  guint n = scene->n_pieces;
  g_assert_cmpuint (n, ==, frame->n_pieces);
  coop_scene_unref (scene);
  coop_frame_unref (frame);
  return n;
}

/* A rectangle for each piece, in rows as long as the picture is wide. */
static double
plain_ms (CoopModel *model)
{
  double start = now_ms ();
  cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_RGB24, WIDTH, HEIGHT);
  cairo_t *cr = cairo_create (surface);
  CoopFrame *frame = coop_frame_new (model, 1);
  double scale = (double) WIDTH * (HEIGHT / 20) / (double) MAX (frame->totals.capacity, 1);
  for (guint i = 0; i < frame->n_pieces; i++)
    {
      double x = (double) frame->pieces[i].addr * scale, row = (double) (guint64) (x / WIDTH);
      cairo_set_source_rgb (cr, frame->pieces[i].used, 0.5, 0.5);
      cairo_rectangle (cr, x - row * WIDTH, row * 20, (double) frame->pieces[i].bytes * scale, 19);
      cairo_fill (cr);
    }
  coop_frame_unref (frame);
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
  return now_ms () - start;
}

static void
tell (const char *name, guint64 n, double *ms, guint rounds, double peer)
{
  double middle = median (ms, rounds);
  printf ("bench %s-%" G_GUINT64_FORMAT " %.2f ms ratio %.3f vs cairo-rectangles (worst %.2f ms)\n", name, n, middle,
          middle / peer, ms[rounds - 1]);
  fflush (stdout);
}

static void
bench_frames (guint64 n, guint rounds)
{
  Bench b;
  g_autofree double *ms = g_new (double, rounds);
  double peer[3];
  bench_init (&b, n);
  for (guint i = 0; i < rounds; i++)
    {
      double start = now_ms ();
      for (guint k = 0; k < CHANGES; k++)
        change (&b, (guint64) (g_rand_double (b.rand) * (double) b.n));
      picture (b.model);
      ms[i] = now_ms () - start;
    }
  for (guint i = 0; i < G_N_ELEMENTS (peer); i++)
    peer[i] = plain_ms (b.model);
  tell ("frame", n, ms, rounds, median (peer, G_N_ELEMENTS (peer)));
  bench_clear (&b);
}

static void
bench_moments (const char *path, guint rounds)
{
  g_autoptr (GError) error = NULL;
  CoopReader *reader = coop_reader_open (path, &error);
  CoopTraceInfo info;
  g_autofree double *ms = g_new (double, rounds);
  g_autofree double *plain = g_new (double, rounds);
  GRand *rand = g_rand_new_with_seed (2);
  if (!reader || !coop_reader_info (reader, &info, &error))
    g_error ("%s: %s", path, error->message);
  for (guint i = 0; i < rounds; i++)
    {
      double start = now_ms ();
      CoopModel *model = coop_reader_model_at (reader, (guint64) (g_rand_double (rand) * (double) info.events), &error);
      g_assert_no_error (error);
      double read = now_ms () - start;
      picture (model);
      ms[i] = now_ms () - start;
      plain[i] = read + plain_ms (model);
      coop_model_free (model);
    }
  tell ("moment", info.events, ms, rounds, median (plain, rounds));
  coop_trace_info_clear (&info);
  coop_reader_free (reader);
  g_rand_free (rand);
}

int
main (int argc, char **argv)
{
  if (argc == 2 && !g_str_equal (argv[1], "--small"))
    bench_moments (argv[1], 50);
  else if (argc == 2)
    bench_frames (1000, 20);
  else
    {
      bench_frames (1000, 300);
      bench_frames (100000, 300);
      bench_frames (1000000, 100);
    }
  return 0;
}
