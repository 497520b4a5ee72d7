-- A session or a book: its head, what a list says of it, and who drives it. A session that is
-- removed and made again under the same id has another key, so a log of the first writes nothing
-- to the second.
CREATE TABLE sessions (
	key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         text COLLATE "C" NOT NULL UNIQUE,
	book       boolean NOT NULL DEFAULT false,
	made       uuid NOT NULL, -- by whoever made it, to know it again after a lost answer

	last_seq   bigint NOT NULL DEFAULT 0, -- of the last event
	epoch      bigint NOT NULL DEFAULT 0, -- of the last claim
	claim_seq  bigint NOT NULL DEFAULT 0, -- number of the last claim
	start_seq  bigint NOT NULL DEFAULT 0, -- before the last event with a snapshot
	size       bigint NOT NULL DEFAULT 0, -- of all lines, in bytes

	created    timestamptz NOT NULL,
	modified   timestamptz NOT NULL,
	parent     text NOT NULL DEFAULT '',
	root       text NOT NULL DEFAULT '',
	title      text NOT NULL DEFAULT '',
	preview    text NOT NULL DEFAULT '',
	stop       text NOT NULL DEFAULT '',
	labels     jsonb,
	pinned     boolean NOT NULL DEFAULT false,
	empty      boolean NOT NULL DEFAULT true,

	holder      uuid, -- token of the lease; null: nobody has it
	holder_pid  bigint NOT NULL DEFAULT 0,
	holder_host text NOT NULL DEFAULT '',
	held_since  timestamptz,
	held_until  timestamptz -- by the clock of the database
) WITH (fillfactor = 80);

CREATE INDEX sessions_newest ON sessions (modified DESC, id DESC) WHERE NOT book;
CREATE INDEX sessions_held ON sessions (id) WHERE holder IS NOT NULL;
