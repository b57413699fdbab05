-- SPDX-License-Identifier: Apache-2.0
-- The named queries of `coop query FILE @NAME`. A query begins with `-- @NAME  what it answers`; the line
-- after it may give the instant that :at stands for unless told otherwise (`-- at: A|B`, the first that
-- there is). :top is the number of rows. Sizes are MiB, times ms or us, as their names say.

-- @peak  what is in memory at the peak, by kind, operator and line
-- at: peak
WITH live AS (
  SELECT b.bytes, t.kind, coalesce (t.op, b.op) AS op, b.stack
  FROM block b LEFT JOIN tensor t ON t.id = b.tensor
  WHERE coalesce (b.born_event, 0) <= :at AND (b.died_event IS NULL OR b.died_event > :at))
SELECT round (sum (l.bytes) / 1048576.0, 2) AS mib,
       round (100.0 * sum (l.bytes) / (SELECT used FROM event WHERE seq = :at), 1) AS percent,
       count (*) AS blocks, coalesce (k.label, CASE WHEN l.op IS NULL THEN 'unknown' ELSE 'workspace' END) AS kind,
       {op:n.text} AS operator, {line} AS line
FROM live l
LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = l.kind
LEFT JOIN op o ON o.id = l.op
{joins:o,l}
GROUP BY 4, 5, 6 ORDER BY sum (l.bytes) DESC, 4, 5, 6 LIMIT :top;

-- @blocks  the largest blocks at the peak, with what they hold and how long it has lain unused
-- at: peak
SELECT round (b.bytes / 1048576.0, 2) AS mib, printf ('%#x', b.addr) AS addr,
       coalesce (b.kind, CASE WHEN b.op IS NULL THEN 'unknown' ELSE 'workspace' END) AS kind, {op:b.operator} AS operator, b.shape,
       b.dtype, {line:b} AS line, round (((SELECT ts FROM event WHERE seq = :at) - b.born_ns) / 1e6, 2) AS age_ms,
       round (b.life_ns / 1e6, 2) AS life_ms, b.ended
FROM v_block b
WHERE coalesce (b.born_event, 0) <= :at AND (b.died_event IS NULL OR b.died_event > :at)
ORDER BY b.bytes DESC, b.addr LIMIT :top;

-- @holes  free memory in pieces, and what lies between: at the last out of memory, else at the peak
-- at: oom|peak
WITH budget AS (
  SELECT coalesce ((SELECT new FROM policy_change WHERE param = 'budget' AND event <= :at AND new > 0
                    ORDER BY event DESC LIMIT 1),
                   (SELECT max (addr + bytes) FROM block)) AS bytes),
walled AS (
  SELECT count (*) > 1 OR coalesce (max (base > 0 OR address IS NOT NULL OR bytes < (SELECT max (capacity) FROM pool)), 0) AS yes
  FROM segment),
wall AS (
  SELECT base, bytes FROM segment
  WHERE (SELECT yes FROM walled) AND born_event <= :at AND (died_event IS NULL OR died_event > :at)
  UNION ALL SELECT 0, bytes FROM budget WHERE NOT (SELECT yes FROM walled)),
live AS (
  SELECT b.addr, b.bytes, coalesce (k.label, CASE WHEN o.id IS NULL THEN 'unknown' ELSE 'workspace' END) AS kind,
         coalesce (p.label, 'unclaimed') AS pin, {op:n.text} AS operator, 3 AS place
  FROM block b
  LEFT JOIN tensor t ON t.id = b.tensor
  LEFT JOIN op o ON o.id = coalesce (t.op, b.op)
  LEFT JOIN string n ON n.id = o.name
  LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = t.kind
  LEFT JOIN enum_label p ON p.enum = 'pin' AND p.value = t.pin
  WHERE coalesce (b.born_event, 0) <= :at AND (b.died_event IS NULL OR b.died_event > :at)
  UNION ALL SELECT base, 0, 'begin', '', NULL, 2 FROM wall
  UNION ALL SELECT base + bytes, 0, CASE WHEN (SELECT yes FROM walled) THEN 'end' ELSE 'budget' END, '', NULL, 1 FROM wall),
sides AS (
  SELECT addr + bytes AS addr, lead (addr) OVER w - (addr + bytes) AS hole, bytes, kind, pin, operator, place,
         lead (bytes) OVER w AS r_bytes, lead (kind) OVER w AS r_kind, lead (pin) OVER w AS r_pin,
         lead (operator) OVER w AS r_operator
  FROM live WINDOW w AS (ORDER BY addr, place))
