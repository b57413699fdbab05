/* SPDX-License-Identifier: Apache-2.0 */
/* Run page: takes the camera's newest shot from a low-priority timer, so that input and the
 * accessibility bus come first, and hands its parts to the widgets. The map follows every shot; words
 * and numbers change four times a second, since nobody reads faster.
 */
#include "config.h"

#include "run-page.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#include "camera.h"
#include "chart-widget.h"
#include "format.h"
#include "grab-note.h"
#include "headline.h"
#include "legend.h"
#include "map-widget.h"
#include "oom-card.h"
#include "policy-panel.h"
#include "run-words.h"
#include "table.h"

#define TICK_MS 33
#define WORDS_US (G_USEC_PER_SEC / 4)
/* A list makes a row for every item anew when it is replaced, which takes its time: while all moves,
 * only as many are shown as can be seen; once it stands still, those that one may want to search. */
#define ROWS_MOVING 16
#define ROWS_STILL 200

struct _CoopRunPage
{
  GtkWidget parent_instance;

  GtkWidget *flap, *panel, *headline, *oom, *map, *waiting, *spinner,
      *waiting_text, *legend, *scrubber, *scrub_text, *scrub_scale, *chart, *chart_legend, *card, *drawer,
      *tables;
  GtkWidget *events, *blocks, *counters;

  CoopSession *session; /* NULL for a file */
  CoopCamera *camera;
  CoopShot *shot;
  CoopGrabNote *note;
  guint timer;
  gint64 words_at;
  guint events_serial, blocks_serial;
  guint64 selected;
  gboolean paused, rows_moving, setting_scrub, failed;
};

G_DEFINE_FINAL_TYPE (CoopRunPage, coop_run_page, GTK_TYPE_WIDGET)

enum { PROP_PAUSED = 1, PROP_PANEL_SHOWN, PROP_DRAWER_SHOWN, N_PROPS };
static GParamSpec *props[N_PROPS];
enum { REFRESHED, FAILED, AGAIN, MOMENT, N_SIGNALS };
static guint signals[N_SIGNALS];

/* ---- from shot to widgets ---- */

static void
show_answer (CoopRunPage *self)
{
  const char *text = coop_words_for_nothing ();
  if (self->shot && self->shot->answer)
    text = self->shot->answer;
  else if (self->selected != 0)
    text = _("The selected block is gone.");
  if (!g_str_equal (text, gtk_label_get_text (GTK_LABEL (self->card))))
    gtk_label_set_text (GTK_LABEL (self->card), text);
}

static gboolean
is_running (CoopRunPage *self)
{
  return self->session && coop_session_get_state (self->session) <= COOP_SESSION_RECORDING;
}

/* The ghost of the request lies on the map while there is no room for it. */
static void
show_oom (CoopRunPage *self, const CoopFrame *frame)
{
  gboolean ghost = frame->has_oom && frame->oom.asked > frame->totals.largest;
  coop_oom_card_set_frame (COOP_OOM_CARD (self->oom), frame, is_running (self), self->session != NULL);
  coop_map_widget_set_ghost (COOP_MAP_WIDGET (self->map), ghost ? frame->oom.asked : 0);
}

static void
show_tables (CoopRunPage *self)
{
  CoopShot *shot = self->shot;
  GtkWidget *visible = gtk_stack_get_visible_child (GTK_STACK (self->tables));
  gboolean moving = is_running (self) && !self->paused;
  guint n = moving ? ROWS_MOVING : ROWS_STILL;
  if (moving != self->rows_moving)
    self->events_serial = self->blocks_serial = 0;
  self->rows_moving = moving;
  if (!gtk_widget_get_visible (self->drawer))
    return;
  if (visible == self->events && shot->events && shot->events_serial != self->events_serial)
    {
      g_autoptr (GPtrArray) rows = coop_words_for_events (shot->events, n);
      coop_table_set_rows (COOP_TABLE (self->events), rows);
      self->events_serial = shot->events_serial;
    }
  if (visible == self->blocks && shot->scene && shot->map_serial != self->blocks_serial)
    {
      g_autoptr (GPtrArray) rows = coop_words_for_blocks (shot->scene, n);
      coop_table_set_rows (COOP_TABLE (self->blocks), rows);
      self->blocks_serial = shot->map_serial;
    }
  if (visible == self->counters && shot->scene)
    coop_counters_set_frame (COOP_COUNTERS (self->counters), shot->scene->frame, &shot->health);
}

