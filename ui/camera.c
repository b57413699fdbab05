/* SPDX-License-Identifier: Apache-2.0 */
/* Camera: see the header. The thread sleeps until a wish changes or, live, for a thirtieth of a
 * second; then it looks for what is new, paints only that, and publishes a shot that shares the rest
 * with the one before.
 */
#include "config.h"

#include "camera.h"

#include "lens.h"
#include "run-words.h"

#define FRAME_US (G_USEC_PER_SEC / 30)
#define USAGE_US (G_USEC_PER_SEC / 10)
#define WORDS_US (G_USEC_PER_SEC / 4)
#define COLORS_US (G_USEC_PER_SEC / 2)
#define N_EVENTS 200
#define N_VICTIMS 200

typedef struct {
  CoopSceneOptions map;
  int chart_width, chart_height;
  double chart_scale;
  double point_x, point_y;
  guint64 event, ts;       /* ts: G_MAXUINT64 unless the event is to be found by its time */
  int evictions;           /* to go on by, from `event` */
  guint find_serial;       /* of the text looked for */
  gboolean paused, quit;
} Wishes;

struct CoopCamera
{
  GThread *thread;
  CoopLens *lens;        /* the thread's alone */

  GMutex mutex;          /* guards all below */
  GCond cond;
  Wishes wishes;
  guint serial;          /* of the wishes */
  char *find;
  CoopShot *newest;
  GError *error;
  char *lacks;
};

/* What the thread keeps from shot to shot. */
typedef struct {
  CoopCamera *camera;
  Wishes wishes;
  CoopFrame *frame;
  guint64 shown_event;
  CoopShot parts;        /* holds references; ref count unused */
  gint64 usage_at, words_at;
  guint64 usage_ts;
  GArray *points;
  CoopColors colors;
  CoopFind *find;
  guint find_serial;
  guint64 victims_of;     /* event of the eviction that parts.victims tells of */
  gint64 colors_at;
  gboolean moving, last;  /* more is to come by itself; this was the last time that it was */
  gboolean halted;        /* the view has just been paused */
} Work;

/* ---- the thread ---- */

static GdkTexture *
texture_of (GBytes *bytes, int width, int height)
{
  return gdk_memory_texture_new (width, height, GDK_MEMORY_DEFAULT, bytes, (gsize) width * 4);
}

static gboolean
same_map (const Wishes *a, const Wishes *b)
{
  return a->map.width == b->map.width && a->map.height == b->map.height && a->map.scale == b->map.scale
         && a->map.dark == b->map.dark && a->map.contrast == b->map.contrast
         && a->map.selected == b->map.selected && a->find_serial == b->find_serial
         && a->map.look.coloring == b->map.look.coloring && a->map.look.zoom == b->map.look.zoom
         && a->map.look.from == b->map.look.from && a->map.look.strip == b->map.look.strip
         && a->map.look.why == b->map.look.why;
}

static gboolean
same_chart (const Wishes *a, const Wishes *b)
{
  return a->chart_width == b->chart_width && a->chart_height == b->chart_height
         && a->chart_scale == b->chart_scale && a->map.dark == b->map.dark
         && a->map.contrast == b->map.contrast;
}

/* Takes a newer frame if there is one. */
static gboolean
look (Work *work)
{
  CoopCamera *camera = work->camera;
  g_autoptr (GError) error = NULL;
  gboolean live = coop_lens_is_live (camera->lens);
  if (work->frame && (live ? work->wishes.paused : work->shown_event == work->wishes.event))
    return FALSE;

  CoopFrame *frame = coop_lens_frame (camera->lens, work->wishes.event, &error);
  if (!frame)
    {
      g_mutex_lock (&camera->mutex);
      if (error && !camera->error)
        camera->error = g_steal_pointer (&error);
      g_mutex_unlock (&camera->mutex);
      return FALSE;
    }
  gboolean fresh = !work->frame || !live || frame->generation != work->frame->generation;
  work->shown_event = work->wishes.event;
  if (work->frame)
    coop_frame_unref (work->frame);
  work->frame = frame;
  return fresh;
}

