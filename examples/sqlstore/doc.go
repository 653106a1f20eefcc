// Package sqlstore shows a storage of one's own: a [storage.Backend] over SQLite, in
// pure Go, for programs that want their data in one file that every tool reads.
//
//	store, err := sqlstore.Open(ctx, sqlstore.Options{File: "data.db"})
//	b := &server.Builder{Storage: store, Authorizer: auth.AllowAll}
//
// The history is in the tables, so that nothing has to be kept in memory:
//
//   - records has every key at every revision that is retained, deletions included;
//   - commits has the time of each revision, by which history is forgotten;
//   - state has one row: the newest revision, and the floor, which is the oldest one
//     that can be asked for;
//   - stamps has what the server notes about itself.
//
// Whatever is read is read in one transaction with the row of state, so each answer
// belongs to one revision and knows what is compacted. What is written goes through one
// goroutine, which makes all commits that wait in one transaction, since a transaction
// costs a sync of the disk. A watch is a query for what came after its last revision,
// asked again whenever something was committed. That holds also if several processes
// open one file: each looks a few times a second whether another one wrote.
package sqlstore
