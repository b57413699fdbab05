/* SPDX-License-Identifier: Apache-2.0 */
/* Grab note: tells a script that took a grab of the screen which event the map shows and where it is.
 *
 * With COOPSCOPE_GRAB_NOTE=PATH in the environment, whenever the view stands still (paused, or a file)
 * and its picture has been painted, PATH holds one line:
 *
 *   event=N x=X y=Y w=W h=H dark=0|1 contrast=0|1 scale=S
 *
 * in pixels of the window, so that `coopscope --map-of FILE --event N --size WxH` can be compared with
 * the grab. Outlines on top of the map are left away then, since they belong to the pointer and not to
 * the event. While the view moves, there is no such file.
 */
#pragma once

#include "map-widget.h"

G_BEGIN_DECLS

typedef struct CoopGrabNote CoopGrabNote;

/* NULL if none is wanted. */
CoopGrabNote *coop_grab_note_new_from_environment (void);
void coop_grab_note_free (CoopGrabNote *note);
void coop_grab_note_update (CoopGrabNote *note, CoopMapWidget *map, const CoopScene *scene,
                            gboolean still);

G_END_DECLS
