// Package sqlstore shows a storage of one's own: a [storage.Backend] over an SQL database. It
// is a file of SQLite, in pure Go, for programs that want their data in one file that every
// tool reads; or PostgreSQL, for control planes that run as several servers:
//
//	store, err := sqlstore.Open(ctx, sqlstore.Options{File: "data.db"})
//	store, err := sqlstore.Open(ctx, sqlstore.Options{Postgres: "postgres://user@10.0.0.1/name?sslmode=verify-full"})
//	b := &server.Builder{Storage: store, Authorizer: auth.AllowAll}
//
// The history is in the tables, so that nothing has to be kept in memory:
//
//   - records has every key at every revision that is retained, deletions included;
//   - commits has the time of each revision, by which history is deleted, and the random id of its commit;
//   - state has one row: the newest revision, and the floor, which is the oldest one
//     that can be asked for;
//   - stamps has what the server notes about itself.
//
// Whatever is read is read in one statement with the row of state, so each answer
// belongs to one revision and knows what is compacted. What is written goes through one
// goroutine, which makes all commits that wait in one transaction, since a transaction
// costs a sync of the disk. Each such transaction holds the row of state to its end, so the
// commits of all processes have one order, which is that of their revisions. A watch is a query
// for what came after its last revision, asked again whenever something was committed.
//
// Import fills an empty store from another one in one transaction, for package backup: revisions
// and history are those of the other store, which are retained as if everything had been committed
// at that moment.
//
// What the two databases do not have in common is what the interface dialect in dialect.go asks
// of them.
//
// # SQLite
//
// Several processes of one machine may open one file: each looks ten times a second whether
// another one wrote. Stop the processes of an earlier version before a newer one opens the file: their commits fail
// once the newer version has added the column id to the table commits.
//
// # PostgreSQL
//
// Any number of processes may open one schema. A store has up to ten connections: eight that
// read, one that commits, and one that listens for the notifications by which commits of other
// processes reach watches at once. Where those do not get through, as behind a pooler, a watch
// is up to a second late. A pooler must keep a session on one connection.
//
// A store uses no standby, since that shows an older state than was acknowledged: of several
// servers that the address names it takes the primary, also after another one has become that.
// Commits wait for the disk of the primary even if synchronous_commit is off. A standby that takes over
// has all of them only if PostgreSQL is configured for that (synchronous_standby_names). Each commit has a
// random id. If a store finds that a commit that it made or showed is missing, or that another commit
// has its revision, it writes that to the database, and no store commits until Accept declares that the
// present state is the one to go on with.
//
// The database user must be allowed to create the schema, unless the tables exist. One process at a time deletes
// old history, by the clock of the database. If a process stops in the middle of a commit, the other processes
// wait for up to ten seconds.
//
// Reads are tried again until their context ends or 20 seconds have passed. So is a commit as long
// as it was certainly not made; if its answer is lost the error says that it may or may not have
// happened. Watches wait for as long as it takes, and go on without a gap.
package sqlstore
