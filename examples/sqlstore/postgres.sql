CREATE TABLE IF NOT EXISTS records (
	key      BYTEA   NOT NULL,
	revision BIGINT  NOT NULL,
	deleted  BOOLEAN NOT NULL,
	value    BYTEA,
	PRIMARY KEY (key, revision)
);
CREATE INDEX IF NOT EXISTS records_by_revision ON records (revision, key);
CREATE TABLE IF NOT EXISTS commits (
	revision BIGINT PRIMARY KEY,
	at       BIGINT NOT NULL -- nanoseconds since 1970
);
CREATE TABLE IF NOT EXISTS state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	revision BIGINT NOT NULL,
	floor    BIGINT NOT NULL
);
ALTER TABLE state ADD COLUMN IF NOT EXISTS lost BIGINT NOT NULL DEFAULT 0; -- a revision that was there and is not; see Accept
INSERT INTO state (id, revision, floor) VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS stamps (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
