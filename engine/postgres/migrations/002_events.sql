-- The events. A line is what event.Encode writes, byte for byte. There is no foreign key: events
-- are only added in the statement that moves the head of their session, and only removed with it.
CREATE TABLE events (
	session bigint NOT NULL, -- key of the session
	seq     bigint NOT NULL,
	kind    text NOT NULL,
	must    boolean NOT NULL DEFAULT false, -- a reader must understand it
	time    timestamptz NOT NULL,
	writer  uuid, -- of the append, with the first of its events
	line    bytea NOT NULL,
	PRIMARY KEY (session, seq)
);

-- An append is stored once, however often it is sent.
CREATE UNIQUE INDEX events_writer ON events (session, writer) WHERE writer IS NOT NULL;
