package etcdstore

import (
	"context"
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// refusal is the error of a commit after its comparisons failed in etcd.
type refusal struct {
	at    int64            // the etcd revision of the answer
	found []*pb.ResponseOp // the current state of the keys of the writes, in order; without values if there are several keys
}

func (r *refusal) Error() string { return "etcd refused a commit whose comparisons hold" }

// errOtherRefused is the error of a commit in a refused batch if the failed comparison may belong to
// another commit.
var errOtherRefused = errors.New("a commit of the batch was refused")

// mismatches reports whether the etcd revision of a key differs from the revision that w expects.
func mismatches(w storage.Write, found []*mvccpb.KeyValue) bool {
	var current storage.Record
	if len(found) > 0 {
		if current.Revision = revisionOf(found[0].ModRevision, 0); etcdOf(w.Expect) == found[0].ModRevision {
			current.Revision = w.Expect
		}
	}
	return w.Check(current) != nil
}

// conflict returns the error of the first comparison of ws that failed. If none did, it returns r.
func (s *Store) conflict(ctx context.Context, ws []storage.Write, r *refusal) error {
	first := 0
	for first < len(ws) && !mismatches(ws[first], r.found[first].GetResponseRange().Kvs) {
		first++
	}
	hold, err := s.positionsHold(ctx, ws[:first]) // keys keep their revisions until they are written, so if they hold now, they held when the commit was refused
	if err != nil {
		return err
	}
	for i, w := range ws[:min(first+1, len(ws))] {
		kvs := r.found[i].GetResponseRange().Kvs
		var current storage.Record
		switch {
		case i < first && (hold || w.Expect <= 0):
			continue
		case len(kvs) > 0 && len(kvs[0].Value) > 0:
			current = s.record(kvs[0])
		case len(kvs) > 0:
			if current, err = s.recordAt(ctx, w.Key, r.at); err != nil {
				return err
			}
		}
		if err := w.Check(current); err != nil {
			return err
		}
	}
	return r
}

// recordAt returns the record of key at an etcd revision. The key must exist at that revision.
func (s *Store) recordAt(ctx context.Context, key string, revision int64) (rec storage.Record, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.data+key, clientv3.WithRev(revision))
		switch {
		case err != nil:
			return err
		case len(resp.Kvs) == 0:
			return errors.New("etcd was restored to an older state")
		}
		rec = s.record(resp.Kvs[0])
		return nil
	})
	return rec, err
}

// positionsHold reports whether the keys of ws have the revisions that the writes expect, including the
// positions. The result stays valid as long as the etcd revisions of the keys do not change.
func (s *Store) positionsHold(ctx context.Context, ws []storage.Write) (bool, error) {
	expecting := slices.DeleteFunc(slices.Clone(ws), func(w storage.Write) bool { return w.Expect <= 0 })
	revisions, places := s.comparisons(expecting)
	newest := clientv3.OpGet(s.head, clientv3.WithCountOnly()) // without a read, the member would compare its own state, which may be old
	for some := range slices.Chunk(append(revisions, places...), batchOps) {
		var resp *clientv3.TxnResponse
		err := s.retry(ctx, func(ctx context.Context) (err error) {
			resp, err = s.client.Txn(ctx).If(some...).Then(newest).Else(newest).Commit()
			return err
		})
		if err != nil || !resp.Succeeded {
			return false, err
		}
	}
	return true, nil
}
