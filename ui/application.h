/* SPDX-License-Identifier: Apache-2.0 */
/* Application: windows, the command line, what belongs to no window. */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

#define COOP_TYPE_APPLICATION (coop_application_get_type ())
G_DECLARE_FINAL_TYPE (CoopApplication, coop_application, COOP, APPLICATION, AdwApplication)

CoopApplication *coop_application_new (void);
/* Exit status of the script that --quit-when-done waited for; else 0. */
int coop_application_get_status (CoopApplication *self);

G_END_DECLS
