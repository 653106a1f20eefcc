// Package etcdstore implements [storage.Backend] on etcd, for control planes that run as several
// servers. Each server opens a Store on the same cluster with the same prefix; all servers read and
// watch the commits of each.
//
//	store, err := etcdstore.Open(ctx, etcdstore.Options{Endpoints: []string{"https://10.0.0.1:2379"}})
//	b := &server.Builder{Storage: store, Authorizer: auth.AllowAll}
//
// # Layout in etcd
//
// All keys begin with Options.Prefix. The store leaves the other keys of the cluster alone, but it
// compacts the history of all of them (see History):
//
//   - PREFIX/data/KEY holds the record of KEY: one byte, which encodes the position of the commit in
//     its transaction (0x81 is the first, 0x83 the second and so on), then the value. A value that
//     another program wrote without this byte is a valid record too, if it is UTF-8 text.
//   - PREFIX/head is written by every transaction. It holds the position of the last commit of the
//     transaction and the name of the batch, so that the newest revision of the store can be read
//     although other programs use revisions of the same cluster. While etcd is out of space, a commit
//     that deletes keys deletes the head too; until the next transaction that writes the head, stores
//     find the newest revision in the history.
//   - PREFIX/stamps/NAME holds a stamp, see storage.Stamper.
//   - PREFIX/compactor holds the revision of the latest compaction that a store began.
//   - PREFIX/fences/STORE is the fence of one open store. The store creates it before its first
//     commit and writes it again when a transaction got no answer. Every transaction of the store
//     compares the fence, so after the fence changed, an earlier transaction either has been applied
//     or never will be. Every store removes fences that stayed unchanged for an hour, its own and
//     those of other stores; a store creates its fence again if it was removed.
//
// A revision of the store is the etcd revision of the transaction times 32, plus the position of the
// commit in it, from 0. The store uses no leases.
//
// # Commits
//
// Two transactions with shared commits run at a time. Commits that arrive meanwhile wait, and up to 32
// of them share the next transaction, so under load etcd executes fewer transactions than commits. A
// commit never waits while fewer transactions are running. A commit is sent at once in a transaction of
// its own if it deletes a key, is larger than 128 KiB, or uses a key that a waiting commit uses, unless
// both only guard the key. Each commit has its own revision and is a separate element of the history
// and of watches. If a comparison of a commit fails, that commit is refused and the others are sent
// again.
//
// # Requirements on etcd
//
// A commit of up to storage.CommitLength writes is part of one transaction, so it must fit the limits
// of etcd: --max-request-bytes (1.5 MiB by default) for all keys and values of a commit, and
// --max-txn-ops, which must not be less than its default of 128. A commit beyond these limits, or
// beyond the limits of this package, fails with storage.ErrTooLarge.
//
// When the space of etcd is used up (--quota-backend-bytes, alarm NOSPACE), commits fail with
// storage.ErrFull. Commits that only delete keys still succeed. To make room, delete objects, wait until
// the history is compacted, run "etcdctl defrag", and then disarm the alarm with "etcdctl alarm disarm".
//
// The user needs read and write permission on the keys below the prefix. Compaction needs etcd's role
// root; without it, set Options.Retain to a negative value and compact the cluster by other means.
//
// # History
//
// etcd has one history for all its keys, so compacting a store compacts the whole cluster. Retain
// therefore also removes the history of other programs, and a compaction by another program removes
// the history of the store. Reads at the newest revision still work then, and so do watches that have
// missed no commit. If another program compacts the cluster, set Retain to a negative value.
//
// A store measures the age of a revision from the time at which it saw the revision, by its own clock.
// Clocks of different machines are never compared. A store that runs for less than Retain compacts
// nothing.
//
// # When etcd does not answer
//
// Reads are retried, on another member if possible, until their context ends or 20 seconds have
// passed. Commits are retried too, and each is applied at most once: after an attempt without an
// answer, the store changes its fence and searches the history of the head for the name of the
// transaction. A commit may or may not have happened only in three cases: its context ended, the
// history was compacted before the search, or the commit deleted keys while etcd was out of space,
// when it cannot write a name and is sent once. Watches wait as long as necessary and continue without a gap.
//
// The store sends commits and reads of the newest revision to the leader of the cluster as long as the
// leader answers, and all other calls to any member.
package etcdstore
