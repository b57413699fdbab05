/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the window. */
#pragma once

#include <gio/gio.h>

/* NULL where the schema is not installed: everything works without. */
GSettings *coop_settings_new (void);
