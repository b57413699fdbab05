/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson window: see the header. */
#include "config.h"

#include "lesson-window.h"

#include <glib/gi18n.h>

#include "format.h"
#include "map-widget.h"

#define FOLDER "/io/github/coopscope/Coopscope/lessons"

struct _CoopLessonWindow
{
  AdwWindow parent_instance;

  GPtrArray *lessons;  /* CoopLesson */
  CoopLesson *lesson;  /* one of them */
  guint at;            /* its step */
  gboolean answered;   /* or there was no question */
  GString *tries;      /* commands typed at this step */
  CoopToyView view;

  GtkWidget *list, *title, *count, *text, *map, *numbers, *why, *question, *ask, *choices, *because, *back, *next,
      *entry, *untry, *error, *stack;
};

G_DEFINE_FINAL_TYPE (CoopLessonWindow, coop_lesson_window, ADW_TYPE_WINDOW)

static CoopLessonStep *
step_of (CoopLessonWindow *self)
{
  return self->lesson ? self->lesson->steps->pdata[self->at] : NULL;
}

/* ---- the map ---- */

static void
paint (CoopLessonWindow *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  CoopSceneOptions options = { .dark = adw_style_manager_get_dark (style),
                               .contrast = adw_style_manager_get_high_contrast (style) };
  static guint serial;
  if (!self->view.frame)
    return;
  options.look.strip = TRUE;
  options.look.why = gtk_check_button_get_active (GTK_CHECK_BUTTON (self->why));
  coop_map_widget_get_wanted (COOP_MAP_WIDGET (self->map), &options.width, &options.height, &options.scale);
  CoopScene *scene = coop_scene_new (self->view.frame, &options);
  if (!scene)
    return;
  g_autoptr (GBytes) bytes
      = g_bytes_new_with_free_func (scene->pixels, (gsize) scene->view.width * (gsize) scene->view.height * 4,
                                    (GDestroyNotify) coop_scene_unref, coop_scene_ref (scene));
  CoopShot parts = { .scene = scene, .map_serial = ++serial };
  parts.map = gdk_memory_texture_new (scene->view.width, scene->view.height, GDK_MEMORY_DEFAULT, bytes,
                                      (gsize) scene->view.width * 4);
  g_autoptr (CoopShot) shot = coop_shot_new (&parts);
  coop_map_widget_set_shot (COOP_MAP_WIDGET (self->map), shot);
  g_autofree char *sentence = coop_scene_describe (scene);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->map), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, sentence, -1);
  g_object_unref (parts.map);
  coop_scene_unref (scene);
}

static void
show_numbers (CoopLessonWindow *self)
{
  const CoopModelTotals *t = &self->view.frame->totals;
  const CoopPlayOutcome *out = &self->view.outcome;
  g_autofree char *used = coop_format_bytes (t->used), *available = coop_format_bytes (t->free);
  g_autofree char *largest = coop_format_bytes (t->largest);
  g_autofree char *text = g_strdup_printf (
      /* Translators: three sizes and three numbers */
      _("%s used · %s free, the largest hole %s · %u evictions, %u operators run again"), used, available, largest,
      (guint) t->evictions, (guint) t->replays);
  g_autofree char *whole
      = out->result == COOP_PLAY_OK ? g_strdup (text) : g_strdup_printf ("%s · %s", text, coop_play_text (out->result));
  gtk_label_set_text (GTK_LABEL (self->numbers), whole);
}

/* Before a question is answered the map shows what was before it. */
static void
play (CoopLessonWindow *self)
{
  CoopLessonStep *step = step_of (self);
  CoopLessonStep *shown = step;
  g_autoptr (CoopProgram) tried = NULL;
  if (!step)
    return;
  if (!self->answered && self->at > 0)
    shown = self->lesson->steps->pdata[self->at - 1];
  coop_toy_view_clear (&self->view);
  if (self->tries->len > 0)
    {
      tried = coop_toy_new ();
      coop_toy_add (tried, step->commands, NULL);
      coop_toy_add (tried, self->tries->str, NULL);
    }
  coop_toy_play (tried ? tried : shown->program, &shown->policy, &self->view);
  show_numbers (self);
  paint (self);
}

