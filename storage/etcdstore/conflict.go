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

// refusal says that a comparison of a commit failed.
type refusal struct {
	at    int64            // the revision of etcd
	found []*pb.ResponseOp // what the keys of the writes had then: the record if there is one key, else only the revisions
}

func (r *refusal) Error() string { return "etcd refused a commit whose comparisons hold" }

// errAnother says that a comparison failed, maybe of another commit of the batch.
var errAnother = errors.New("a commit of the batch was refused")

// differs reports whether a key has another revision of etcd than a write expects.
func differs(w storage.Write, found []*mvccpb.KeyValue) bool {
	var current storage.Record
	if len(found) > 0 {
		if current.Revision = revisionOf(found[0].ModRevision, 0); etcdOf(w.Expect) == found[0].ModRevision {
			current.Revision = w.Expect
		}
	}
	return w.Check(current) != nil
}

// conflict tells which comparison failed first.
func (s *Store) conflict(ctx context.Context, ws []storage.Write, r *refusal) error {
	first := 0
	for first < len(ws) && !differs(ws[first], r.found[first].GetResponseRange().Kvs) {
		first++
	}
	hold, err := s.placesHold(ctx, ws[:first]) // then they did when the commit was refused
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

// recordAt returns the record that a key has at a revision of etcd, at which it is there.
func (s *Store) recordAt(ctx context.Context, key string, revision int64) (rec storage.Record, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.data+key, clientv3.WithRev(revision))
		switch {
		case err != nil:
			return err
		case len(resp.Kvs) == 0:
			return errors.New("etcd was put back to what it had before")
		}
		rec = s.record(resp.Kvs[0])
		return nil
	})
	return rec, err
}

// placesHold compares the revisions that writes expect, and the places. It holds as long as the keys keep their revisions
// of etcd.
func (s *Store) placesHold(ctx context.Context, ws []storage.Write) (bool, error) {
	expecting := slices.DeleteFunc(slices.Clone(ws), func(w storage.Write) bool { return w.Expect <= 0 })
	revisions, places := s.comparisons(expecting)
	newest := clientv3.OpGet(s.head, clientv3.WithCountOnly()) // without a read, etcd would compare what one member has
	for some := range slices.Chunk(append(revisions, places...), batchOps) {
		var resp *clientv3.TxnResponse
		err := s.again(ctx, func(ctx context.Context) (err error) {
			resp, err = s.client.Txn(ctx).If(some...).Then(newest).Else(newest).Commit()
			return err
		})
		if err != nil || !resp.Succeeded {
			return false, err
		}
	}
	return true, nil
}