static void
show_scrubber (CoopRunPage *self, const CoopFrame *frame)
{
  GtkAdjustment *adjustment = gtk_range_get_adjustment (GTK_RANGE (self->scrub_scale));
  double last = (double) self->shot->last_event;
  if (gtk_adjustment_get_upper (adjustment) != last)
    {
      self->setting_scrub = TRUE;
      gtk_adjustment_configure (adjustment, (double) frame->totals.seq, 0, last, 1, MAX (1, last / 100), 0);
      self->setting_scrub = FALSE;
    }
  g_autofree char *time = coop_format_ns (frame->totals.ts);
  g_autofree char *text = g_strdup_printf (
      /* Translators: number of an event, of how many, and its time */
      _("event %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " · %s"), frame->totals.seq,
      self->shot->last_event, time);
  gtk_label_set_text (GTK_LABEL (self->scrub_text), text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->scrub_scale), GTK_ACCESSIBLE_PROPERTY_VALUE_TEXT,
                                  text, -1);
  coop_chart_widget_set_now (COOP_CHART_WIDGET (self->chart), frame->totals.ts);
}

static void
show_words (CoopRunPage *self)
{
  const CoopScene *scene = self->shot->scene;
  if (!scene)
    return;
  const CoopFrame *frame = scene->frame;
  coop_headline_set_frame (COOP_HEADLINE (self->headline), frame);
  coop_legend_set_view (COOP_LEGEND (self->legend), &scene->view);
  coop_policy_panel_reach (COOP_POLICY_PANEL (self->panel), MAX (frame->totals.peak, frame->totals.budget));
  coop_policy_panel_set_policy (COOP_POLICY_PANEL (self->panel), &frame->policy);
  show_oom (self, frame);
  show_tables (self);
  if (!self->session)
    {
      coop_policy_panel_set_initial (COOP_POLICY_PANEL (self->panel), &frame->policy);
      show_scrubber (self, frame);
    }
  g_autofree char *sentence = coop_scene_describe (scene);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->map), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, sentence,
                                  -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->chart), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  sentence, -1);
}

static void
show_waiting (CoopRunPage *self)
{
  gboolean wait = self->camera && !self->failed && (!self->shot || !self->shot->scene);
  if (wait && self->session && coop_session_get_state (self->session) > COOP_SESSION_RECORDING)
    wait = FALSE;
  gtk_widget_set_visible (self->waiting, wait);
  gtk_spinner_set_spinning (GTK_SPINNER (self->spinner), wait);
  if (wait)
    gtk_label_set_text (GTK_LABEL (self->waiting_text),
                        self->session ? _("The script is starting.\nThe map appears with its first tensor.")
                                      : _("Reading the trace…"));
}

static void
show (CoopRunPage *self, CoopShot *shot)
{
  gint64 now = g_get_monotonic_time ();
  gboolean had_scene = self->shot && self->shot->scene;
  g_clear_pointer (&self->shot, coop_shot_unref);
  self->shot = coop_shot_ref (shot);
  coop_map_widget_set_shot (COOP_MAP_WIDGET (self->map), shot);
  coop_chart_widget_set_shot (COOP_CHART_WIDGET (self->chart), shot);
  show_answer (self);
  if (now - self->words_at >= WORDS_US || !self->session || !had_scene)
    {
      self->words_at = now;
      show_words (self);
    }
  show_waiting (self);
  g_signal_emit (self, signals[REFRESHED], 0);
}

static void
check_failure (CoopRunPage *self)
{
  g_autoptr (GError) error = self->failed ? NULL : coop_camera_error (self->camera);
  if (!error)
    return;
  self->failed = TRUE;
  show_waiting (self);
  g_signal_emit (self, signals[FAILED], 0, error->message);
}

static gboolean
tick (gpointer data)
{
  CoopRunPage *self = data;
  g_autoptr (CoopShot) shot = coop_camera_take (self->camera);
  if (shot)
    show (self, shot);
  else if (self->shot && g_get_monotonic_time () - self->words_at >= WORDS_US && self->session)
    {
      self->words_at = g_get_monotonic_time ();
      show_words (self);
    }
  check_failure (self);
  if (self->note && self->shot && self->shot->scene)
    coop_grab_note_update (self->note, COOP_MAP_WIDGET (self->map), self->shot->scene,
                           self->paused || !self->session);
  return G_SOURCE_CONTINUE;
}

