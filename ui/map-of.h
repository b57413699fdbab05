/* SPDX-License-Identifier: Apache-2.0 */
/* `coopscope --map-of FILE`: the picture of the map at an event, without a display. */
#pragma once

#include <glib.h>

/* TRUE if the arguments ask for it. */
gboolean coop_map_of_wanted (int argc, char **argv);
/* Exit status: 0 done, 1 failed, 2 wrong use. */
int coop_map_of (int argc, char **argv);