/* Hues and their legend; while all moves, twice a second. */
static void
mix_colors (Work *work)
{
  CoopColoring coloring = work->wishes.map.look.coloring;
  CoopShot *parts = &work->parts;
  gint64 now = g_get_monotonic_time ();
  gboolean other = work->colors.coloring != coloring || !parts->legend || !parts->scene
                   || parts->scene->view.dark != work->wishes.map.dark;
  if (!other && work->moving && now - work->colors_at < COLORS_US)
    return;
  work->colors_at = now;
  if (!coop_colors_follow (&work->colors, coloring, work->frame) && !other)
    return;
  g_clear_pointer (&parts->legend, g_ptr_array_unref);
  parts->legend = coop_colors_legend (coloring, &work->colors, work->wishes.map.dark, work->wishes.map.contrast,
                                      coop_lens_name, work->camera->lens);
  parts->legend_serial++;
}

static void
learn_find (Work *work)
{
  if (work->find_serial != work->wishes.find_serial)
    {
      g_autofree char *text = NULL;
      g_mutex_lock (&work->camera->mutex);
      text = g_strdup (work->camera->find);
      work->find_serial = work->camera->wishes.find_serial;
      g_mutex_unlock (&work->camera->mutex);
      g_clear_pointer (&work->find, coop_find_free);
      work->find = coop_find_new (text);
    }
  if (work->find)
    coop_find_learn (work->find, work->frame, coop_lens_name, work->camera->lens);
}

/* Where the victims came from. */
static void
name_victims (Work *work)
{
  const CoopFrame *frame = work->frame;
  if (work->parts.victims && work->victims_of == frame->search_seq)
    return;
  g_clear_pointer (&work->parts.victims, g_ptr_array_unref);
  work->parts.victims = g_ptr_array_new_with_free_func (g_free);
  work->victims_of = frame->search_seq;
  for (guint i = 0; i < MIN (frame->n_victims, N_VICTIMS); i++)
    g_ptr_array_add (work->parts.victims,
                     coop_lens_name (work->camera->lens, COOP_NAME_TENSOR, frame->victims[i].tensor));
}

static gboolean
paint_map (Work *work)
{
  CoopShot *parts = &work->parts;
  CoopSceneOptions options = work->wishes.map;
  if (!work->frame)
    return FALSE;
  mix_colors (work);
  learn_find (work);
  if (options.look.why)
    name_victims (work);
  options.colors = &work->colors;
  options.find = work->find;
  CoopScene *scene = coop_scene_new (work->frame, &options);
  if (!scene)
    return FALSE;
  g_clear_pointer (&parts->scene, coop_scene_unref);
  g_clear_object (&parts->map);
  parts->scene = scene;
  g_autoptr (GBytes) bytes = g_bytes_new_with_free_func (
      scene->pixels, (gsize) scene->view.width * (gsize) scene->view.height * 4,
      (GDestroyNotify) coop_scene_unref, coop_scene_ref (scene));
  parts->map = texture_of (bytes, scene->view.width, scene->view.height);
  parts->map_serial++;
  return TRUE;
}

static gboolean
paint_chart (Work *work)
{
  const Wishes *wishes = &work->wishes;
  if (!work->points || work->points->len == 0 || wishes->chart_width <= 0 || wishes->chart_height <= 0)
    return FALSE;
  CoopChartShot *chart = g_atomic_rc_box_new0 (CoopChartShot);
  gsize size = (gsize) wishes->chart_width * (gsize) wishes->chart_height * 4;
  guint32 *pixels = g_malloc0 (size);
  chart->view = (CoopChartView) { .width = wishes->chart_width, .height = wishes->chart_height,
                                  .scale = wishes->chart_scale, .dark = wishes->map.dark,
                                  .contrast = wishes->map.contrast };
  chart->scale = wishes->chart_scale;
  chart->n_points = work->points->len;
  chart->points = g_memdup2 (work->points->data, chart->n_points * sizeof (CoopChartPoint));
  coop_chart_layout (&chart->view, chart->points, chart->n_points, work->usage_ts);
  coop_chart_raster (&chart->view, chart->points, chart->n_points, pixels,
                     (gsize) wishes->chart_width * 4);
  g_autoptr (GBytes) bytes = g_bytes_new_take (pixels, size);
  chart->texture = texture_of (bytes, wishes->chart_width, wishes->chart_height);

  if (work->parts.chart)
    coop_chart_shot_unref (work->parts.chart);
  work->parts.chart = chart;
  work->parts.chart_serial++;
  return TRUE;
}

