-- SPDX-License-Identifier: Apache-2.0
-- A trace. Times are ns since the run began, sizes bytes, costs ns; addresses are offsets on the
-- pool's map. NULL is unknown or none. `event` columns are sequence numbers: rowids of table event.
-- The views v_* are the public interface; tables may change with user_version.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- state: enum_label 'state'. RUNNING without a live writer means interrupted.
CREATE TABLE session (
  id INTEGER PRIMARY KEY, start_ns INTEGER, end_ns INTEGER, state INTEGER NOT NULL,
  exit_code INTEGER, pid INTEGER) STRICT;

CREATE TABLE enum_label (
  enum TEXT NOT NULL, value INTEGER NOT NULL, label TEXT NOT NULL,
  PRIMARY KEY (enum, value)) STRICT, WITHOUT ROWID;

CREATE TABLE string (id INTEGER PRIMARY KEY, event INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
CREATE TABLE frame (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, file INTEGER, func INTEGER, line INTEGER) STRICT;
CREATE TABLE stack (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, parent INTEGER, frame INTEGER, depth INTEGER) STRICT;

CREATE TABLE pool (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, device INTEGER, allocator INTEGER, budget INTEGER,
  capacity INTEGER) STRICT;
CREATE TABLE segment (
  id INTEGER PRIMARY KEY, pool INTEGER, base INTEGER, bytes INTEGER, born_event INTEGER,
  died_event INTEGER) STRICT;

-- Every event, lossless. Columns hold the fields that most kinds have; `rest` holds the others and
-- the body (LEB128 words, see event-codec.c). used and largest are what the map shows after it.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, kind INTEGER NOT NULL, thread INTEGER NOT NULL,
  block INTEGER, tensor INTEGER, op INTEGER, addr INTEGER, bytes INTEGER,
  used INTEGER, largest INTEGER, rest BLOB) STRICT;

-- One row an operator, written when it ends. inputs and outputs are JSON arrays of tensor numbers:
-- three rows an operator in a table of their own would take twice the bytes and half the speed, and
-- json_each joins them as well (v_operator_input, v_operator_output).
CREATE TABLE op (
  id INTEGER PRIMARY KEY, name INTEGER, replay_of INTEGER, begin_event INTEGER NOT NULL,
  end_event INTEGER, start_ns INTEGER NOT NULL, duration_ns INTEGER, cost_ns INTEGER,
  workspace INTEGER, stack INTEGER, phase INTEGER, step INTEGER, failed INTEGER,
  inputs TEXT NOT NULL, outputs TEXT) STRICT;

-- kind and pin as last known.
CREATE TABLE tensor (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, storage INTEGER, op INTEGER, output INTEGER,
  dtype INTEGER, shape TEXT, bytes INTEGER, kind INTEGER, pin INTEGER) STRICT;

-- One row a life, written when it ends; what still lives when the file is closed has no end.
-- ended: kind of the event that ended it. A birth lost in a gap is NULL.
CREATE TABLE block (
  id INTEGER PRIMARY KEY, addr INTEGER NOT NULL, bytes INTEGER NOT NULL, requested INTEGER,
  tensor INTEGER, op INTEGER, born_event INTEGER, born_ns INTEGER,
  died_event INTEGER, died_ns INTEGER, ended INTEGER) STRICT;

-- One row a search for victims, found or not.
CREATE TABLE eviction (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, need INTEGER, lo INTEGER, hi INTEGER,
  victims INTEGER, visited INTEGER, cost REAL, next_cost REAL, search_ns INTEGER,
  free_before INTEGER, largest_before INTEGER, budget INTEGER, op INTEGER) STRICT;
CREATE TABLE evicted (
  block INTEGER PRIMARY KEY, eviction INTEGER, event INTEGER NOT NULL, tensor INTEGER,
  addr INTEGER, bytes INTEGER, h REAL, own_cost INTEGER, chain_cost INTEGER, staleness INTEGER) STRICT;

-- old and new: a number, or the label of an enumeration.
CREATE TABLE policy_change (
  event INTEGER PRIMARY KEY, param TEXT NOT NULL, old ANY, new ANY, source INTEGER,
  generation INTEGER) STRICT;

CREATE TABLE oom (
  event INTEGER PRIMARY KEY, asked INTEGER, free INTEGER, largest INTEGER, advice INTEGER,
  op INTEGER, budget INTEGER, evictable INTEGER, unclaimed INTEGER, pinned_operator INTEGER,
  pinned_constant INTEGER, pinned_escaped INTEGER, pinned_user INTEGER, pinned_unmanaged INTEGER) STRICT;

CREATE TABLE step (event INTEGER PRIMARY KEY, step INTEGER NOT NULL, ts INTEGER NOT NULL) STRICT;
CREATE TABLE annotation (event INTEGER PRIMARY KEY, ts INTEGER NOT NULL, string INTEGER) STRICT;
CREATE TABLE warning (
  event INTEGER PRIMARY KEY, code INTEGER, text TEXT, tensor INTEGER, op INTEGER) STRICT;
CREATE TABLE gap (event INTEGER PRIMARY KEY, first INTEGER, missing INTEGER) STRICT;

-- The model after `event`: any moment is a keyframe and a short replay.
CREATE TABLE layout_keyframe (
  event INTEGER PRIMARY KEY, entities INTEGER NOT NULL, model BLOB NOT NULL) STRICT;

-- Usage over time: level L has buckets of 2^(20 + 3 L) ns; buckets without events have no row.
-- *_last is the value that goes on into what follows.
CREATE TABLE usage_lod (
  level INTEGER NOT NULL, bucket INTEGER NOT NULL, used_min INTEGER, used_max INTEGER,
  used_last INTEGER, largest_min INTEGER, largest_last INTEGER, pinned_max INTEGER,
  pinned_last INTEGER, budget INTEGER, evictions INTEGER, handovers INTEGER, n INTEGER,
  PRIMARY KEY (level, bucket)) STRICT, WITHOUT ROWID;

