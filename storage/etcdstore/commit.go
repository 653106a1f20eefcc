package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// Commit implements storage.Backend.
func (s *Store) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	ws, err := storage.Together(ws)
	if err != nil {
		return 0, err
	}
	if len(ws) > storage.CommitLength {
		return 0, fmt.Errorf("%w: %d writes", storage.ErrTooLarge, len(ws))
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	resp, err := s.commit(inner, ws, clientv3.OpPut(s.head, ""))
	if errors.Is(err, rpctypes.ErrNoSpace) && deletes(ws) {
		// etcd takes no put then. Without a head the revision is that of etcd, until there
		// is room and the next commit.
		full := err
		resp, err = s.commit(inner, ws, clientv3.OpDelete(s.head))
		if err == nil && !resp.Succeeded && gone(ws, resp) {
			err = full
		}
	}
	if err != nil {
		return 0, s.told(ctx, err)
	}
	if !resp.Succeeded {
		return 0, s.conflict(ws, resp)
	}
	s.note(resp.Header.Revision)
	return storage.Revision(resp.Header.Revision), nil
}

// gone says that none of what should be deleted is there. The one commit by which etcd gets full is made
// and refused at once, so that deletions which find nothing to delete may have been made.
func gone(ws []storage.Write, resp *clientv3.TxnResponse) bool {
	for i, r := range resp.Responses {
		if !ws[i].Guard && len(r.GetResponseRange().Kvs) > 0 {
			return false
		}
	}
	return true
}

// note remembers a revision that was acknowledged.
func (s *Store) note(revision int64) {
	for {
		have := s.acked.Load()
		if have >= revision || s.acked.CompareAndSwap(have, revision) {
			return
		}
	}
}

func deletes(ws []storage.Write) bool {
	for _, w := range ws {
		if w.Value != nil {
			return false
		}
	}
	return true
}

// commit makes the writes and a change of the head, or gets the records of their keys if a
// comparison fails. It is tried again only where etcd did not begin to make it.
func (s *Store) commit(ctx context.Context, ws []storage.Write, head clientv3.Op) (resp *clientv3.TxnResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	compares, now, gets := s.transaction(ws)
	now = append(now, head)
	for pause := pauseTime; ; pause = min(2*pause, longPauseTime) {
		resp, err = s.client.Txn(clientv3.WithRequireLeader(ctx)).If(compares...).Then(now...).Else(gets...).Commit()
		if !errors.Is(err, rpctypes.ErrNoLeader) || !wait(ctx, pause) {
			return resp, err
		}
	}
}

func (s *Store) transaction(ws []storage.Write) (compares []clientv3.Cmp, now, gets []clientv3.Op) {
	now, gets = make([]clientv3.Op, 0, len(ws)+1), make([]clientv3.Op, 0, len(ws))
	for _, w := range ws {
		key := s.data + w.Key
		if w.Expect != storage.AnyRevision {
			compares = append(compares, clientv3.Compare(clientv3.ModRevision(key), "=", int64(w.Expect)))
		}
		switch {
		case w.Guard:
		case w.Value != nil:
			now = append(now, clientv3.OpPut(key, string(w.Value)))
		default:
			now = append(now, clientv3.OpDelete(key))
			if w.Expect <= 0 { // else the other comparison says that it is there
				compares = append(compares, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
			}
		}
		gets = append(gets, clientv3.OpGet(key))
	}
	return compares, now, gets
}

// conflict tells which comparison failed first, of records that were got at the same moment.
func (s *Store) conflict(ws []storage.Write, resp *clientv3.TxnResponse) error {
	for i, w := range ws {
		var current storage.Record
		if kvs := resp.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			current = s.record(kvs[0])
		}
		if err := w.Check(current); err != nil {
			return err
		}
	}
	return errors.New("etcd refused a commit whose comparisons hold")
}
