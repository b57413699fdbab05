/* SPDX-License-Identifier: Apache-2.0 */
/* Run page: takes the camera's newest shot from a low-priority timer, so that input and the
 * accessibility bus come first, and passes on to camera and session what a person does.
 */
#include "config.h"

#include "run-page-private.h"

#include <adwaita.h>

#include "chart-widget.h"
#include "drawer.h"
#include "headline.h"
#include "legend.h"
#include "map-bar.h"
#include "map-widget.h"
#include "oom-card.h"
#include "policy-panel.h"
#include "run-words.h"
#include "scrubber.h"

#define TICK_MS 33

G_DEFINE_FINAL_TYPE (CoopRunPage, coop_run_page, GTK_TYPE_WIDGET)

enum { PROP_PAUSED = 1, PROP_PANEL_SHOWN, PROP_DRAWER_SHOWN, N_PROPS };
static GParamSpec *props[N_PROPS];
enum { REFRESHED, FAILED, AGAIN, MOMENT, SOUGHT, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
check_failure (CoopRunPage *self)
{
  g_autoptr (GError) error = self->failed ? NULL : coop_camera_error (self->camera);
  if (!error)
    return;
  self->failed = TRUE;
  coop_run_page_show_waiting (self);
  g_signal_emit (self, signals[FAILED], 0, error->message);
}

static gboolean
tick (gpointer data)
{
  CoopRunPage *self = data;
  g_autoptr (CoopShot) shot = coop_camera_take (self->camera);
  if (shot)
    {
      coop_run_page_show (self, shot);
      coop_run_page_step_other (self);
      g_signal_emit (self, signals[REFRESHED], 0);
    }
  else
    {
      coop_run_page_show_words_if_due (self);
      coop_run_page_rest (self);
      coop_drawer_grow (COOP_DRAWER (self->drawer));
    }
  coop_run_page_take_other (self);
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

void
coop_run_page_set_camera_theme (CoopCamera *camera)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  coop_camera_set_theme (camera, adw_style_manager_get_dark (style), adw_style_manager_get_high_contrast (style));
}

static void
theme_changed (CoopRunPage *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  if (self->camera)
    coop_run_page_set_camera_theme (self->camera);
  if (self->other_camera)
    coop_run_page_set_camera_theme (self->other_camera);
  coop_legend_set_theme (COOP_LEGEND (self->legend), adw_style_manager_get_dark (style),
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

void
coop_run_page_select (CoopRunPage *self, guint64 block)
{
  self->selected = block;
  coop_drawer_set_block (COOP_DRAWER (self->drawer), block);
  if (self->camera)
    coop_camera_select (self->camera, block);
}

static void
map_chosen (CoopRunPage *self)
{
  guint64 block = pointed_block (self);
  coop_run_page_select (self, block == self->selected ? 0 : block);
}

static void
block_picked (CoopDrawer *drawer, guint64 block, CoopRunPage *self)
{
  coop_run_page_select (self, block);
}

static void
scrubbed (CoopScrubber *scrubber, guint64 seq, CoopRunPage *self)
{
  if (self->camera)
    coop_camera_set_event (self->camera, seq);
}

/* In the past there is a frame for each moment; of a run that has ended, its file has them. */
static void
chart_sought (CoopChartWidget *chart, guint64 ts, CoopRunPage *self)
{
  if (self->session)
    g_signal_emit (self, signals[SOUGHT], 0, ts);
  else
    coop_run_page_seek (self, ts);
}

/* "-1": the event before; "e1": the next eviction; "-", "+": the ends. */
static gboolean
step (GtkWidget *widget, GVariant *args, gpointer data)
{
  CoopRunPage *self = COOP_RUN_PAGE (widget);
  CoopScrubber *scrubber = COOP_SCRUBBER (self->scrubber);
  const char *how = g_variant_get_string (args, NULL);
  if (!self->camera || self->session)
    return FALSE;
  if (*how == 'e')
    coop_run_page_step_eviction (self, atoi (how + 1));
  else if (how[1] == '\0')
    coop_scrubber_go_to (scrubber, *how == '-' ? 0 : G_MAXUINT32);
  else
    coop_scrubber_step (scrubber, atoi (how));
  return TRUE;
}

static void
table_shown (CoopRunPage *self)
{
  if (self->shot)
    coop_run_page_show_tables (self);
}

static void
policy_changed (CoopPolicyPanel *panel, guint param, CoopRunPage *self)
{
  if (self->session)
    coop_policy_panel_apply (panel, (CoopParam) param, self->session);
  else
    coop_run_page_ask_what_if (self, param);
}

static void
budget_wanted (CoopOomCard *card, guint64 bytes, CoopRunPage *self)
{
  if (coop_run_page_is_running (self))
    coop_session_set_param (self->session, COOP_PARAM_BUDGET, (CoopValue) { .i = (gint64) bytes },
                            COOP_SOURCE_SLIDER);
  else
    g_signal_emit (self, signals[AGAIN], 0, bytes);
}

void
coop_run_page_go_to (CoopRunPage *self, guint64 event)
{
  if (self->session)
    g_signal_emit (self, signals[MOMENT], 0, event);
  else
    coop_scrubber_go_to (COOP_SCRUBBER (self->scrubber), event);
}

static void
moment_wanted (CoopOomCard *card, guint64 event, CoopRunPage *self)
{
  coop_run_page_go_to (self, event);
}

/* ---- the face ---- */

static void
begin (CoopRunPage *self, CoopCamera *camera)
{
  coop_run_page_clear (self);
  self->camera = camera;
  theme_changed (self);
  sizes_changed (self);
  coop_run_page_look (self);
  coop_run_page_show_waiting (self);
  self->timer = g_timeout_add_full (G_PRIORITY_LOW, TICK_MS, tick, self, NULL);
}

void
coop_run_page_set_starting (CoopRunPage *self, const CoopPolicy *initial)
{
  coop_run_page_clear (self);
  coop_run_page_show_live (self);
  coop_policy_panel_set_initial (COOP_POLICY_PANEL (self->panel), initial);
  self->starting = TRUE;
  gtk_widget_set_visible (self->scrubber, FALSE);
  coop_run_page_show_waiting (self);
}

void
coop_run_page_set_reading (CoopRunPage *self)
{
  coop_run_page_clear (self);
  self->reading = TRUE;
  gtk_widget_set_visible (self->scrubber, FALSE);
  coop_run_page_show_live (self);
  coop_run_page_show_waiting (self);
}

void
coop_run_page_set_session (CoopRunPage *self, CoopSession *session, const CoopPolicy *initial)
{
  g_object_ref (session);
  begin (self, coop_camera_new (session));
  self->session = session;
  coop_drawer_set_path (COOP_DRAWER (self->drawer), coop_session_get_trace (session));
  gtk_widget_set_visible (self->scrubber, FALSE);
  coop_policy_panel_set_initial (COOP_POLICY_PANEL (self->panel), initial);
  coop_policy_panel_set_policy (COOP_POLICY_PANEL (self->panel), initial);
  coop_run_page_show_live (self);
  coop_chart_widget_set_now (COOP_CHART_WIDGET (self->chart), G_MAXUINT64);
  coop_run_page_show_waiting (self);
}

void
coop_run_page_set_file (CoopRunPage *self, const char *path, guint64 event)
{
  begin (self, coop_camera_new_for_file (path));
  coop_camera_set_event (self->camera, event);
  self->path = g_strdup (path);
  coop_drawer_set_path (COOP_DRAWER (self->drawer), path);
  gtk_widget_set_visible (self->scrubber, TRUE);
  coop_run_page_show_live (self);
}

void
coop_run_page_seek (CoopRunPage *self, guint64 ts)
{
  g_return_if_fail (self->camera && !self->session);
  coop_scrubber_follow (COOP_SCRUBBER (self->scrubber));
  coop_camera_set_time (self->camera, ts);
}

void
coop_run_page_step_eviction (CoopRunPage *self, int n)
{
  g_return_if_fail (self->camera && !self->session);
  coop_scrubber_follow (COOP_SCRUBBER (self->scrubber));
  coop_camera_step_eviction (self->camera, n);
}

void
coop_run_page_clear (CoopRunPage *self)
{
  g_clear_handle_id (&self->timer, g_source_remove);
  g_clear_pointer (&self->camera, coop_camera_free);
  g_clear_pointer (&self->shot, coop_shot_unref);
  g_clear_object (&self->session);
  coop_run_page_clear_what_if (self);
  self->failed = self->starting = self->reading = FALSE;
  self->words_at = 0;
  self->selected = 0;
  self->found = FALSE;
  self->legend_serial = 0;
  if (self->paused)
    g_object_set (self, "paused", FALSE, NULL);
  if (self->map)
    {
      coop_map_widget_set_shot (COOP_MAP_WIDGET (self->map), NULL);
      coop_chart_widget_set_shot (COOP_CHART_WIDGET (self->chart), NULL);
      coop_map_widget_set_ghost (COOP_MAP_WIDGET (self->map), 0);
      coop_drawer_reset (COOP_DRAWER (self->drawer));
      coop_drawer_set_path (COOP_DRAWER (self->drawer), NULL);
      coop_legend_forget_extras (COOP_LEGEND (self->legend));
      gtk_widget_set_visible (self->oom, FALSE);
    }
}

const CoopFrame *
coop_run_page_get_frame (CoopRunPage *self)
{
  return self->shot && self->shot->scene ? self->shot->scene->frame : NULL;
}

char *
coop_run_page_get_lacks (CoopRunPage *self)
{
  return self->camera && !self->session ? coop_camera_lacks (self->camera) : NULL;
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
coop_run_page_finalize (GObject *object)
{
  g_array_unref (COOP_RUN_PAGE (object)->policies);
  G_OBJECT_CLASS (coop_run_page_parent_class)->finalize (object);
}

static void
coop_run_page_dispose (GObject *object)
{
  CoopRunPage *self = COOP_RUN_PAGE (object);
  g_signal_handlers_disconnect_by_data (adw_style_manager_get_default (), self);
  coop_run_page_clear (self);
  g_clear_pointer (&self->note, coop_grab_note_free);
  if (self->flap)
    g_signal_handlers_disconnect_by_data (self->flap, self);
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
  BIND (what_if_card);
  BIND (bar);
  BIND (map);
  BIND (other_map);
  BIND (waiting);
  BIND (spinner);
  BIND (waiting_text);
  BIND (legend);
  BIND (scrubber);
  BIND (chart);
  BIND (chart_legend);
  BIND (card);
  BIND (drawer);
  coop_run_page_bind_look (widget_class);
  coop_run_page_bind_what_if (widget_class);
  gtk_widget_class_bind_template_callback (widget_class, sizes_changed);
  gtk_widget_class_bind_template_callback (widget_class, map_pointed);
  gtk_widget_class_bind_template_callback (widget_class, map_chosen);
  gtk_widget_class_bind_template_callback (widget_class, scrubbed);
  gtk_widget_class_bind_template_callback (widget_class, chart_sought);
  gtk_widget_class_bind_template_callback (widget_class, block_picked);
  gtk_widget_class_bind_template_callback (widget_class, table_shown);
  gtk_widget_class_bind_template_callback (widget_class, budget_wanted);
  gtk_widget_class_bind_template_callback (widget_class, moment_wanted);
}

/* Where it is not typed into something. */
static void
add_keys (GtkWidgetClass *widget_class)
{
  static const struct
  {
    guint key;
    GdkModifierType mods;
    const char *how;
  } keys[] = {
    { GDK_KEY_bracketleft, 0, "-1" },  { GDK_KEY_bracketright, 0, "+1" },
    { GDK_KEY_braceleft, 0, "e-1" },   { GDK_KEY_braceright, 0, "e1" },
    { GDK_KEY_bracketleft, GDK_SHIFT_MASK, "e-1" }, { GDK_KEY_bracketright, GDK_SHIFT_MASK, "e1" },
    { GDK_KEY_Home, 0, "-" },          { GDK_KEY_End, 0, "+" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    gtk_widget_class_add_binding (widget_class, keys[i].key, keys[i].mods, step, "s", keys[i].how);
  gtk_widget_class_add_binding_action (widget_class, GDK_KEY_space, 0, "win.pause", NULL);
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
  object_class->finalize = coop_run_page_finalize;
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
  signals[SOUGHT] = g_signal_new ("sought", G_TYPE_FROM_CLASS (class), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
  add_keys (GTK_WIDGET_CLASS (class));
  g_type_ensure (COOP_TYPE_POLICY_PANEL);
  g_type_ensure (COOP_TYPE_HEADLINE);
  g_type_ensure (COOP_TYPE_MAP_BAR);
  g_type_ensure (COOP_TYPE_MAP_WIDGET);
  g_type_ensure (COOP_TYPE_CHART_WIDGET);
  g_type_ensure (COOP_TYPE_LEGEND);
  g_type_ensure (COOP_TYPE_OOM_CARD);
  g_type_ensure (COOP_TYPE_SCRUBBER);
  g_type_ensure (COOP_TYPE_DRAWER);
  bind_template (GTK_WIDGET_CLASS (class));
}

static void
flap_revealed (CoopRunPage *self)
{
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_PANEL_SHOWN]);
}

static void
coop_run_page_init (CoopRunPage *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  self->policies = g_array_new (FALSE, FALSE, sizeof (CoopPolicy));
  gtk_widget_init_template (GTK_WIDGET (self));
  self->note = coop_grab_note_new_from_environment ();
  coop_map_widget_set_bare (COOP_MAP_WIDGET (self->map), self->note != NULL);
  g_signal_connect (self->panel, "changed", G_CALLBACK (policy_changed), self);
  g_signal_connect_swapped (style, "notify::dark", G_CALLBACK (theme_changed), self);
  g_signal_connect_swapped (style, "notify::high-contrast", G_CALLBACK (theme_changed), self);
  theme_changed (self);
  g_signal_connect_swapped (self->flap, "notify::reveal-flap", G_CALLBACK (flap_revealed), self);
  coop_policy_panel_set_live (COOP_POLICY_PANEL (self->panel), FALSE, FALSE);
  coop_chart_widget_set_seekable (COOP_CHART_WIDGET (self->chart), TRUE);
  coop_run_page_show_answer (self);
}

GtkWidget *
coop_run_page_new (void)
{
  return g_object_new (COOP_TYPE_RUN_PAGE, NULL);
}