static gboolean
measure (Work *work, gint64 now, gboolean force)
{
  gboolean live = coop_lens_is_live (work->camera->lens);
  if (work->points && !force && !work->last && (!live || work->wishes.paused || now - work->usage_at < USAGE_US))
    return FALSE;
  guint n = (guint) CLAMP (work->wishes.chart_width / 2, 60, 1000);
  GArray *points = coop_lens_usage (work->camera->lens, n);
  work->usage_at = now;
  work->usage_ts = MAX (work->usage_ts, work->frame ? work->frame->totals.ts : 0);
  if (points->len > 0)
    work->usage_ts = MAX (work->usage_ts, g_array_index (points, CoopChartPoint, points->len - 1).ts);
  g_clear_pointer (&work->points, g_array_unref);
  work->points = points;
  return TRUE;
}

/* What is pointed at, in the frame that was painted; else the selected block. */
static char *
answer (Work *work)
{
  const CoopScene *scene = work->parts.scene;
  const Wishes *wishes = &work->wishes;
  long at = -1;
  if (scene && wishes->point_x >= 0)
    at = coop_map_piece_under (&scene->view, scene->pieces, scene->n_pieces, wishes->point_x,
                               wishes->point_y);
  if (at >= 0 && !scene->pieces[at].used)
    return coop_words_for_hole (scene, at);
  guint64 block = at >= 0 ? scene->frame->pieces[at].block : wishes->map.selected;
  if (block == 0 || !scene)
    return NULL;
  char *text = coop_lens_describe (work->camera->lens, scene->frame, block);
  return text || at < 0 ? text : coop_words_for_piece (scene, at);
}

/* Words change four times a second at most, or when something else is pointed at. */
static gboolean
put_in_words (Work *work, const Wishes *before, gint64 now, gboolean fresh)
{
  CoopLens *lens = work->camera->lens;
  CoopShot *parts = &work->parts;
  gboolean live = coop_lens_is_live (lens);
  gboolean due = live ? work->moving && now - work->words_at >= WORDS_US : fresh || !parts->events;
  gboolean moved = before->point_x != work->wishes.point_x || before->point_y != work->wishes.point_y
                   || before->map.selected != work->wishes.map.selected;
  due = due || work->last || work->halted;
  if (!due && !moved)
    return FALSE;
  g_clear_pointer (&parts->answer, g_free);
  parts->answer = answer (work);
  if (!due)
    return TRUE;
  work->words_at = now;
  coop_lens_health (lens, &parts->health);
  if (!work->wishes.paused || work->halted || !parts->events)
    {
      guint64 seq = work->halted && parts->scene ? parts->scene->frame->totals.seq : G_MAXUINT64;
      g_clear_pointer (&parts->events, g_ptr_array_unref);
      parts->events = coop_lens_events (lens, seq, N_EVENTS);
      parts->events_serial++;
    }
  return TRUE;
}

static void
publish (Work *work)
{
  CoopCamera *camera = work->camera;
  CoopShot *shot = coop_shot_new (&work->parts);
  g_mutex_lock (&camera->mutex);
  CoopShot *old = camera->newest;
  camera->newest = shot;
  g_mutex_unlock (&camera->mutex);
  if (old)
    coop_shot_unref (old);
}