/* ---- the question ---- */

static void
show_answer (CoopLessonWindow *self, gboolean right)
{
  CoopLessonStep *step = step_of (self);
  g_autofree char *text = NULL;
  if (step->ask)
    text = g_strdup_printf ("%s %s", right ? _("Right.") : _("No."), step->because ? step->because : "");
  if (step->ask && !right)
    {
      g_free (text);
      /* Translators: the right answer, and why */
      text = g_strdup_printf (_("It is: %s. %s"), step->answer, step->because ? step->because : "");
    }
  gtk_label_set_text (GTK_LABEL (self->because), text ? text : step->because ? step->because : "");
  gtk_widget_set_visible (self->because, text || step->because);
}

void
coop_lesson_window_answer (CoopLessonWindow *self, const char *choice)
{
  CoopLessonStep *step = step_of (self);
  if (!step || self->answered)
    return;
  self->answered = TRUE;
  gtk_widget_set_sensitive (self->choices, FALSE);
  gtk_widget_set_sensitive (self->next, self->at + 1 < self->lesson->steps->len);
  show_answer (self, g_str_equal (choice, step->answer));
  play (self);
  gtk_widget_grab_focus (self->next);
}

static void
choice_clicked (GtkButton *button, CoopLessonWindow *self)
{
  coop_lesson_window_answer (self, gtk_button_get_label (button));
}

static void
show_question (CoopLessonWindow *self)
{
  CoopLessonStep *step = step_of (self);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (self->choices)))
    gtk_box_remove (GTK_BOX (self->choices), child);
  gtk_widget_set_visible (self->question, step->ask != NULL);
  gtk_widget_set_sensitive (self->choices, TRUE);
  gtk_label_set_text (GTK_LABEL (self->ask), step->ask ? step->ask : "");
  for (guint i = 0; step->ask && i < step->choices->len; i++)
    {
      GtkWidget *button = gtk_button_new_with_label (step->choices->pdata[i]);
      g_signal_connect (button, "clicked", G_CALLBACK (choice_clicked), self);
      gtk_box_append (GTK_BOX (self->choices), button);
    }
}

/* ---- steps ---- */

static void
show_step (CoopLessonWindow *self)
{
  CoopLessonStep *step = step_of (self);
  guint n = self->lesson->steps->len;
  /* Translators: number of a step, of how many */
  g_autofree char *count = g_strdup_printf (_("Step %u of %u"), self->at + 1, n);
  self->answered = step->ask == NULL;
  g_string_truncate (self->tries, 0);
  gtk_label_set_text (GTK_LABEL (self->title), self->lesson->title);
  gtk_label_set_text (GTK_LABEL (self->count), count);
  gtk_label_set_text (GTK_LABEL (self->text), step->text);
  gtk_label_set_text (GTK_LABEL (self->error), "");
  gtk_widget_set_sensitive (self->back, self->at > 0);
  gtk_widget_set_sensitive (self->next, self->answered && self->at + 1 < n);
  show_question (self);
  if (self->answered)
    show_answer (self, TRUE);
  gtk_widget_set_visible (self->because, self->answered && step->because);
  play (self);
}

void
coop_lesson_window_step (CoopLessonWindow *self, int by)
{
  if (!self->lesson || (by > 0 && (self->at + 1 >= self->lesson->steps->len || !self->answered)) || (by < 0 && self->at == 0))
    return;
  self->at = (guint) ((int) self->at + by);
  show_step (self);
}

static void
next_clicked (CoopLessonWindow *self)
{
  coop_lesson_window_step (self, 1);
}

static void
back_clicked (CoopLessonWindow *self)
{
  coop_lesson_window_step (self, -1);
}

/* ---- trying ---- */