/* ---- from widgets to the camera ---- */

static void
sizes_changed (CoopRunPage *self)
{
  int width, height;
  double scale;
  if (!self->camera)
    return;
  coop_map_widget_get_wanted (COOP_MAP_WIDGET (self->map), &width, &height, &scale);
  coop_camera_set_map (self->camera, width, height, scale);
  coop_chart_widget_get_wanted (COOP_CHART_WIDGET (self->chart), &width, &height, &scale);
  coop_camera_set_chart (self->camera, width, height, scale);
}

static void
theme_changed (CoopRunPage *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  if (self->camera)
    coop_camera_set_theme (self->camera, adw_style_manager_get_dark (style),
                           adw_style_manager_get_high_contrast (style));
  coop_words_fill_chart_legend (GTK_BOX (self->chart_legend));
}

static guint64
pointed_block (CoopRunPage *self)
{
  const CoopScene *scene = self->shot ? self->shot->scene : NULL;
  long at = coop_map_widget_get_pointed (COOP_MAP_WIDGET (self->map));
  return scene && at >= 0 && at < (long) scene->n_pieces ? scene->frame->pieces[at].block : 0;
}

static void
map_pointed (CoopRunPage *self)
{
  double x, y;
  if (!self->camera)
    return;
  if (coop_map_widget_get_point (COOP_MAP_WIDGET (self->map), &x, &y))
    coop_camera_point (self->camera, x, y);
  else
    coop_camera_point (self->camera, -1, -1);
}

static void
select_block (CoopRunPage *self, guint64 block)
{
  self->selected = block;
  if (self->camera)
    coop_camera_select (self->camera, block);
}

static void
map_chosen (CoopRunPage *self)
{
  guint64 block = pointed_block (self);
  select_block (self, block == self->selected ? 0 : block);
}

static void
block_picked (CoopTable *table, guint64 block, CoopRunPage *self)
{
  select_block (self, block);
}

static void
scrubbed (CoopRunPage *self)
{
  if (self->camera && !self->setting_scrub)
    coop_camera_set_event (self->camera,
                           (guint64) gtk_range_get_value (GTK_RANGE (self->scrub_scale)));
}

static void
table_shown (CoopRunPage *self)
{
  if (self->shot)
    show_tables (self);
}

/* The evictor stands for its preset: with it change the exponents that the preset names. */
static void
set_evictor (CoopRunPage *self, CoopEvictorName evictor)
{
  CoopPolicy policy, before;
  guint64 mask = 0;
  for (int i = 0; i < COOP_N_PARAMS; i++)
    policy.v[i] = coop_policy_panel_get_value (COOP_POLICY_PANEL (self->panel), (CoopParam) i);
  before = policy;
  coop_policy_preset (&policy, evictor);
  for (int i = 0; i < COOP_N_PARAMS; i++)
    if (!coop_value_equal ((CoopParam) i, before.v[i], policy.v[i]) || i == COOP_PARAM_EVICTOR)
      mask |= (guint64) 1 << i;
  coop_session_set_policy (self->session, &policy, mask, COOP_SOURCE_PRESET);
}

static void
policy_changed (CoopPolicyPanel *panel, guint param, CoopRunPage *self)
{
  CoopValue value = coop_policy_panel_get_value (panel, (CoopParam) param);
  if (!self->session)
    return;
  if (param == COOP_PARAM_EVICTOR)
    set_evictor (self, (CoopEvictorName) value.i);
  else
    coop_session_set_param (self->session, (CoopParam) param, value, COOP_SOURCE_SLIDER);
}

static void
budget_wanted (CoopOomCard *card, guint64 bytes, CoopRunPage *self)
{
  if (is_running (self))
    coop_session_set_param (self->session, COOP_PARAM_BUDGET, (CoopValue) { .i = (gint64) bytes },
                            COOP_SOURCE_SLIDER);
  else
    g_signal_emit (self, signals[AGAIN], 0, bytes);
}

static void
moment_wanted (CoopOomCard *card, guint64 event, CoopRunPage *self)
{
  if (self->session)
    g_signal_emit (self, signals[MOMENT], 0, event);
  else
    gtk_range_set_value (GTK_RANGE (self->scrub_scale), (double) event);
}

/* ---- the face ---- */

