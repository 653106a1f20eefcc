// Package etcdstore is a [storage.Backend] over etcd, for control planes that run as
// several servers: each opens a Store on the same cluster and prefix, and what one of
// them commits all others read and watch.
//
//	store, err := etcdstore.Open(ctx, etcdstore.Options{Endpoints: []string{"https://10.0.0.1:2379"}})
//	b := &server.Builder{Storage: store, Authorizer: auth.AllowAll}
//
// # What is in etcd
//
// All keys begin with Options.Prefix, and whatever else is in the cluster is left alone, but for its history (see below):
//
//   - PREFIX/data/KEY is the record of a key: one byte, which is the place of the commit in its transaction
//     (0x81 is the first, 0x83 the second and so on), and the value. A text that somebody else has put, without that
//     byte, is a record, too;
//   - PREFIX/head is written by every transaction, which leaves its name and the place of its last commit
//     there, so that the newest revision of the store is known. Other programs in the same cluster use up
//     revisions that are none of the store's. A commit that deletes while etcd has no room
//     deletes the head, too, and until the next one with room the stores look in the history;
//   - PREFIX/stamps/NAME is what the server notes about itself;
//   - PREFIX/compactor is the revision up to which a store was about to compact last;
//   - PREFIX/fences/STORE is made by an open store with its first commit, under a name of its own, and
//     changed when a transaction had no answer, so that what it had sent before is made by then, or never.
//     All its commits depend on it. Stores remove fences, also each other's, that they find unchanged
//     after an hour.
//
// A revision of the store is the one that etcd gave to the transaction of the commit, times 32, plus
// the place in it, from 0 on. No leases are used.
//
// # Commits
//
// While two transactions are under way further commits wait, and up to 32 of them share the next one, so that
// under load etcd has less to do for them than for as many puts. A commit that comes alone waits for none. One that
// deletes, or is larger than 128 KiB, or has to do with a key that one of those that wait writes, is made by itself
// at once. Each has its own revision, and is one step of the history and of watches. If the comparison of one fails
// that one is refused, and the others are sent again.
//
// # What etcd must allow
//
// A commit of up to storage.CommitLength writes is part of one transaction, within
// etcd's own bounds: --max-request-bytes (1.5 MiB unless it is set) for all keys and values
// of a commit, and --max-txn-ops, which must not be set below its 128. What is beyond them, or beyond the bounds of this
// package, is storage.ErrTooLarge. When etcd's space is used up (--quota-backend-bytes, NOSPACE) commits
// are storage.ErrFull, but those that only delete are made, until there is room again (delete, wait for
// the history to be compacted, etcdctl defrag) and the alarm is disarmed (etcdctl alarm disarm). A user
// needs read and write permission on the keys under the prefix, and to compact etcd's role root;
// one without it sets Retain to less than 0 and leaves compacting to somebody else.
//
// # History
//
// etcd has one history for all that is in it, so compacting a store compacts the cluster.
// Retain therefore forgets also for the other programs there, and what they compact is
// gone for the store: reads at the newest revision work all the same, and so do watches that
// have missed nothing. If something else compacts the cluster, set Retain to less than 0. The
// time that a state is kept counts from when a running store has seen it, by that store's own
// clock; clocks of different machines are never compared. A store that never runs for as long
// as Retain forgets nothing.
//
// # When etcd does not answer
//
// Reads are tried again, on another member if there is one, until their context ends or
// 20 seconds have passed. So are commits, and each is made once at most: after an attempt without an
// answer the store changes its fence, and looks in the history of the head whether the name of the transaction
// is there. Only a commit whose time has ended, or whose history is compacted at once, may or may not have
// happened, and a deletion while etcd is full, which can leave no name and is sent once. Watches wait for
// as long as it takes and go on where they were, without a gap.
//
// Commits and the newest revision are asked of the member that leads, as long as it answers, and all else
// of any.
package etcdstore