void
coop_lesson_window_try (CoopLessonWindow *self, const char *commands)
{
  CoopLessonStep *step = step_of (self);
  g_autoptr (GError) error = NULL;
  gsize before = self->tries->len;
  if (!step)
    return;
  if (!self->answered)
    {
      gtk_label_set_text (GTK_LABEL (self->error), _("Answer first, then try."));
      return;
    }
  g_string_append_printf (self->tries, "%s\n", commands);
  g_autoptr (CoopProgram) program = coop_toy_new ();
  coop_toy_add (program, step->commands, NULL);
  if (!coop_toy_add (program, self->tries->str, &error))
    g_string_truncate (self->tries, before);
  gtk_label_set_text (GTK_LABEL (self->error), error ? error->message : "");
  play (self);
}

static void
entry_activated (GtkEntry *entry, CoopLessonWindow *self)
{
  g_autofree char *text = g_strdup (gtk_editable_get_text (GTK_EDITABLE (entry)));
  coop_lesson_window_try (self, text);
  if (*gtk_label_get_text (GTK_LABEL (self->error)) == '\0')
    gtk_editable_set_text (GTK_EDITABLE (entry), "");
}

static void
untry_clicked (CoopLessonWindow *self)
{
  g_string_truncate (self->tries, 0);
  gtk_label_set_text (GTK_LABEL (self->error), "");
  play (self);
}

/* ---- the list ---- */

static void
add_lesson (CoopLessonWindow *self, CoopLesson *lesson)
{
  GtkWidget *row = adw_action_row_new ();
  g_autofree char *title = g_markup_escape_text (lesson->title, -1);
  g_autofree char *about = g_markup_escape_text (lesson->about ? lesson->about : "", -1);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), title);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), about);
  gtk_list_box_append (GTK_LIST_BOX (self->list), row);
  g_ptr_array_add (self->lessons, lesson);
}

static void
add_text (CoopLessonWindow *self, const char *text, const char *name)
{
  g_autoptr (GError) error = NULL;
  CoopLesson *lesson = coop_lesson_parse (text, &error);
  if (lesson)
    {
      add_lesson (self, lesson);
      return;
    }
  g_autofree char *said = g_strdup_printf ("%s: %s", name, error->message);
  gtk_label_set_text (GTK_LABEL (self->error), said);
}

/* In the language in force, else as it is. */
static GBytes *
resource (const char *name)
{
  const char *const *languages = g_get_language_names ();
  for (; *languages; languages++)
    {
      g_autofree char *path = g_strdup_printf (FOLDER "/%s/%s", *languages, name);
      GBytes *bytes = g_resources_lookup_data (path, 0, NULL);
      if (bytes)
        return bytes;
    }
  g_autofree char *path = g_strdup_printf (FOLDER "/%s", name);
  return g_resources_lookup_data (path, 0, NULL);
}

static int
by_name (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *) a, *(const char *const *) b);
}

static void
add_own (CoopLessonWindow *self)
{
  g_auto (GStrv) names = g_resources_enumerate_children (FOLDER, 0, NULL);
  if (!names)
    return;
  qsort (names, g_strv_length (names), sizeof *names, by_name);
  for (char **name = names; *name; name++)
    {
      g_autoptr (GBytes) bytes = g_str_has_suffix (*name, ".lesson") ? resource (*name) : NULL;
      g_autofree char *text = bytes ? g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes)) : NULL;
      if (text)
        add_text (self, text, *name);
    }
}

static gboolean
add_file (CoopLessonWindow *self, const char *path)
{
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  guint before = self->lessons->len;
  if (g_file_get_contents (path, &text, NULL, &error))
    add_text (self, text, path);
  else
    gtk_label_set_text (GTK_LABEL (self->error), error->message);
  return self->lessons->len > before;
}