static void
shoot (Work *work, const Wishes *before)
{
  gint64 now = g_get_monotonic_time ();
  gboolean map_changed = !same_map (before, &work->wishes);
  gboolean chart_changed = !same_chart (before, &work->wishes);
  work->halted = work->wishes.paused && (!before->paused || !work->parts.still) && work->frame
                 && coop_lens_is_live (work->camera->lens);
  work->parts.still = work->wishes.paused && work->frame;
  gboolean fresh = look (work), changed = FALSE;
  if (fresh || map_changed || (work->frame && !work->parts.scene))
    changed |= paint_map (work);
  if (measure (work, now, before->chart_width != work->wishes.chart_width) || chart_changed)
    changed |= paint_chart (work);
  changed |= put_in_words (work, before, now, fresh);
  if (changed)
    publish (work);
}

/* Waits for a wish, or while there is more to come for the time of the next frame. FALSE to end. */
static gboolean
next_wishes (Work *work, guint *serial)
{
  CoopCamera *camera = work->camera;
  gint64 until = g_get_monotonic_time () + FRAME_US;
  g_mutex_lock (&camera->mutex);
  while (!camera->wishes.quit && camera->serial == *serial)
    if (!work->moving)
      g_cond_wait (&camera->cond, &camera->mutex);
    else if (!g_cond_wait_until (&camera->cond, &camera->mutex, until))
      break;
  *serial = camera->serial;
  work->wishes = camera->wishes;
  camera->wishes.ts = G_MAXUINT64;
  camera->wishes.evictions = 0;
  g_mutex_unlock (&camera->mutex);

  gboolean moving = coop_lens_is_moving (camera->lens);
  work->last = work->moving && !moving;
  work->moving = moving;
  return !work->wishes.quit;
}

/* What was asked for in other terms, as the number of an event. */
static void
find_event (Work *work)
{
  CoopCamera *camera = work->camera;
  Wishes *wishes = &work->wishes;
  guint64 event = MIN (wishes->event, work->parts.last_event);
  if (wishes->ts != G_MAXUINT64)
    event = coop_lens_event_at (camera->lens, wishes->ts);
  for (int i = 0; i < ABS (wishes->evictions); i++)
    event = coop_lens_next_eviction (camera->lens, event, wishes->evictions < 0);
  if (wishes->ts != G_MAXUINT64 || wishes->evictions != 0)
    {
      g_mutex_lock (&camera->mutex);
      if (camera->wishes.event == wishes->event) /* else something newer was asked for */
        camera->wishes.event = event;
      g_mutex_unlock (&camera->mutex);
    }
  wishes->event = event;
}

static gpointer
camera_thread (gpointer data)
{
  CoopCamera *camera = data;
  Work work = { .camera = camera };
  g_autoptr (GError) error = NULL;
  guint serial = G_MAXUINT;

  if (!coop_lens_open (camera->lens, &error))
    {
      g_mutex_lock (&camera->mutex);
      camera->error = g_steal_pointer (&error);
      g_mutex_unlock (&camera->mutex);
      return NULL;
    }
  g_mutex_lock (&camera->mutex);
  camera->lacks = g_strdup (coop_lens_lacks (camera->lens));
  g_mutex_unlock (&camera->mutex);
  work.parts.last_event
      = coop_lens_last_event (camera->lens, &work.parts.file_state, &work.parts.file_exit);
  for (;;)
    {
      Wishes before = work.wishes;
      if (!next_wishes (&work, &serial))
        break;
      find_event (&work);
      shoot (&work, &before);
    }
  if (work.frame)
    coop_frame_unref (work.frame);
  g_clear_pointer (&work.points, g_array_unref);
  g_clear_pointer (&work.find, coop_find_free);
  coop_shot_clear_parts (&work.parts);
  return NULL;
}

/* ---- the face ---- */

static CoopCamera *
camera_new (CoopLens *lens)
{
  CoopCamera *camera = g_new0 (CoopCamera, 1);
  camera->lens = lens;
  camera->wishes.event = camera->wishes.ts = G_MAXUINT64;
  camera->wishes.point_x = camera->wishes.point_y = -1;
  g_mutex_init (&camera->mutex);
  g_cond_init (&camera->cond);
  camera->thread = g_thread_new ("coop-camera", camera_thread, camera);
  return camera;
}

