/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: looked up first, since a missing schema would end the program. */
#include "config.h"

#include "settings.h"

#define SCHEMA "io.github.coopscope.Coopscope"

GSettings *
coop_settings_new (void)
{
  GSettingsSchemaSource *source = g_settings_schema_source_get_default ();
  GSettingsSchema *schema = source ? g_settings_schema_source_lookup (source, SCHEMA, TRUE) : NULL;
  if (!schema)
    return NULL;
  g_settings_schema_unref (schema);
  return g_settings_new (SCHEMA);
}
