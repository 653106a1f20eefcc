-- The tables are locked in the order in which commits lock them.
CREATE TABLE IF NOT EXISTS state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	revision BIGINT NOT NULL,
	floor    BIGINT NOT NULL
);
ALTER TABLE state ADD COLUMN IF NOT EXISTS lost BIGINT NOT NULL DEFAULT 0; -- at least the newest lost revision, 0: nothing is lost
ALTER TABLE state ADD COLUMN IF NOT EXISTS history BIGINT NOT NULL DEFAULT 0; -- random, changed by each Accept
CREATE TABLE IF NOT EXISTS commits (
	revision BIGINT PRIMARY KEY,
	at       BIGINT NOT NULL, -- nanoseconds since 1970
	id       BIGINT NOT NULL DEFAULT 0 -- random, the same for all commits of a transaction; 0: written by an earlier version
);
ALTER TABLE commits ADD COLUMN IF NOT EXISTS id BIGINT NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS records (
	key      BYTEA   NOT NULL,
	revision BIGINT  NOT NULL,
	deleted  BOOLEAN NOT NULL,
	value    BYTEA,
	PRIMARY KEY (key, revision)
);
CREATE INDEX IF NOT EXISTS records_by_revision ON records (revision, key);
INSERT INTO state (id, revision, floor) VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS stamps (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
