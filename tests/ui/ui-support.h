/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests with a display. */
#pragma once

#include <gtk/gtk.h>

/* The first widget of a type below root, depth first; NULL if there is none. */
static inline GtkWidget *
find_widget (GtkWidget *root, GType type)
{
  if (G_TYPE_CHECK_INSTANCE_TYPE (root, type))
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child; child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = find_widget (child, type);
      if (found)
        return found;
    }
  return NULL;
}

/* The first label below root whose text contains `text`, shown or not. */
static inline GtkWidget *
find_text (GtkWidget *root, const char *text)
{
  if (GTK_IS_LABEL (root) && strstr (gtk_label_get_text (GTK_LABEL (root)), text))
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child; child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = find_text (child, text);
      if (found)
        return found;
    }
  return NULL;
}

/* Turns the main loop until `done` holds; fails after 10 s. */
#define spin_until(done)                                                                            \
  G_STMT_START                                                                                      \
  {                                                                                                 \
    gint64 until_ = g_get_monotonic_time () + 10 * G_USEC_PER_SEC;                                  \
    while (!(done))                                                                                 \
      {                                                                                             \
        if (g_get_monotonic_time () > until_)                                                       \
          g_error ("%s:%d: not within 10 s: %s", __FILE__, __LINE__, #done);                        \
        if (!g_main_context_iteration (NULL, FALSE))                                                \
          g_usleep (1000);                                                                          \
      }                                                                                             \
  }                                                                                                 \
  G_STMT_END

static inline void
spin_ms (guint ms)
{
  gint64 until = g_get_monotonic_time () + ms * 1000;
  while (g_get_monotonic_time () < until)
    if (!g_main_context_iteration (NULL, FALSE))
      g_usleep (1000);
}

/* Gives up the only reference to a widget and checks that nothing else held it. */
static inline void
assert_finalized (GtkWidget *widget)
{
  gpointer gone = widget;
  g_object_add_weak_pointer (G_OBJECT (widget), &gone);
  if (GTK_IS_WINDOW (widget))
    gtk_window_destroy (GTK_WINDOW (widget));
  else
    {
      if (g_object_is_floating (widget))
        g_object_ref_sink (widget);
      g_object_unref (widget);
    }
  spin_until (gone == NULL);
}
