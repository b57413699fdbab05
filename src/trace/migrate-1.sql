-- SPDX-License-Identifier: Apache-2.0
-- 1 -> 2: what imported traces know of segments, and who asked for memory outside of operators.
ALTER TABLE stack ADD COLUMN shown INTEGER;
UPDATE stack SET shown = frame;
ALTER TABLE segment ADD COLUMN address INTEGER;
ALTER TABLE segment ADD COLUMN stream INTEGER;
ALTER TABLE segment ADD COLUMN private_pool TEXT;
ALTER TABLE segment ADD COLUMN small INTEGER;
ALTER TABLE segment ADD COLUMN expandable INTEGER;
ALTER TABLE segment ADD COLUMN stack INTEGER;
ALTER TABLE block ADD COLUMN stack INTEGER;
ALTER TABLE oom ADD COLUMN device_free INTEGER;
ALTER TABLE oom ADD COLUMN stack INTEGER;
INSERT OR IGNORE INTO enum_label VALUES ('pin', 7, 'pending');
