/* SPDX-License-Identifier: Apache-2.0 */
/* The camera: shots come, share what did not change, stand still when paused, and show of a file what
 * was live at the same event, pixel by pixel. No display.
 */
#include "../support/gen-events.h"
#include "camera.h"
#include "fake-session.h"
#include "made-trace.h"

#define BUDGET (64 << 20)

/* The next shot for which `want` is true; they come within 10 s. */
static CoopShot *
wait_for (CoopCamera *camera, gboolean (*want) (const CoopShot *shot, gconstpointer data),
          gconstpointer data)
{
  for (int i = 0; i < 5000; i++)
    {
      CoopShot *shot = coop_camera_take (camera);
      if (shot && want (shot, data))
        return shot;
      if (shot)
        coop_shot_unref (shot);
      g_usleep (2000);
    }
  g_error ("no such shot");
}

static gboolean
has_map (const CoopShot *shot, gconstpointer data)
{
  return shot->scene != NULL;
}

static gboolean
has_chart (const CoopShot *shot, gconstpointer data)
{
  return shot->chart != NULL;
}

static gboolean
at_event (const CoopShot *shot, gconstpointer seq)
{
  return shot->scene && shot->scene->frame->totals.seq == *(const guint64 *) seq;
}

/* NULL: nothing. */
static gboolean
says (const CoopShot *shot, gconstpointer text)
{
  return text && shot->answer ? g_str_has_prefix (shot->answer, text) : text == shot->answer;
}

static guint64
last_seq (CoopSession *session)
{
  CoopFrame *frame = coop_session_frame (session);
  guint64 seq = frame->totals.seq;
  coop_frame_unref (frame);
  return seq;
}

static void
test_shots (void)
{
  g_autoptr (CoopSession) session = fake_session_new (BUDGET);
  fake_session_play (session, 2000);
  g_autoptr (CoopCamera) camera = coop_camera_new (session);
  coop_camera_set_map (camera, 320, 200, 1);
  coop_camera_set_chart (camera, 300, 100, 1);
  g_autoptr (CoopShot) first = wait_for (camera, has_map, NULL);
  g_assert_cmpint (gdk_texture_get_width (first->map), ==, 320);
  g_assert_cmpint (gdk_texture_get_height (first->map), ==, 200);
  g_assert_cmpuint (first->scene->n_pieces, ==, first->scene->frame->n_pieces);

  fake_session_play (session, 500);
  guint64 seq = last_seq (session);
  g_autoptr (CoopShot) second = wait_for (camera, at_event, &seq);
  g_assert_cmpuint (second->map_serial, >, first->map_serial);
  g_autoptr (CoopShot) chart = second->chart ? coop_shot_ref (second) : wait_for (camera, has_chart, NULL);
  g_assert_cmpint (gdk_texture_get_width (chart->chart->texture), ==, 300);
  g_assert_cmpuint (chart->chart->n_points, >, 0);
}

static void
test_pause (void)
{
  g_autoptr (CoopSession) session = fake_session_new (BUDGET);
  fake_session_play (session, 1000);
  guint64 seq = last_seq (session);
  g_autoptr (CoopCamera) camera = coop_camera_new (session);
  coop_camera_set_map (camera, 200, 200, 1);
  coop_shot_unref (wait_for (camera, at_event, &seq));
  coop_camera_set_paused (camera, TRUE);
  g_usleep (100000);
  fake_session_play (session, 1000);
  coop_camera_set_map (camera, 240, 180, 1); /* another size is painted, of the same frame */
  g_autoptr (CoopShot) paused = wait_for (camera, has_map, NULL);
  while (paused->scene->view.width != 240)
    {
      coop_shot_unref (paused);
      paused = wait_for (camera, has_map, NULL);
    }
  g_assert_cmpuint (paused->scene->frame->totals.seq, ==, seq);
  coop_camera_set_paused (camera, FALSE);
  seq = last_seq (session);
  g_autoptr (CoopShot) after = wait_for (camera, at_event, &seq);
  g_assert_cmpuint (after->scene->frame->totals.seq, ==, seq);
}

typedef struct {
  CoopSession *session;
  gint stop;
} Player;

static gpointer
play (gpointer data)
{
  Player *player = data;
  while (!g_atomic_int_get (&player->stop))
    {
      fake_session_play (player->session, 20);
      g_usleep (1000);
    }
  return NULL;
}

static gboolean
is_still (const CoopShot *shot, gconstpointer data)
{
  return shot->still == GPOINTER_TO_INT (data);
}