static void
begin (CoopRunPage *self, CoopCamera *camera)
{
  coop_run_page_clear (self);
  self->camera = camera;
  theme_changed (self);
  sizes_changed (self);
  show_waiting (self);
  self->timer = g_timeout_add_full (G_PRIORITY_LOW, TICK_MS, tick, self, NULL);
}

void
coop_run_page_set_session (CoopRunPage *self, CoopSession *session, const CoopPolicy *initial)
{
  g_object_ref (session);
  begin (self, coop_camera_new (session));
  self->session = session;
  gtk_widget_set_visible (self->scrubber, FALSE);
  coop_policy_panel_set_initial (COOP_POLICY_PANEL (self->panel), initial);
  coop_policy_panel_set_policy (COOP_POLICY_PANEL (self->panel), initial);
  coop_policy_panel_set_live (COOP_POLICY_PANEL (self->panel), TRUE);
  coop_chart_widget_set_now (COOP_CHART_WIDGET (self->chart), G_MAXUINT64);
  show_waiting (self);
}

void
coop_run_page_set_file (CoopRunPage *self, const char *path, guint64 event)
{
  begin (self, coop_camera_new_for_file (path));
  coop_camera_set_event (self->camera, event);
  gtk_widget_set_visible (self->scrubber, TRUE);
  coop_policy_panel_set_live (COOP_POLICY_PANEL (self->panel), FALSE);
}

void
coop_run_page_clear (CoopRunPage *self)
{
  g_clear_handle_id (&self->timer, g_source_remove);
  g_clear_pointer (&self->camera, coop_camera_free);
  g_clear_pointer (&self->shot, coop_shot_unref);
  g_clear_object (&self->session);
  self->failed = FALSE;
  self->words_at = 0;
  self->events_serial = self->blocks_serial = 0;
  self->selected = 0;
  if (self->paused)
    g_object_set (self, "paused", FALSE, NULL);
  if (self->map)
    {
      coop_map_widget_set_shot (COOP_MAP_WIDGET (self->map), NULL);
      coop_chart_widget_set_shot (COOP_CHART_WIDGET (self->chart), NULL);
      coop_map_widget_set_ghost (COOP_MAP_WIDGET (self->map), 0);
      gtk_widget_set_visible (self->oom, FALSE);
    }
}

const CoopFrame *
coop_run_page_get_frame (CoopRunPage *self)
{
  return self->shot && self->shot->scene ? self->shot->scene->frame : NULL;
}

gboolean
coop_run_page_get_file_state (CoopRunPage *self, CoopRunState *state, int *exit)
{
  if (!self->shot || self->session)
    return FALSE;
  *state = self->shot->file_state;
  *exit = self->shot->file_exit;
  return TRUE;
}

gboolean
coop_run_page_get_health (CoopRunPage *self, CoopSessionHealth *health)
{
  if (!self->shot || !self->session)
    return FALSE;
  *health = self->shot->health;
  return TRUE;
}