SELECT round (hole / 1048576.0, 2) AS hole_mib, printf ('%#x', addr) AS addr,
       round (bytes / 1048576.0, 2) AS left_mib,
       trim (kind || ' ' || coalesce (operator, '')) AS left, pin AS left_pin,
       round (r_bytes / 1048576.0, 2) AS right_mib,
       trim (r_kind || ' ' || coalesce (r_operator, '')) AS right, r_pin AS right_pin
FROM sides WHERE hole > 0 AND place > 1 AND ((SELECT yes FROM walled) OR addr < (SELECT bytes FROM budget))
ORDER BY hole DESC, addr LIMIT :top;

-- @pinned  what may not be evicted at the peak, by reason (as last known)
-- at: peak
SELECT coalesce (p.label, 'unclaimed') AS pin, round (sum (b.bytes) / 1048576.0, 2) AS mib, count (*) AS blocks,
       coalesce (k.label, 'workspace') AS kind, round (max (b.bytes) / 1048576.0, 2) AS largest_mib,
       {op:n.text} AS operator_of_largest
FROM block b
LEFT JOIN tensor t ON t.id = b.tensor
LEFT JOIN op o ON o.id = coalesce (t.op, b.op)
LEFT JOIN string n ON n.id = o.name
LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = t.kind
LEFT JOIN enum_label p ON p.enum = 'pin' AND p.value = t.pin
WHERE coalesce (b.born_event, 0) <= :at AND (b.died_event IS NULL OR b.died_event > :at)
  AND (t.id IS NULL OR t.pin <> 0)
GROUP BY 1, 4 ORDER BY sum (b.bytes) DESC LIMIT :top;

-- @thrash  what was recomputed more than once in a step: the policy runs in circles
SELECT o.step, count (*) AS times, round (sum (o.duration_ns) / 1e6, 2) AS ms, {op:n.text} AS operator,
       (SELECT round (sum (t.bytes) / 1048576.0, 2) FROM tensor t WHERE t.op = o.replay_of) AS output_mib,
       o.replay_of AS op, {line} AS line
FROM op o
{joins:o}
WHERE o.replay_of IS NOT NULL
GROUP BY o.replay_of, o.step HAVING count (*) > 1
ORDER BY times DESC, sum (o.duration_ns) DESC LIMIT :top;

-- @chains  operators for which most had to be recomputed first
WITH asked AS (
  SELECT id, replay_of, duration_ns,
         max (CASE WHEN replay_of IS NULL THEN id END) OVER (ORDER BY begin_event ROWS UNBOUNDED PRECEDING) AS asker
  FROM op)
SELECT count (*) AS recomputed, round (sum (a.duration_ns) / 1e6, 2) AS ms, o.step, ph.label AS phase,
       {op:n.text} AS operator, o.id AS op, {line} AS line
FROM asked a
JOIN op o ON o.id = a.asker
LEFT JOIN enum_label ph ON ph.enum = 'phase' AND ph.value = o.phase
{joins:o}
WHERE a.replay_of IS NOT NULL
GROUP BY o.id ORDER BY sum (a.duration_ns) DESC, o.id LIMIT :top;

-- @evicted-most  whose outputs were evicted most, and how often they came back
WITH back AS (SELECT tensor, count (*) AS n FROM event WHERE kind = 13 GROUP BY tensor),
gone AS (SELECT tensor, count (*) AS n, sum (bytes) AS bytes, sum (staleness) AS staleness, sum (own_cost) AS cost
         FROM evicted GROUP BY tensor)
SELECT sum (g.n) AS evictions, coalesce (sum (b.n), 0) AS came_back, round (sum (g.bytes) / 1048576.0, 1) AS mib,
       count (*) AS tensors, {op:n.text} AS operator, {line} AS line,
       round (sum (g.staleness) / sum (g.n) / 1e6, 1) AS unused_ms, round (sum (g.cost) / sum (g.n) / 1e6, 2) AS own_cost_ms
FROM gone g
LEFT JOIN back b ON b.tensor = g.tensor
LEFT JOIN tensor t ON t.id = g.tensor
LEFT JOIN op o ON o.id = t.op
{joins:o}
GROUP BY 5, 6 ORDER BY evictions DESC, sum (g.bytes) DESC LIMIT :top;

-- @regret  evicted and needed again at once: the shortest absences
WITH moves AS (
  SELECT tensor, seq, ts, kind, bytes, lead (kind) OVER w AS next, lead (ts) OVER w AS back
  FROM event WHERE kind IN (12, 13) AND tensor > 0 WINDOW w AS (PARTITION BY tensor ORDER BY seq))
