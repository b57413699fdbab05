/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process can have: RAM, or what its control group allows. */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t
read_number (const char *path)
{
  char text[64] = "";
  FILE *file = fopen (path, "re");
  if (file == NULL)
    return UINT64_MAX;
  size_t n = fread (text, 1, sizeof text - 1, file);
  fclose (file);
  text[n] = 0;
  char *end = text;
  uint64_t value = strtoull (text, &end, 10);   /* "max" is no number: no limit */
  return end == text || value == 0 ? UINT64_MAX : value;
}

/* The tightest limit from the group up to the root. */
static uint64_t
group_limit (const char *root, const char *group, const char *file)
{
  char path[4096], own[2048];
  uint64_t limit = UINT64_MAX;
  snprintf (own, sizeof own, "%s", group);
  for (;;)
    {
      snprintf (path, sizeof path, "%s%s/%s", root, own, file);
      uint64_t value = read_number (path);
      limit = value < limit ? value : limit;
      char *slash = strrchr (own, '/');
      if (slash == NULL)
        return limit;
      *slash = 0;
    }
}

/* Lines of /proc/self/cgroup: "0::/a/b" (version 2) or "4:memory:/a/b" (version 1). */
static uint64_t
cgroup_limit (void)
{
  char line[2048];
  uint64_t limit = UINT64_MAX;
  FILE *file = fopen ("/proc/self/cgroup", "re");
  if (file == NULL)
    return limit;
  while (fgets (line, sizeof line, file) != NULL)
    {
      line[strcspn (line, "\n")] = 0;
      char *names = strchr (line, ':');
      char *group = names != NULL ? strchr (names + 1, ':') : NULL;
      if (group == NULL)
        continue;
      *group++ = 0;
      uint64_t value = UINT64_MAX;
      if (names[1] == 0)
        value = group_limit ("/sys/fs/cgroup", group, "memory.max");
      else if (strstr (names + 1, "memory") != NULL)
        value = group_limit ("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
      limit = value < limit ? value : limit;
    }
  fclose (file);
  return limit;
}

uint64_t
coop_host_memory (void)
{
  long pages = sysconf (_SC_PHYS_PAGES), page = sysconf (_SC_PAGESIZE);
  uint64_t ram = pages > 0 && page > 0 ? (uint64_t) pages * (uint64_t) page : UINT64_MAX;
  uint64_t limit = cgroup_limit ();
  uint64_t least = ram < limit ? ram : limit;
  return least == UINT64_MAX ? 0 : least;
}
