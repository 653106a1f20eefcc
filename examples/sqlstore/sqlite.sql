CREATE TABLE IF NOT EXISTS records (
	key      BLOB    NOT NULL,
	revision INTEGER NOT NULL,
	deleted  INTEGER NOT NULL,
	value    BLOB,
	PRIMARY KEY (key, revision)
);
CREATE INDEX IF NOT EXISTS records_by_revision ON records (revision, key);
CREATE TABLE IF NOT EXISTS commits (
	revision INTEGER PRIMARY KEY,
	at       INTEGER NOT NULL -- nanoseconds since 1970
);
CREATE TABLE IF NOT EXISTS state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	revision INTEGER NOT NULL,
	floor    INTEGER NOT NULL,
	lost     INTEGER NOT NULL DEFAULT 0 -- a revision that was there and is not; see Accept
);
INSERT INTO state (id, revision, floor) VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS stamps (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
