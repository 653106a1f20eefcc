package etcdstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"orch.io/controlplane/storage"
)

// How many bytes a page of a scan has about, and how many records. How large the records are
// is known only when some are there, so the first page is short, and no page has more than
// so many times the records of the one before.
const (
	pageBytes   = 4 << 20
	firstPage   = 64
	longestPage = 8192
	pageGrowth  = 8
)

// head is the newest revision, and the revision of etcd at which it was read.
type head struct {
	revision storage.Revision
	etcd     int64
	absent   bool // nobody knows the newest revision, and this one is not smaller
}

func headOf(etcd int64, kvs []*mvccpb.KeyValue) head {
	if len(kvs) == 0 {
		return head{revisionOf(etcd, lastPlace), etcd, true}
	}
	place, _ := unmarked(kvs[0].Value)
	return head{revisionOf(kvs[0].ModRevision, place), etcd, false}
}

// headAt reads what was the newest revision at a revision of etcd.
func (s *Store) headAt(ctx context.Context, etcd int64) (at head, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.head, clientv3.WithRev(max(1, etcd)))
		if err == nil {
			at = headOf(etcd, resp.Kvs)
		}
		return err
	})
	return at, err
}

// readHead is linearizable.
func (s *Store) readHead(ctx context.Context) (at head, err error) {
	ctx, back := s.toLeader(ctx)
	defer back()
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.head)
		if err == nil {
			at = headOf(resp.Header.Revision, resp.Kvs)
		}
		return err
	})
	return at, err
}

// record is what etcd has under a key of the store.
func (s *Store) record(kv *mvccpb.KeyValue) storage.Record {
	place, value := unmarked(kv.Value)
	if value == nil {
		value = []byte{} // an empty one comes as nil
	}
	return storage.Record{Key: strings.TrimPrefix(string(kv.Key), s.data), Value: value, Revision: revisionOf(kv.ModRevision, place)}
}

// Get implements storage.Backend.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return storage.Record{}, err
	}
	defer leave()
	var found []*mvccpb.KeyValue
	if at == 0 {
		err = s.again(inner, func(ctx context.Context) error {
			resp, err := s.client.Get(ctx, s.data+key)
			if err == nil {
				found = resp.Kvs
			}
			return err
		})
	} else {
		var p page
		p, err = s.read(inner, at, s.data+key)
		found = p.kvs
	}
	if err != nil {
		return storage.Record{}, s.told(ctx, err)
	}
	if len(found) == 0 {
		return storage.Record{}, storage.ErrNotFound
	}
	return s.record(found[0]), nil
}

// page is what one read returned.
type page struct {
	kvs   []*mvccpb.KeyValue
	next  string // the key from which on there may be more
	more  bool
	shown storage.Revision // that it belongs to, as the store counts
	etcd  int64            // one of etcd that shows the same, and is not older, but for what is later in the transaction
}

// read gets what there is at a revision of the store (0: the newest one). The newest state is
// read as such, since it is there even if another program has compacted its revision.
func (s *Store) read(ctx context.Context, at storage.Revision, key string, opts ...clientv3.OpOption) (p page, err error) {
	newest := []clientv3.Op{clientv3.OpGet(s.head), clientv3.OpGet(key, opts...)}
	etcd := max(1, etcdOf(at)) // 0 would be the newest one
	old := clientv3.OpGet(key, append(opts[:len(opts):len(opts)], clientv3.WithRev(etcd))...)
	err = s.again(ctx, func(ctx context.Context) error {
		txn := s.client.Txn(ctx)
		if at != 0 {
			txn = txn.If(clientv3.Compare(clientv3.ModRevision(s.head), ">", etcd))
			txn = txn.Then(old).Else(newest...)
		} else {
			txn = txn.Then(newest...)
		}
		resp, err := txn.Commit()
		if err != nil {
			return err
		}
		if at != 0 && resp.Succeeded {
			p = pageOf(resp.Responses[0].GetResponseRange(), at, etcd)
			return nil
		}
		have := headOf(resp.Header.Revision, resp.Responses[0].GetResponseRange().Kvs)
		if at > have.revision {
			return storage.ErrFuture
		}
		if at != 0 && have.absent {
			resp, err := s.client.Do(ctx, old)
			if err == nil {
				p = pageOf((*pb.RangeResponse)(resp.Get()), at, etcd)
			}
			return err
		}
		if at == 0 {
			at = have.revision
		}
		p = pageOf(resp.Responses[1].GetResponseRange(), at, have.etcd)
		return nil
	})
	if err == nil {
		err = s.rewind(ctx, &p)
	}
	return p, compacted(err)
}

