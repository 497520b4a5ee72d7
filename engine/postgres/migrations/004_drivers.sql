-- Processes that drive sessions. A lease lasts as long as the database hears of its process, so that
-- costs one row a process, however many sessions it drives. A lease that an older version took has no
-- process, and ends at held_until.
CREATE TABLE drivers (
	token uuid PRIMARY KEY,
	until timestamptz NOT NULL -- by the clock of the database
) WITH (fillfactor = 50);

ALTER TABLE sessions ADD COLUMN driver uuid;

CREATE INDEX sessions_driver ON sessions (driver) WHERE holder IS NOT NULL;

-- An append changes when its session was modified. An index of that would grow with every append, and
-- so would all others of the table. The hour changes rarely.
ALTER TABLE sessions ADD COLUMN modified_hour timestamptz
	GENERATED ALWAYS AS (date_bin('1 hour', modified, 'epoch')) STORED;

DROP INDEX sessions_newest;

CREATE INDEX sessions_newest ON sessions (modified_hour DESC) WHERE NOT book;
