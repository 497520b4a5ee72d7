-- Sessions that some process has to drive: one row from the wake to the end of the run. A session that waits
-- for an answer or rests has none, or one whose time has not come.
CREATE TABLE turns (
	session bigint PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
	due     timestamptz NOT NULL, -- by the clock of the database
	driver  uuid,                 -- the process that has taken it; null: none
	wakes   bigint NOT NULL DEFAULT 1,
	tries   integer NOT NULL DEFAULT 0, -- that failed in a row
	why     text                        -- the last of them failed
) WITH (fillfactor = 70);

CREATE INDEX turns_due ON turns (due) WHERE driver IS NULL;
CREATE INDEX turns_driver ON turns (driver) WHERE driver IS NOT NULL;
