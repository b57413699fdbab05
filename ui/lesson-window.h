/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson window: lessons to choose from, step by step, with a question before each reveal, and a line to
 * try things out in. Needs no PyTorch: the engine plays.
 *
 * Lessons come with the program, in the language in force if there is one, and from the folder
 * coopscope/lessons of the user's data folder.
 */
#pragma once

#include <adwaita.h>

#include "lesson.h"

G_BEGIN_DECLS

#define COOP_TYPE_LESSON_WINDOW (coop_lesson_window_get_type ())
G_DECLARE_FINAL_TYPE (CoopLessonWindow, coop_lesson_window, COOP, LESSON_WINDOW, AdwWindow)

GtkWidget *coop_lesson_window_new (GtkApplication *application);
/* A lesson from a file, in front of those that are there. What is wrong with it is said in the window. */
void coop_lesson_window_open (CoopLessonWindow *self, const char *path);
guint coop_lesson_window_get_n_lessons (CoopLessonWindow *self);
/* As a person does: chooses a lesson, goes on or back, answers, types a command. */
void coop_lesson_window_choose (CoopLessonWindow *self, guint lesson);
void coop_lesson_window_step (CoopLessonWindow *self, int by);
void coop_lesson_window_answer (CoopLessonWindow *self, const char *choice);
void coop_lesson_window_try (CoopLessonWindow *self, const char *commands);
/* What the map shows; valid until the next change. */
const CoopFrame *coop_lesson_window_get_frame (CoopLessonWindow *self);

G_END_DECLS