func pageOf(resp *pb.RangeResponse, shown storage.Revision, etcd int64) page {
	p := page{kvs: resp.Kvs, more: resp.More, shown: shown, etcd: etcd}
	if n := len(p.kvs); n > 0 {
		p.next = string(p.kvs[n-1].Key) + "\x00"
	}
	return p
}

// rewind has a page show what was there before the later commits of the same transaction. None of them has written
// what another one had, so that it is what was there before the transaction.
func (s *Store) rewind(ctx context.Context, p *page) error {
	later := func(kv *mvccpb.KeyValue) bool {
		place, _ := unmarked(kv.Value)
		return kv.ModRevision == etcdOf(p.shown) && place > placeOf(p.shown)
	}
	if !slices.ContainsFunc(p.kvs, later) {
		return nil
	}
	var kvs []*mvccpb.KeyValue
	for _, kv := range p.kvs {
		if !later(kv) {
			kvs = append(kvs, kv)
			continue
		}
		err := s.again(ctx, func(ctx context.Context) error {
			resp, err := s.client.Get(ctx, string(kv.Key), clientv3.WithRev(kv.ModRevision-1))
			if err == nil {
				kvs = append(kvs, resp.Kvs...)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	p.kvs = kvs
	return nil
}

// compacted names the errors of etcd about revisions as the contract does.
func compacted(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return storage.ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return storage.ErrFuture
	}
	return err
}

// Scan implements storage.Backend. It reads in pages, all at the revision of the first one.
func (s *Store) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	sc := &scan{store: s, ctx: ctx, from: s.data + max(start, prefix), limit: firstPage}
	end := clientv3.GetPrefixRangeEnd(s.data + prefix)
	sc.what = clientv3.WithRange(end)
	if sc.from >= end { // start lies behind the prefix, so that there is nothing but a revision
		sc.from, sc.what = s.data+prefix, clientv3.WithCountOnly()
	}
	first, err := sc.next(at)
	if err != nil {
		return 0, nil, err
	}
	return first.shown, func(yield func(storage.Record, error) bool) {
		for p := first; ; {
			for _, kv := range p.kvs {
				if err := ctx.Err(); err != nil {
					yield(storage.Record{}, err)
					return
				}
				if !yield(s.record(kv), nil) {
					return
				}
			}
			if !p.more {
				return
			}
			var err error
			if p, err = sc.following(first); err != nil {
				yield(storage.Record{}, err)
				return
			}
		}
	}, nil
}

// scan is where a scan has come to.
type scan struct {
	store *Store
	ctx   context.Context // the caller's own
	from  string
	what  clientv3.OpOption // of what is there from there on
	limit int64
}

// next reads one page as of a revision of the store.
func (sc *scan) next(at storage.Revision) (page, error) {
	return sc.read(func(ctx context.Context) (page, error) {
		return sc.store.read(ctx, at, sc.from, sc.what, clientv3.WithLimit(sc.limit))
	})
}

// following reads one page more as of the revision that the first one was read at. If that
// is compacted, the state may still be the newest one.
func (sc *scan) following(first page) (page, error) {
	p, err := sc.read(func(ctx context.Context) (p page, err error) {
		err = sc.store.again(ctx, func(ctx context.Context) error {
			resp, err := sc.store.client.Get(ctx, sc.from, sc.what, clientv3.WithLimit(sc.limit), clientv3.WithRev(first.etcd))
			if err == nil {
				p = pageOf((*pb.RangeResponse)(resp), first.shown, first.etcd)
			}
			return err
		})
		if err == nil {
			err = sc.store.rewind(ctx, &p)
		}
		return p, compacted(err)
	})
	if errors.Is(err, storage.ErrCompacted) {
		return sc.next(first.shown)
	}
	return p, err
}

// read notes how far a page goes, and how long the next one should be.
func (sc *scan) read(get func(ctx context.Context) (page, error)) (page, error) {
	inner, leave, err := sc.store.enter(sc.ctx)
	if err != nil {
		return page{}, err
	}
	defer leave()
	p, err := get(inner)
	for tooLarge(err) && sc.limit > 1 { // the records are larger than those before
		sc.limit = max(1, sc.limit/pageGrowth)
		p, err = get(inner)
	}
	if err != nil {
		return page{}, sc.store.told(sc.ctx, err)
	}
	if n := int64(len(p.kvs)); n > 0 {
		bytes := int64(0)
		for _, kv := range p.kvs {
			bytes += int64(len(kv.Key) + len(kv.Value))
		}
		sc.limit = max(1, min(n*pageBytes/bytes, n*pageGrowth, longestPage))
	}
	sc.from = p.next
	return p, nil
}