SELECT round ((m.back - m.ts) / 1e6, 2) AS away_ms, round (m.ts / 1e9, 3) AS at_s, round (m.bytes / 1048576.0, 2) AS mib,
       round (x.staleness / 1e6, 1) AS unused_ms, round (x.own_cost / 1e6, 2) AS own_cost_ms,
       {op:n.text} AS operator, m.tensor, {line} AS line
FROM moves m
LEFT JOIN tensor t ON t.id = m.tensor
LEFT JOIN evicted x ON x.event = m.seq
LEFT JOIN op o ON o.id = t.op
{joins:o}
WHERE m.kind = 12 AND m.next = 13
ORDER BY m.back - m.ts LIMIT :top;

-- @oom  requests that could not be served, and why
SELECT round (m.ts_ns / 1e9, 3) AS at_s, {op:m.operator} AS operator, round (m.asked / 1048576.0, 2) AS asked_mib,
       round (m.free / 1048576.0, 2) AS free_mib, round (m.largest / 1048576.0, 2) AS largest_mib,
       round (m.evictable / 1048576.0, 2) AS evictable_mib,
       round ((m.pinned_operator + m.pinned_constant + m.pinned_escaped + m.pinned_user + m.pinned_unmanaged
               + m.unclaimed) / 1048576.0, 2) AS pinned_mib,
       CASE WHEN m.free >= m.asked THEN 'enough is free, but in pieces'
            WHEN m.free + m.evictable >= m.asked THEN 'enough could go, but what is pinned lies between'
            ELSE 'pinned: too little could go' END AS why,
       round (m.advice / 1048576.0, 1) AS would_do_mib, m.event
FROM v_oom m ORDER BY m.event LIMIT :top;

-- @steps  every step: time, extra time, evictions and the peak; step 0 is before the first
WITH starts AS (
  SELECT 0 AS step, 0 AS event, 0 AS ts
  UNION ALL SELECT step, event, ts FROM step),
s AS (
  SELECT step, event AS a, ts, lead (event, 1, 9223372036854775807) OVER (ORDER BY event) AS b,
         lead (ts, 1, (SELECT ts FROM event ORDER BY seq DESC LIMIT 1)) OVER (ORDER BY event) AS until
  FROM starts),
e AS (
  SELECT s.a, max (e.used) AS peak, sum (e.kind = 12) AS evictions, sum (e.kind = 13) AS back, sum (e.kind = 40) AS ooms
  FROM s JOIN event e ON e.seq >= s.a AND e.seq < s.b GROUP BY s.a),
o AS (
  SELECT step, sum (CASE WHEN replay_of IS NULL THEN duration_ns END) AS own, sum (replay_of IS NOT NULL) AS again,
         sum (CASE WHEN replay_of IS NOT NULL THEN duration_ns END) AS extra
  FROM op GROUP BY step)
SELECT s.step, round ((s.until - s.ts) / 1e6, 1) AS ms, round (o.own / 1e6, 1) AS operators_ms,
       coalesce (o.again, 0) AS recomputed, round (coalesce (o.extra, 0) / 1e6, 1) AS recompute_ms,
       round (100.0 * coalesce (o.extra, 0) / nullif (o.own, 0), 1) AS extra_percent,
       e.evictions, e.back AS came_back, round (e.peak / 1048576.0, 1) AS peak_mib, e.ooms AS out_of_memory
FROM s JOIN e ON e.a = s.a LEFT JOIN o ON o.step = s.step
ORDER BY s.a LIMIT :top;

-- @phases  forward, backward, optimizer: time, recomputing and the peak of each
WITH o AS (
  SELECT phase, replay_of, duration_ns,
         CASE WHEN replay_of IS NULL
              THEN (SELECT max (used) FROM event WHERE seq BETWEEN begin_event AND coalesce (end_event, begin_event)) END AS peak
  FROM op)
SELECT p.label AS phase, sum (o.replay_of IS NULL) AS operators,
       round (sum (CASE WHEN o.replay_of IS NULL THEN o.duration_ns END) / 1e6, 1) AS ms,
       sum (o.replay_of IS NOT NULL) AS recomputed,
       round (coalesce (sum (CASE WHEN o.replay_of IS NOT NULL THEN o.duration_ns END), 0) / 1e6, 1) AS recompute_ms,
       round (max (o.peak) / 1048576.0, 1) AS peak_mib