-- Totals of the run and of the recording.
CREATE TABLE stat (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;

CREATE VIEW v_event AS
  SELECT e.seq, e.ts AS ts_ns, k.label AS kind, e.thread, e.block, e.tensor, e.op, e.addr, e.bytes,
         e.used, e.largest
  FROM event e LEFT JOIN enum_label k ON k.enum = 'event' AND k.value = e.kind;

CREATE VIEW v_operator AS
  SELECT o.id, n.text AS name, o.replay_of, o.start_ns, o.duration_ns, o.cost_ns, o.workspace,
         p.label AS phase, o.step, o.failed, o.inputs, o.outputs,
         f.text AS file, fr.line AS line, fn.text AS func, o.begin_event, o.end_event
  FROM op o
  LEFT JOIN string n ON n.id = o.name
  LEFT JOIN enum_label p ON p.enum = 'phase' AND p.value = o.phase
  LEFT JOIN stack s ON s.id = o.stack
  LEFT JOIN frame fr ON fr.id = s.frame
  LEFT JOIN string f ON f.id = fr.file
  LEFT JOIN string fn ON fn.id = fr.func;

CREATE VIEW v_operator_input AS
  SELECT o.id AS op, j.key AS position, j.value AS tensor FROM op o, json_each (o.inputs) j;
CREATE VIEW v_operator_output AS
  SELECT o.id AS op, j.key AS position, j.value AS tensor FROM op o, json_each (o.outputs) j;

CREATE VIEW v_tensor AS
  SELECT t.id, t.storage, d.text AS dtype, t.shape, t.bytes, k.label AS kind, p.label AS pin,
         t.op, n.text AS operator, t.output
  FROM tensor t
  LEFT JOIN string d ON d.id = t.dtype
  LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = t.kind
  LEFT JOIN enum_label p ON p.enum = 'pin' AND p.value = t.pin
  LEFT JOIN op o ON o.id = t.op
  LEFT JOIN string n ON n.id = o.name;

CREATE VIEW v_block AS
  SELECT b.id, b.addr, b.bytes, b.requested, b.tensor, t.shape, d.text AS dtype, k.label AS kind,
         n.text AS operator, coalesce (t.op, b.op) AS op, b.born_ns, b.died_ns,
         b.died_ns - b.born_ns AS life_ns, e.label AS ended, b.born_event, b.died_event
  FROM block b
  LEFT JOIN tensor t ON t.id = b.tensor
  LEFT JOIN string d ON d.id = t.dtype
  LEFT JOIN enum_label k ON k.enum = 'kind' AND k.value = t.kind
  LEFT JOIN op o ON o.id = coalesce (t.op, b.op)
  LEFT JOIN string n ON n.id = o.name
  LEFT JOIN enum_label e ON e.enum = 'event' AND e.value = b.ended;

CREATE VIEW v_usage AS
  SELECT bucket * (1 << 20) AS ts_ns, used_min, used_max, largest_min, pinned_max, budget, evictions,
         handovers, n AS events
  FROM usage_lod WHERE level = 0;

CREATE VIEW v_eviction AS
  SELECT v.id, v.event, e.ts AS ts_ns, v.need, v.lo, v.hi, v.victims, v.visited, v.cost, v.next_cost,
         v.search_ns, v.free_before, v.largest_before, v.budget, v.op, n.text AS operator,
         (SELECT sum (x.bytes) FROM evicted x WHERE x.eviction = v.id) AS evicted_bytes
  FROM eviction v
  LEFT JOIN event e ON e.seq = v.event
  LEFT JOIN op o ON o.id = v.op
  LEFT JOIN string n ON n.id = o.name;

CREATE VIEW v_evicted AS
  SELECT x.eviction, x.event, x.block, x.tensor, x.addr, x.bytes, x.h, x.own_cost, x.chain_cost,
         x.staleness, t.shape, n.text AS operator
  FROM evicted x
  LEFT JOIN tensor t ON t.id = x.tensor
  LEFT JOIN op o ON o.id = t.op
  LEFT JOIN string n ON n.id = o.name;

-- free_part: the paper's fragmentation rate. scattered: 1 - largest free run / free bytes.
CREATE VIEW v_fragmentation AS
  SELECT v.event, e.ts AS ts_ns, v.need, v.free_before, v.largest_before,
         CAST (v.free_before AS REAL) / nullif (v.budget, 0) AS free_part,
         1.0 - CAST (v.largest_before AS REAL) / nullif (v.free_before, 0) AS scattered
  FROM eviction v LEFT JOIN event e ON e.seq = v.event;

CREATE VIEW v_policy AS
  SELECT p.event, e.ts AS ts_ns, p.param, p.old, p.new, s.label AS source, p.generation
  FROM policy_change p
  LEFT JOIN event e ON e.seq = p.event
  LEFT JOIN enum_label s ON s.enum = 'source' AND s.value = p.source;

CREATE VIEW v_oom AS
  SELECT m.event, e.ts AS ts_ns, m.asked, m.free, m.largest, m.advice, m.budget, m.evictable,
         m.unclaimed, m.pinned_operator, m.pinned_constant, m.pinned_escaped, m.pinned_user,
         m.pinned_unmanaged, m.op, n.text AS operator
  FROM oom m
  LEFT JOIN event e ON e.seq = m.event
  LEFT JOIN op o ON o.id = m.op
  LEFT JOIN string n ON n.id = o.name;
