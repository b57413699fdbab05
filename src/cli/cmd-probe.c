/* SPDX-License-Identifier: Apache-2.0 */
/* coop probe: three blocks, two freed, one of twice the size asked for. Prints what this machine's
 * allocators do with that. */
#include "cli.h"

#include "device/cuda.h"
#include "probe-host.h"

#include <stdio.h>
#include <string.h>

#define NAME "probe"

static gboolean
read_ordinal (const char *text, int *ordinal)
{
  guint64 n = 0;

  *ordinal = 0;
  if (*text == '\0')
    return TRUE;
  if (*text != ':' || !g_ascii_string_to_unsigned (text + 1, 10, 0, 1023, &n, NULL))
    return FALSE;
  *ordinal = (int) n;
  return TRUE;
}

static int
probe_cuda (int ordinal, guint64 unit, const char *variant, gboolean json)
{
  CoopCuda cuda;

  if (!coop_cuda_load (&cuda))
    return coop_cli_fail (NAME, "%s", cuda.why);
  if (ordinal >= cuda.n_devices)
    return coop_cli_fail (NAME, "there is no device cuda:%d; the driver knows %d", ordinal,
                          cuda.n_devices);
  return coop_cuda_probe (&cuda, ordinal, unit, variant, json, stdout, stderr);
}

int
coop_cmd_probe (int argc, char **argv)
{
  g_autofree char *device = NULL, *unit_text = NULL, *page_text = NULL, *variant = NULL;
  gboolean json = FALSE;
  guint64 unit = 0, page = 0;
  int ordinal;
  const GOptionEntry entries[] = {
    { "device", 'd', 0, G_OPTION_ARG_STRING, &device, "host (this machine's memory), cuda, or cuda:N", "DEVICE" },
    { "unit", 'u', 0, G_OPTION_ARG_STRING, &unit_text,
      "size of each of the three blocks (host: 64 MiB; cuda: a sixth of what is free, at most 7 GiB)", "SIZE" },
    { "page", 0, 0, G_OPTION_ARG_STRING, &page_text, "host: bytes of a page (2 MiB)", "SIZE" },
    { "variant", 0, 0, G_OPTION_ARG_STRING, &variant, "this one alone", "NAME" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, "one JSON object a step", NULL },
    G_OPTION_ENTRY_NULL
  };

  if (!coop_cli_parse ("", "Does freed memory make one block? p1, p2 and p3 of one unit each fill the memory; "
                       "p1 and p3 are freed;\np4 asks for two units. Prints what happened and how long it "
                       "took.", entries, &argc, &argv))
    return COOP_EXIT_USAGE;
  if (argc > 1)
    return coop_cli_usage (NAME, "\"%s\" is too much", argv[1]);
  if (unit_text != NULL && (coop_size_parse (unit_text, &unit) != COOP_PARSE_OK || unit == 0))
    return coop_cli_usage (NAME, "--unit: \"%s\" is not a size", unit_text);
  if (page_text != NULL && (coop_size_parse (page_text, &page) != COOP_PARSE_OK || page == 0))
    return coop_cli_usage (NAME, "--page: \"%s\" is not a size", page_text);
  if (device == NULL || g_str_equal (device, "host"))
    return coop_probe_host (unit, page, variant, json);
  if (page != 0)
    return coop_cli_usage (NAME, "--page: a GPU has its own");
  if (!g_str_has_prefix (device, "cuda") || !read_ordinal (device + 4, &ordinal))
    return coop_cli_usage (NAME, "--device: host, cuda or cuda:N is wanted");
  return probe_cuda (ordinal, unit, variant, json);
}