FROM o LEFT JOIN enum_label p ON p.enum = 'phase' AND p.value = o.phase
GROUP BY o.phase ORDER BY max (o.peak) DESC LIMIT :top;

-- @operators  by operator: calls, time, and what of it was recomputed or evicted
WITH gone AS (
  SELECT t.op, count (*) AS n, sum (x.bytes) AS bytes FROM evicted x JOIN tensor t ON t.id = x.tensor GROUP BY t.op)
SELECT {op:n.text} AS operator, sum (o.replay_of IS NULL) AS calls,
       round (sum (CASE WHEN o.replay_of IS NULL THEN o.duration_ns END) / 1e6, 2) AS ms,
       sum (o.replay_of IS NOT NULL) AS recomputed,
       round (coalesce (sum (CASE WHEN o.replay_of IS NOT NULL THEN o.duration_ns END), 0) / 1e6, 2) AS recompute_ms,
       coalesce (sum (g.n), 0) AS evictions, round (coalesce (sum (g.bytes), 0) / 1048576.0, 1) AS evicted_mib,
       round (max (o.workspace) / 1048576.0, 2) AS workspace_mib
FROM op o
LEFT JOIN string n ON n.id = o.name
LEFT JOIN gone g ON g.op = o.id
GROUP BY o.name ORDER BY sum (o.duration_ns) DESC LIMIT :top;

-- @lines  by line of the script: time, memory at the peak, recomputing, evictions
-- at: peak
WITH gone AS (
  SELECT t.op, sum (x.bytes) AS bytes FROM evicted x JOIN tensor t ON t.id = x.tensor GROUP BY t.op),
live AS (
  SELECT coalesce (t.op, b.op) AS op, b.stack, b.bytes
  FROM block b LEFT JOIN tensor t ON t.id = b.tensor
  WHERE coalesce (b.born_event, 0) <= :at AND (b.died_event IS NULL OR b.died_event > :at)),
made AS (SELECT op, sum (bytes) AS bytes FROM live WHERE op IS NOT NULL GROUP BY op),
part AS (
  SELECT {line} AS line, o.replay_of IS NULL AS own, o.duration_ns AS ns, m.bytes AS peak, g.bytes AS gone
  FROM op o
  {joins:o}
  LEFT JOIN gone g ON g.op = o.id
  LEFT JOIN made m ON m.op = o.id
  UNION ALL SELECT {line}, NULL, NULL, l.bytes, NULL
  FROM live l
  LEFT JOIN op o ON 0
  {joins:o,l}
  WHERE l.op IS NULL AND l.stack IS NOT NULL)
SELECT line, coalesce (sum (own), 0) AS operators, round (sum (CASE WHEN own THEN ns END) / 1e6, 2) AS ms,
       round (coalesce (sum (peak), 0) / 1048576.0, 2) AS at_peak_mib, coalesce (sum (NOT own), 0) AS recomputed,
       round (coalesce (sum (CASE WHEN NOT own THEN ns END), 0) / 1e6, 2) AS recompute_ms,
       round (coalesce (sum (gone), 0) / 1048576.0, 1) AS evicted_mib
FROM part GROUP BY line ORDER BY sum (ns) DESC, sum (peak) DESC, line LIMIT :top;

-- @fragmentation  how scattered free memory was when room was searched, by step
SELECT o.step, count (*) AS searches, round (avg (100.0 * v.free_before / v.budget), 1) AS free_percent,
       round (avg (100.0 * (1 - 1.0 * v.largest_before / nullif (v.free_before, 0))), 1) AS scattered_percent,
       round (max (v.need) / 1048576.0, 2) AS largest_need_mib,
       sum (v.free_before >= v.need AND v.largest_before < v.need) AS enough_but_in_pieces
FROM eviction v JOIN op o ON o.id = v.op
WHERE v.need > 0
GROUP BY o.step ORDER BY o.step LIMIT :top;

-- @search  what the search for victims costs
SELECT CASE WHEN victims > 0 THEN 'found' ELSE 'nothing found' END AS result, count (*) AS searches,
       round (sum (search_ns) / 1e6, 2) AS ms, round (avg (search_ns) / 1e3, 1) AS mean_us,
       round (max (search_ns) / 1e3, 1) AS longest_us, round (avg (visited), 1) AS blocks_visited,
       max (visited) AS most_visited, round (avg (victims), 2) AS victims, max (victims) AS most_victims,
       round (100.0 * sum (search_ns) / (SELECT nullif (sum (duration_ns), 0) FROM op WHERE replay_of IS NULL), 3)
         AS percent_of_operator_time