static void
coop_run_page_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  CoopRunPage *self = COOP_RUN_PAGE (object);
  gboolean on = g_value_get_boolean (value);
  switch (id)
    {
    case PROP_PAUSED:
      self->paused = on;
      if (self->camera)
        coop_camera_set_paused (self->camera, on);
      break;
    case PROP_PANEL_SHOWN:
      adw_flap_set_reveal_flap (ADW_FLAP (self->flap), on);
      break;
    case PROP_DRAWER_SHOWN:
      gtk_widget_set_visible (self->drawer, on);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
coop_run_page_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  CoopRunPage *self = COOP_RUN_PAGE (object);
  switch (id)
    {
    case PROP_PAUSED:
      g_value_set_boolean (value, self->paused);
      break;
    case PROP_PANEL_SHOWN:
      g_value_set_boolean (value, adw_flap_get_reveal_flap (ADW_FLAP (self->flap)));
      break;
    case PROP_DRAWER_SHOWN:
      g_value_set_boolean (value, gtk_widget_get_visible (self->drawer));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
coop_run_page_dispose (GObject *object)
{
  CoopRunPage *self = COOP_RUN_PAGE (object);
  g_signal_handlers_disconnect_by_data (adw_style_manager_get_default (), self);
  coop_run_page_clear (self);
  g_clear_pointer (&self->note, coop_grab_note_free);
  gtk_widget_dispose_template (GTK_WIDGET (self), COOP_TYPE_RUN_PAGE);
  G_OBJECT_CLASS (coop_run_page_parent_class)->dispose (object);
}

#define BIND(member) gtk_widget_class_bind_template_child (widget_class, CoopRunPage, member)

static void
bind_template (GtkWidgetClass *widget_class)
{
  gtk_widget_class_set_template_from_resource (widget_class, "/io/github/coopscope/Coopscope/run-page.ui");
  BIND (flap);
  BIND (panel);
  BIND (headline);
  BIND (oom);
  BIND (map);
  BIND (waiting);
  BIND (spinner);
  BIND (waiting_text);
  BIND (legend);
  BIND (scrubber);
  BIND (scrub_text);
  BIND (scrub_scale);
  BIND (chart);
  BIND (chart_legend);
  BIND (card);
  BIND (drawer);
  BIND (tables);
  gtk_widget_class_bind_template_callback (widget_class, sizes_changed);
  gtk_widget_class_bind_template_callback (widget_class, map_pointed);
  gtk_widget_class_bind_template_callback (widget_class, map_chosen);
  gtk_widget_class_bind_template_callback (widget_class, scrubbed);
  gtk_widget_class_bind_template_callback (widget_class, table_shown);
  gtk_widget_class_bind_template_callback (widget_class, budget_wanted);
  gtk_widget_class_bind_template_callback (widget_class, moment_wanted);
}

static void
coop_run_page_class_init (CoopRunPageClass *class)
{
  GObjectClass *object_class = G_OBJECT_CLASS (class);
  static const char *const names[N_PROPS]
      = { NULL, "paused", "panel-shown", "drawer-shown" };
  object_class->set_property = coop_run_page_set_property;
  object_class->get_property = coop_run_page_get_property;
  object_class->dispose = coop_run_page_dispose;
  for (int i = 1; i < N_PROPS; i++)
    props[i] = g_param_spec_boolean (names[i], NULL, NULL, i != PROP_PAUSED,
                                     G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
  signals[REFRESHED] = g_signal_new ("refreshed", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL,
                                     NULL, NULL, G_TYPE_NONE, 0);
  signals[FAILED] = g_signal_new ("failed", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[AGAIN] = g_signal_new ("again", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                 G_TYPE_NONE, 1, G_TYPE_UINT64);
  signals[MOMENT] = g_signal_new ("moment", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
  /* Where it is not typed into something. */
  gtk_widget_class_add_binding_action (GTK_WIDGET_CLASS (class), GDK_KEY_space, 0, "win.pause", NULL);
  g_type_ensure (COOP_TYPE_POLICY_PANEL);
  g_type_ensure (COOP_TYPE_HEADLINE);
  g_type_ensure (COOP_TYPE_MAP_WIDGET);
  g_type_ensure (COOP_TYPE_CHART_WIDGET);
  g_type_ensure (COOP_TYPE_LEGEND);
  g_type_ensure (COOP_TYPE_OOM_CARD);
  bind_template (GTK_WIDGET_CLASS (class));
}

static void
add_tables (CoopRunPage *self)
{
  GtkStack *stack = GTK_STACK (self->tables);
  self->events = coop_words_new_event_table ();
  self->blocks = coop_words_new_block_table ();
  self->counters = coop_counters_new ();
  g_signal_connect (self->blocks, "picked", G_CALLBACK (block_picked), self);
  gtk_stack_add_titled (stack, self->events, "events", _("Events"));
  gtk_stack_add_titled (stack, self->blocks, "blocks", _("Blocks"));
  gtk_stack_add_titled (stack, self->counters, "counters", _("Counters"));
}

static void
coop_run_page_init (CoopRunPage *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  gtk_widget_init_template (GTK_WIDGET (self));
  self->note = coop_grab_note_new_from_environment ();
  coop_map_widget_set_bare (COOP_MAP_WIDGET (self->map), self->note != NULL);
  add_tables (self);
  g_signal_connect (self->panel, "changed", G_CALLBACK (policy_changed), self);
  g_signal_connect_swapped (style, "notify::dark", G_CALLBACK (theme_changed), self);
  g_signal_connect_swapped (style, "notify::high-contrast", G_CALLBACK (theme_changed), self);
  theme_changed (self);
  show_answer (self);
}

GtkWidget *
coop_run_page_new (void)
{
  return g_object_new (COOP_TYPE_RUN_PAGE, NULL);
}