CoopCamera *
coop_camera_new (CoopSession *session)
{
  return camera_new (coop_lens_new_for_session (session));
}

CoopCamera *
coop_camera_new_for_file (const char *path)
{
  return camera_new (coop_lens_new_for_file (path));
}

void
coop_camera_free (CoopCamera *camera)
{
  g_mutex_lock (&camera->mutex);
  camera->wishes.quit = TRUE;
  g_cond_signal (&camera->cond);
  g_mutex_unlock (&camera->mutex);
  g_thread_join (camera->thread);
  if (camera->newest)
    coop_shot_unref (camera->newest);
  coop_lens_free (camera->lens);
  g_clear_error (&camera->error);
  g_free (camera->lacks);
  g_free (camera->find);
  g_mutex_clear (&camera->mutex);
  g_cond_clear (&camera->cond);
  g_free (camera);
}

CoopShot *
coop_camera_take (CoopCamera *camera)
{
  g_mutex_lock (&camera->mutex);
  CoopShot *shot = g_steal_pointer (&camera->newest);
  g_mutex_unlock (&camera->mutex);
  return shot;
}

char *
coop_camera_lacks (CoopCamera *camera)
{
  g_mutex_lock (&camera->mutex);
  char *lacks = g_strdup (camera->lacks);
  g_mutex_unlock (&camera->mutex);
  return lacks;
}

GError *
coop_camera_error (CoopCamera *camera)
{
  g_mutex_lock (&camera->mutex);
  GError *error = camera->error ? g_error_copy (camera->error) : NULL;
  g_mutex_unlock (&camera->mutex);
  return error;
}

/* Sets one wish; wakes the thread only if it is a new one. */
#define WISH(camera, member, wanted)                                                                \
  G_STMT_START                                                                                      \
  {                                                                                                 \
    if ((camera)->wishes.member != (wanted))                                                        \
      {                                                                                             \
        (camera)->wishes.member = (wanted);                                                         \
        (camera)->serial++;                                                                         \
        g_cond_signal (&(camera)->cond);                                                            \
      }                                                                                             \
  }                                                                                                 \
  G_STMT_END

void
coop_camera_set_map (CoopCamera *camera, int width, int height, double scale)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, map.width, width);
  WISH (camera, map.height, height);
  WISH (camera, map.scale, scale);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_set_chart (CoopCamera *camera, int width, int height, double scale)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, chart_width, width);
  WISH (camera, chart_height, height);
  WISH (camera, chart_scale, scale);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_set_theme (CoopCamera *camera, gboolean dark, gboolean contrast)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, map.dark, dark);
  WISH (camera, map.contrast, contrast);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_point (CoopCamera *camera, double x, double y)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, point_x, x);
  WISH (camera, point_y, y);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_select (CoopCamera *camera, guint64 block)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, map.selected, block);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_set_look (CoopCamera *camera, const CoopLook *look)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, map.look.coloring, look->coloring);
  WISH (camera, map.look.zoom, look->zoom);
  WISH (camera, map.look.from, look->from);
  WISH (camera, map.look.strip, look->strip);
  WISH (camera, map.look.why, look->why);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_find (CoopCamera *camera, const char *text)
{
  g_mutex_lock (&camera->mutex);
  if (g_strcmp0 (camera->find, text) != 0)
    {
      g_free (camera->find);
      camera->find = g_strdup (text);
      WISH (camera, find_serial, camera->wishes.find_serial + 1);
    }
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_set_paused (CoopCamera *camera, gboolean paused)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, paused, paused);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_set_event (CoopCamera *camera, guint64 seq)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, event, seq);
  camera->wishes.ts = G_MAXUINT64;
  camera->wishes.evictions = 0;
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_set_time (CoopCamera *camera, guint64 ts)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, ts, ts);
  g_mutex_unlock (&camera->mutex);
}

void
coop_camera_step_eviction (CoopCamera *camera, int n)
{
  g_mutex_lock (&camera->mutex);
  WISH (camera, evictions, camera->wishes.evictions + n);
  g_mutex_unlock (&camera->mutex);
}
