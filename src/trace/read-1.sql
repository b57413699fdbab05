-- SPDX-License-Identifier: Apache-2.0
-- A trace of version 1 as one of today looks: over a file that may not be written, nothing is copied.
CREATE TEMP VIEW stack AS SELECT *, frame AS shown FROM main.stack;
CREATE TEMP VIEW segment AS
  SELECT *, NULL AS address, NULL AS stream, NULL AS private_pool, NULL AS small, NULL AS expandable,
         NULL AS stack FROM main.segment;
CREATE TEMP VIEW block AS SELECT *, NULL AS stack FROM main.block;
CREATE TEMP VIEW oom AS SELECT *, NULL AS device_free, NULL AS stack FROM main.oom;