/* Whenever it is paused, map, events and words are of one event, though the run goes on. */
static void
test_pause_is_one_event (void)
{
  g_autoptr (CoopSession) session = fake_session_new (BUDGET);
  Player player = { session, 0 };
  g_autoptr (CoopCamera) camera = coop_camera_new (session);
  coop_camera_set_map (camera, 300, 200, 1);
  coop_camera_select (camera, 1);
  GThread *thread = g_thread_new ("player", play, &player);
  coop_shot_unref (wait_for (camera, has_map, NULL));
  for (int i = 0; i < 10; i++)
    {
      g_usleep (50000 + i * 7000);
      coop_camera_set_paused (camera, TRUE);
      g_autoptr (CoopShot) still = wait_for (camera, is_still, GINT_TO_POINTER (TRUE));
      guint64 seq = still->scene->frame->totals.seq;
      g_autofree char *words = g_strdup_printf ("block 1 at event %" G_GUINT64_FORMAT, seq);
      g_assert_cmpuint (((CoopEventLine *) still->events->pdata[still->events->len - 1])->seq, ==, seq);
      g_assert_cmpuint (still->events->len, >, 100);
      g_assert_cmpstr (still->answer, ==, words);
      coop_camera_set_paused (camera, FALSE);
      coop_shot_unref (wait_for (camera, is_still, GINT_TO_POINTER (FALSE)));
    }
  g_atomic_int_set (&player.stop, 1);
  g_thread_join (thread);
}

static void
test_answers (void)
{
  g_autoptr (CoopSession) session = fake_session_new (BUDGET);
  fake_session_fill (session, 8, 1 << 20); /* blocks 2, 4, 6, 8 stay; 1, 3, ... are holes */
  g_autoptr (CoopCamera) camera = coop_camera_new (session);
  coop_camera_set_map (camera, 64, 24, 1); /* one row, 8 columns a block */
  g_autoptr (CoopShot) shot = wait_for (camera, has_map, NULL);
  g_assert_cmpint (shot->scene->view.rows, ==, 1);
  coop_camera_point (camera, 12, 10);
  coop_shot_unref (wait_for (camera, says, "block 2 at event 12"));
  coop_camera_point (camera, -1, -1);
  coop_shot_unref (wait_for (camera, says, NULL));
  coop_camera_select (camera, 6);
  coop_shot_unref (wait_for (camera, says, "block 6 at event 12"));
  coop_camera_point (camera, 4, 10);
  g_autoptr (CoopShot) hole = wait_for (camera, has_map, NULL);
  while (!hole->answer || !g_str_has_prefix (hole->answer, "The largest hole"))
    {
      coop_shot_unref (hole);
      hole = wait_for (camera, has_map, NULL);
    }
}

static int
by_number (const void *a, const void *b)
{
  guint64 x = *(const guint64 *) a, y = *(const guint64 *) b;
  return x < y ? -1 : x > y;
}

/* The same generated run, live and from its file, at 200 events by chance and at the last. */
static void
test_file_is_live (void)
{
  g_autoptr (MadeTrace) trace = made_trace_new (9000, BUDGET);
  g_autoptr (CoopSession) session = fake_session_new (BUDGET);
  g_autoptr (CoopCamera) live = coop_camera_new (session), file = coop_camera_new_for_file (trace->path);
  coop_camera_set_map (live, 500, 300, 1);
  coop_camera_set_map (file, 500, 300, 1);
  guint64 stops[201], at = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (stops); i++)
    stops[i] = i == 200 ? 8999 : (guint64) g_test_rand_int_range (300, 8999);
  qsort (stops, G_N_ELEMENTS (stops), sizeof *stops, by_number);
  for (gsize i = 0; i < G_N_ELEMENTS (stops); i++)
    {
      if (i > 0 && stops[i] == stops[i - 1])
        continue;
      fake_session_play (session, (guint) (stops[i] + 1 - at));
      at = stops[i] + 1;
      coop_camera_set_event (file, stops[i]);
      g_autoptr (CoopShot) a = wait_for (live, at_event, &stops[i]);
      g_autoptr (CoopShot) b = wait_for (file, at_event, &stops[i]);
      g_assert_cmpmem (a->scene->pixels, 500 * 300 * 4, b->scene->pixels, 500 * 300 * 4);
      g_assert_cmpuint (b->last_event, ==, 8999);
    }
  g_autoptr (CoopShot) chart = NULL;
  coop_camera_set_chart (file, 300, 100, 1);
  chart = wait_for (file, has_chart, NULL);
  g_assert_nonnull (chart->events);
  guint64 told = 8999; /* names and the like are not in the list */
  while (trace->kind[told] == COOP_EVENT_COST || trace->kind[told] == COOP_EVENT_TENSOR
         || trace->kind[told] == COOP_EVENT_STRING || trace->kind[told] == COOP_EVENT_RECLASSIFY)
    told--;
  g_assert_cmpuint (((CoopEventLine *) chart->events->pdata[chart->events->len - 1])->seq, ==, told);
  g_assert_cmpuint (chart->events->len, ==, 200);
}

static void
test_bad_file (void)
{
  g_autoptr (CoopCamera) camera = coop_camera_new_for_file ("/nowhere/at-all.coop");
  g_autoptr (GError) error = NULL;
  for (int i = 0; i < 5000 && !error; i++)
    {
      g_usleep (2000);
      error = coop_camera_error (camera);
    }
  g_assert_nonnull (error);
  g_assert_null (coop_camera_take (camera));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ui/camera/shots", test_shots);
  g_test_add_func ("/ui/camera/pause", test_pause);
  g_test_add_func ("/ui/camera/pause-is-one-event", test_pause_is_one_event);
  g_test_add_func ("/ui/camera/answers", test_answers);
  g_test_add_func ("/ui/camera/file-is-live", test_file_is_live);
  g_test_add_func ("/ui/camera/bad-file", test_bad_file);
  return g_test_run ();
}
