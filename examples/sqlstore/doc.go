// Package sqlstore is an example of a storage engine in a module of its own: a [storage.Backend] in an
// SQL database. The database is either an SQLite file, for programs that want their data in one file
// that other tools can read, or PostgreSQL, for control planes that run as several servers:
//
//	store, err := sqlstore.Open(ctx, sqlstore.Options{File: "data.db"})
//	store, err := sqlstore.Open(ctx, sqlstore.Options{Postgres: "postgres://user@10.0.0.1/name?sslmode=verify-full"})
//	b := &server.Builder{Storage: store, Authorizer: auth.AllowAll}
//
// SQLite is linked as pure Go.
//
// # Tables
//
// The history is in the tables, so the store keeps no history in memory:
//
//   - records has one row for each retained revision of each key, including deletions;
//   - commits has the time of each revision, by which old history is found, and the random ID of the
//     commit;
//   - state has one row: the newest revision, and the floor, which is the oldest revision that can be
//     read;
//   - stamps has the stamps, see storage.Stamper.
//
// Each read is a statement that also reads the row of state, so each result belongs to one revision
// and knows which history is compacted. One goroutine writes. It applies all waiting commits in one
// transaction, because each transaction costs a sync of the disk. Each such transaction locks the row of
// state until it ends, so the commits of all processes have one order, which is the order of their
// revisions. A watch is a query for the commits after its last revision. The query is repeated whenever
// something was committed.
//
// Import, which package backup uses, fills an empty store in one transaction. It preserves revisions
// and history. Retention starts anew: all imported revisions count as committed at the time of the
// import.
//
// The interface dialect in dialect.go holds the differences between the two databases.
//
// # SQLite
//
// Several processes on one machine may open the same file. Each checks ten times per second whether
// another process has written. Stop the processes of an earlier version before a newer version opens
// the file: their commits fail after the newer version has added the column id to the table commits.
//
// # PostgreSQL
//
// Any number of processes may open the same schema. A store has up to ten connections: eight for reads,
// one for commits, and one that listens for notifications, so that watches get the commits of other
// processes at once. If notifications do not arrive, for example behind a connection pooler, watches are
// up to a second late. A pooler must keep each session on one connection.
//
// A store never uses a standby, because a standby may lack acknowledged commits. If the address names
// several servers, the store uses the primary, also after a failover. Commits wait for the disk of
// the primary even if synchronous_commit is off. A standby that is promoted has all commits only if
// PostgreSQL is configured for synchronous replication (synchronous_standby_names). To detect lost
// commits, each commit has a random ID. If a store finds that a commit that it made or showed is
// missing, or that another commit has its revision, it records the loss in the database. Then no store
// commits until Accept declares the present state to be valid.
//
// The database user must be allowed to create the schema, unless the tables exist. One process at a time
// deletes old history, by the clock of the database. If a process stops in the middle of a commit, the
// other processes wait for up to ten seconds.
//
// # Errors
//
// Reads are retried until their context ends or 20 seconds have passed. A commit is retried as long as
// it certainly was not applied; if its answer is lost, the error says that the commit may or may not
// have happened. Watches wait as long as necessary, and continue without a gap.
package sqlstore