static void
add_users (CoopLessonWindow *self)
{
  g_autofree char *folder = g_build_filename (g_get_user_data_dir (), "coopscope", "lessons", NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name (dir)))
    if (g_str_has_suffix (name, ".lesson"))
      {
        g_autofree char *path = g_build_filename (folder, name, NULL);
        add_file (self, path);
      }
}

static void
row_selected (GtkListBox *list, GtkListBoxRow *row, CoopLessonWindow *self)
{
  if (!row)
    return;
  self->lesson = self->lessons->pdata[gtk_list_box_row_get_index (row)];
  self->at = 0;
  show_step (self);
}

/* ---- the window ---- */

static void
coop_lesson_window_dispose (GObject *object)
{
  CoopLessonWindow *self = COOP_LESSON_WINDOW (object);
  g_signal_handlers_disconnect_by_data (adw_style_manager_get_default (), self);
  G_OBJECT_CLASS (coop_lesson_window_parent_class)->dispose (object);
}

static void
coop_lesson_window_finalize (GObject *object)
{
  CoopLessonWindow *self = COOP_LESSON_WINDOW (object);
  coop_toy_view_clear (&self->view);
  g_ptr_array_unref (self->lessons);
  g_string_free (self->tries, TRUE);
  G_OBJECT_CLASS (coop_lesson_window_parent_class)->finalize (object);
}

static void
coop_lesson_window_class_init (CoopLessonWindowClass *class)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (class);
  G_OBJECT_CLASS (class)->dispose = coop_lesson_window_dispose;
  G_OBJECT_CLASS (class)->finalize = coop_lesson_window_finalize;
  gtk_widget_class_add_binding_action (widget_class, GDK_KEY_Escape, 0, "window.close", NULL);
}

static GtkWidget *
label (const char *class)
{
  GtkWidget *widget = gtk_label_new (NULL);
  gtk_label_set_wrap (GTK_LABEL (widget), TRUE);
  gtk_label_set_xalign (GTK_LABEL (widget), 0);
  if (class)
    gtk_widget_add_css_class (widget, class);
  return widget;
}

static GtkWidget *
button (CoopLessonWindow *self, const char *text, GCallback clicked)
{
  GtkWidget *widget = gtk_button_new_with_mnemonic (text);
  g_signal_connect_swapped (widget, "clicked", clicked, self);
  return widget;
}

static GtkWidget *
make_question (CoopLessonWindow *self)
{
  self->question = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);
  self->ask = label ("heading");
  self->choices = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);
  gtk_box_append (GTK_BOX (self->question), self->ask);
  gtk_box_append (GTK_BOX (self->question), self->choices);
  return self->question;
}

static GtkWidget *
make_foot (CoopLessonWindow *self)
{
  GtkWidget *foot = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);
  self->entry = gtk_entry_new ();
  gtk_widget_set_hexpand (self->entry, TRUE);
  gtk_entry_set_placeholder_text (GTK_ENTRY (self->entry), _("Try it: a 1200; a 2KiB 5ms from 1; u 1; f 1"));
  gtk_widget_set_tooltip_text (self->entry,
                               _("a SIZE COST from N: a tensor of a cheap operator, A: of an expensive one, c SIZE: a "
                                 "constant, u N: use it, w N: write it in place, f N: let it go. Tensors are numbered "
                                 "from 1."));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Commands"), -1);
  g_signal_connect (self->entry, "activate", G_CALLBACK (entry_activated), self);
  self->untry = button (self, _("_Take Back"), G_CALLBACK (untry_clicked));
  self->back = button (self, _("_Back"), G_CALLBACK (back_clicked));
  self->next = button (self, _("_Next"), G_CALLBACK (next_clicked));
  gtk_widget_add_css_class (self->next, "suggested-action");
  gtk_box_append (GTK_BOX (foot), self->entry);
  gtk_box_append (GTK_BOX (foot), self->untry);
  gtk_box_append (GTK_BOX (foot), self->back);
  gtk_box_append (GTK_BOX (foot), self->next);
  return foot;
}

