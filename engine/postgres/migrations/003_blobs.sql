-- Blobs by their SHA-256, once for all sessions that have them.
CREATE TABLE blobs (
	digest bytea PRIMARY KEY,
	size   bigint NOT NULL,
	object text -- name in the bucket; null: its pieces are here
);

CREATE TABLE blob_pieces (
	digest  bytea NOT NULL REFERENCES blobs ON DELETE CASCADE,
	n       integer NOT NULL, -- from 0
	content bytea NOT NULL,
	PRIMARY KEY (digest, n)
);

CREATE TABLE session_blobs (
	session bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
	digest  bytea NOT NULL REFERENCES blobs,
	PRIMARY KEY (session, digest)
);

CREATE INDEX session_blobs_digest ON session_blobs (digest);

-- Objects of the bucket that no blob has: they are on their way in, or on their way out.
CREATE TABLE loose_objects (
	object text PRIMARY KEY,
	since  timestamptz NOT NULL DEFAULT now()
);
