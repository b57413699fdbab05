/* SPDX-License-Identifier: Apache-2.0 */
/* Lesson: a plain text that teachers can write. Lines of KEY: VALUE; a line that begins with a space goes on
 * with the value before; # begins a remark.
 *
 *   title:    once, first                       about: one line for the list
 *   policy:   KEY=VALUE KEY=VALUE ..            from here on; names as everywhere, evictor takes its preset
 *   step:     what to read                      begins a step; the keys below belong to it
 *   new:                                        (empty) the program begins anew
 *   do:       commands of toy.h                 what happens in this step
 *   ask:      a question, before the map shows what happened
 *   choice:   a possible answer; as often as wanted
 *   answer:   the right one, with {numbers} out of the replay
 *   because:  what to notice, likewise
 *
 * Numbers: {used} {free} {largest} {budget} {peak} {evicted} sizes; {holes} {evictions} {recomputed}
 * {searches} counts; {result} ok or why not; {overhead}. A lesson whose answer is not among the choices is
 * refused: what it claims is what the engine does.
 */
#pragma once

#include "toy.h"

G_BEGIN_DECLS

typedef struct {
  char *text, *ask, *answer, *because;  /* NULL: none; numbers are filled in */
  char *commands;                       /* up to and with this step, since the program began */
  GPtrArray *choices;                   /* char * */
  CoopPolicy policy;
  CoopProgram *program;                 /* up to and with this step */
} CoopLessonStep;

typedef struct {
  char *title, *about;
  GPtrArray *steps;                     /* CoopLessonStep */
} CoopLesson;

CoopLesson *coop_lesson_parse (const char *text, GError **error);
void coop_lesson_free (CoopLesson *lesson);
/* Fills {numbers} in; g_free. NULL with error: no such number. */
char *coop_lesson_fill (const char *text, const CoopToyView *view, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CoopLesson, coop_lesson_free)

G_END_DECLS