FROM eviction GROUP BY victims > 0 ORDER BY 1 LIMIT :top;

-- @policy  every value that a parameter took, and who set it; what it began with comes last
SELECT round (ts_ns / 1e9, 3) AS at_s, event, param, old, new, source FROM v_policy
ORDER BY source = 'initial', event LIMIT :top;

-- @leaks  what lives at the end and came anew in step after step
WITH live AS (
  SELECT b.bytes, t.kind, coalesce (t.op, b.op) AS op
  FROM block b LEFT JOIN tensor t ON t.id = b.tensor WHERE b.died_event IS NULL AND b.born_event IS NOT NULL)
SELECT count (DISTINCT o.step) AS steps, min (o.step) AS first, max (o.step) AS last, count (*) AS blocks,
       round (sum (l.bytes) / 1048576.0, 3) AS mib, coalesce (k.label, 'workspace') AS kind, {op:n.text} AS operator,
       {line} AS line
FROM live l
JOIN op o ON o.id = l.op
LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = l.kind
{joins:o}
WHERE o.step > 0
GROUP BY 6, 7, 8 HAVING steps > 1 ORDER BY sum (l.bytes) DESC LIMIT :top;

-- @sizes  how large blocks are, in powers of two
WITH RECURSIVE power (least) AS (SELECT 1 UNION ALL SELECT least * 2 FROM power WHERE least < 1 << 50),
sizes AS (SELECT bytes, count (*) AS n, count (life) AS ended, sum (life) AS life
          FROM (SELECT bytes, died_ns - born_ns AS life FROM block) GROUP BY bytes)
SELECT p.least AS least_bytes, sum (s.n) AS blocks, round (sum (s.bytes * s.n) / 1048576.0, 1) AS mib,
       count (*) AS distinct_sizes, round (1.0 * sum (s.life) / sum (s.ended) / 1e6, 2) AS mean_life_ms
FROM power p JOIN sizes s ON s.bytes >= p.least AND s.bytes < p.least * 2
GROUP BY p.least ORDER BY p.least LIMIT :top;

-- @workspace  temporary memory that operators take beside their results
SELECT {op:n.text} AS operator, count (*) AS blocks, round (max (b.bytes) / 1048576.0, 2) AS largest_mib,
       round (sum (b.bytes) / 1048576.0, 1) AS all_mib, round (avg (b.died_ns - b.born_ns) / 1e3, 1) AS mean_life_us
FROM block b JOIN op o ON o.id = b.op LEFT JOIN string n ON n.id = o.name
WHERE b.tensor IS NULL AND b.ended IS NOT 13 GROUP BY 1 ORDER BY max (b.bytes) DESC, 4 DESC LIMIT :top;

-- @floor  operators that need most at once: inputs, outputs and workspace
WITH needs AS (
  SELECT o.id, o.name, o.stack, o.step, coalesce (o.workspace, 0) AS workspace,
         coalesce ((SELECT sum (t.bytes) FROM tensor t
                    WHERE t.id IN (SELECT value FROM json_each (o.inputs)
                                   UNION SELECT value FROM json_each (o.outputs))), 0) AS tensors
  FROM op o WHERE o.replay_of IS NULL)
SELECT round (max (o.tensors + o.workspace) / 1048576.0, 2) AS needs_mib, round (o.tensors / 1048576.0, 2) AS tensors_mib,
       round (o.workspace / 1048576.0, 2) AS workspace_mib, {op:n.text} AS operator, count (*) AS calls, o.id AS op, {line} AS line
FROM needs o
{joins:o}
GROUP BY o.name, o.stack ORDER BY max (o.tensors + o.workspace) DESC, o.id LIMIT :top;

-- @warnings  what went wrong or is missing, in words
SELECT round (e.ts / 1e9, 3) AS at_s, w.event, w.text AS what, {op:n.text} AS operator
FROM warning w LEFT JOIN event e ON e.seq = w.event LEFT JOIN op o ON o.id = w.op LEFT JOIN string n ON n.id = o.name
UNION ALL SELECT round (e.ts / 1e9, 3), g.event, g.missing || ' events are missing before this one', NULL
FROM gap g LEFT JOIN event e ON e.seq = g.event
UNION ALL SELECT NULL, NULL, name || ': ' || value, NULL FROM stat
WHERE name IN ('lost_events', 'missing_events', 'ring_dropped', 'repeated_events', 'model_faults') AND value > 0
LIMIT :top;
