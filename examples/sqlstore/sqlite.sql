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
	at       INTEGER NOT NULL, -- nanoseconds since 1970
	id       INTEGER NOT NULL DEFAULT 0 -- random, the same for all commits of a transaction; 0: written by an earlier version
);
CREATE TABLE IF NOT EXISTS state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	revision INTEGER NOT NULL,
	floor    INTEGER NOT NULL,
	lost     INTEGER NOT NULL DEFAULT 0, -- at least the newest lost revision, 0: nothing is lost
	history  INTEGER NOT NULL DEFAULT 0 -- random, changed by each Accept
);
INSERT INTO state (id, revision, floor) VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS stamps (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