static GtkWidget *
make_page (CoopLessonWindow *self)
{
  GtkWidget *page = gtk_box_new (GTK_ORIENTATION_VERTICAL, 12), *line = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8);
  self->title = label ("title-2");
  self->count = label ("dim-label");
  self->text = label ("lesson-text");
  self->map = coop_map_widget_new ();
  self->numbers = label ("numeric");
  self->why = gtk_check_button_new_with_mnemonic (_("W_hy These"));
  self->because = label ("lesson-because");
  self->error = label ("error");
  gtk_widget_set_size_request (self->map, 480, 120);
  gtk_widget_set_vexpand (self->map, FALSE);
  gtk_widget_set_hexpand (self->numbers, TRUE);
  gtk_widget_set_visible (self->because, FALSE);
  g_signal_connect_swapped (self->map, "resized", G_CALLBACK (paint), self);
  g_signal_connect_swapped (self->why, "toggled", G_CALLBACK (paint), self);
  gtk_box_append (GTK_BOX (line), self->numbers);
  gtk_box_append (GTK_BOX (line), self->why);
  GtkWidget *parts[] = { self->title, self->count, self->text, self->map, line, make_question (self), self->because,
                         self->error, make_foot (self) };
  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    gtk_box_append (GTK_BOX (page), parts[i]);
  gtk_widget_set_vexpand (self->error, TRUE);
  gtk_label_set_yalign (GTK_LABEL (self->error), 1);
  gtk_widget_set_hexpand (page, TRUE);
  gtk_widget_add_css_class (page, "page");
  return page;
}

static void
coop_lesson_window_init (CoopLessonWindow *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  GtkWidget *whole = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0), *body = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  self->lessons = g_ptr_array_new_with_free_func ((GDestroyNotify) coop_lesson_free);
  self->tries = g_string_new (NULL);
  self->list = gtk_list_box_new ();
  gtk_widget_add_css_class (self->list, "navigation-sidebar");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->list), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Lessons"), -1);
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), self->list);
  gtk_widget_set_size_request (scroller, 260, -1);
  gtk_box_append (GTK_BOX (body), scroller);
  gtk_box_append (GTK_BOX (body), gtk_separator_new (GTK_ORIENTATION_VERTICAL));
  gtk_box_append (GTK_BOX (body), make_page (self));
  gtk_widget_set_vexpand (body, TRUE);
  gtk_box_append (GTK_BOX (whole), adw_header_bar_new ());
  gtk_box_append (GTK_BOX (whole), body);
  adw_window_set_content (ADW_WINDOW (self), whole);
  gtk_window_set_title (GTK_WINDOW (self), _("Lessons"));
  gtk_window_set_default_size (GTK_WINDOW (self), 1080, 720);
  g_signal_connect (self->list, "row-selected", G_CALLBACK (row_selected), self);
  g_signal_connect_swapped (style, "notify::dark", G_CALLBACK (paint), self);
  g_signal_connect_swapped (style, "notify::high-contrast", G_CALLBACK (paint), self);
  add_own (self);
  add_users (self);
  coop_lesson_window_choose (self, 0);
}

GtkWidget *
coop_lesson_window_new (GtkApplication *application)
{
  return g_object_new (COOP_TYPE_LESSON_WINDOW, "application", application, NULL);
}

void
coop_lesson_window_open (CoopLessonWindow *self, const char *path)
{
  if (add_file (self, path))
    coop_lesson_window_choose (self, self->lessons->len - 1);
}

guint
coop_lesson_window_get_n_lessons (CoopLessonWindow *self)
{
  return self->lessons->len;
}

void
coop_lesson_window_choose (CoopLessonWindow *self, guint lesson)
{
  GtkListBoxRow *row = gtk_list_box_get_row_at_index (GTK_LIST_BOX (self->list), (int) lesson);
  gtk_list_box_select_row (GTK_LIST_BOX (self->list), row);
}

const CoopFrame *
coop_lesson_window_get_frame (CoopLessonWindow *self)
{
  return self->view.frame;
}
