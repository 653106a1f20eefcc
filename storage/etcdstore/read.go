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

// The size of a page of a scan, in bytes (approximately) and records. The size of the records is known
// only after the first page, so the first page is short, and each page has at most pageGrowth times the
// records of the page before.
const (
	pageBytes   = 4 << 20
	firstPage   = 64
	longestPage = 8192
	pageGrowth  = 8
)

// head is the newest revision of the store, and the etcd revision at which it was read.
type head struct {
	revision storage.Revision
	etcd     int64
	absent   bool // the head does not exist: the newest revision is unknown and at most revision
}

func headOf(etcd int64, kvs []*mvccpb.KeyValue) head {
	if len(kvs) == 0 {
		return head{revisionOf(etcd, lastPosition), etcd, true}
	}
	position, _ := unmarked(kvs[0].Value)
	return head{revisionOf(kvs[0].ModRevision, position), etcd, false}
}

// headAt returns the head as of an etcd revision.
func (s *Store) headAt(ctx context.Context, etcd int64) (at head, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.head, clientv3.WithRev(max(1, etcd)))
		if err == nil {
			at = headOf(etcd, resp.Kvs)
		}
		return err
	})
	return at, err
}

// readHead returns the current head. It is linearizable.
func (s *Store) readHead(ctx context.Context) (at head, err error) {
	ctx, back := s.preferLeader(ctx)
	defer back()
	err = s.retry(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.head)
		if err == nil {
			at = headOf(resp.Header.Revision, resp.Kvs)
		}
		return err
	})
	return at, err
}

// record converts a key of etcd to a record.
func (s *Store) record(kv *mvccpb.KeyValue) storage.Record {
	position, value := unmarked(kv.Value)
	if value == nil {
		value = []byte{} // the client returns nil for an empty value
	}
	return storage.Record{Key: strings.TrimPrefix(string(kv.Key), s.data), Value: value, Revision: revisionOf(kv.ModRevision, position)}
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
		err = s.retry(inner, func(ctx context.Context) error {
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
		return storage.Record{}, s.storageError(ctx, err)
	}
	if len(found) == 0 {
		return storage.Record{}, storage.ErrNotFound
	}
	return s.record(found[0]), nil
}

// page is the result of one read of a scan.
type page struct {
	kvs      []*mvccpb.KeyValue
	next     string // the first key of the next page
	more     bool
	revision storage.Revision // the revision of the store that was read
	etcd     int64            // an etcd revision with the same content, at least that of shown; later commits of the same transaction are removed by rewind
}

// read reads key, or the range that opts describe, as of revision at of the store, or the newest revision if
// at is 0. If at is the newest revision, read does not name it in the request, because another program
// may have compacted it.
func (s *Store) read(ctx context.Context, at storage.Revision, key string, opts ...clientv3.OpOption) (p page, err error) {
	newest := []clientv3.Op{clientv3.OpGet(s.head), clientv3.OpGet(key, opts...)}
	etcd := max(1, etcdOf(at)) // etcd would read the newest revision for 0
	old := clientv3.OpGet(key, append(opts[:len(opts):len(opts)], clientv3.WithRev(etcd))...)
	err = s.retry(ctx, func(ctx context.Context) error {
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
	return p, revisionError(err)
}

func pageOf(resp *pb.RangeResponse, shown storage.Revision, etcd int64) page {
	p := page{kvs: resp.Kvs, more: resp.More, revision: shown, etcd: etcd}
	if n := len(p.kvs); n > 0 {
		p.next = string(p.kvs[n-1].Key) + "\x00"
	}
	return p
}

// rewind undoes the effect of commits that are in the same transaction as p.shown but later. No key is
// written by two commits of a transaction, so the earlier record is the record before the transaction.
func (s *Store) rewind(ctx context.Context, p *page) error {
	later := func(kv *mvccpb.KeyValue) bool {
		position, _ := unmarked(kv.Value)
		return kv.ModRevision == etcdOf(p.revision) && position > positionOf(p.revision)
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
		err := s.retry(ctx, func(ctx context.Context) error {
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

// revisionError converts the errors of etcd about revisions to those of storage.Backend.
func revisionError(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return storage.ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return storage.ErrFuture
	}
	return err
}

// Scan implements storage.Backend. It reads in pages, all at the revision of the first page.
func (s *Store) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	sc := &scan{store: s, ctx: ctx, from: s.data + max(start, prefix), limit: firstPage}
	end := clientv3.GetPrefixRangeEnd(s.data + prefix)
	sc.rangeOpt = clientv3.WithRange(end)
	if sc.from >= end { // start is behind all keys with the prefix: read only the revision
		sc.from, sc.rangeOpt = s.data+prefix, clientv3.WithCountOnly()
	}
	first, err := sc.next(at)
	if err != nil {
		return 0, nil, err
	}
	return first.revision, func(yield func(storage.Record, error) bool) {
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

// scan is the state of a scan.
type scan struct {
	store    *Store
	ctx      context.Context // of the caller
	from     string
	rangeOpt clientv3.OpOption // the range that begins at from
	limit    int64
}

// next reads one page as of a revision of the store.
func (sc *scan) next(at storage.Revision) (page, error) {
	return sc.read(func(ctx context.Context) (page, error) {
		return sc.store.read(ctx, at, sc.from, sc.rangeOpt, clientv3.WithLimit(sc.limit))
	})
}

// following reads the next page at the revision of the first page. If that revision is compacted, its
// state may still be the newest state, so following tries to read it as such.
func (sc *scan) following(first page) (page, error) {
	p, err := sc.read(func(ctx context.Context) (p page, err error) {
		err = sc.store.retry(ctx, func(ctx context.Context) error {
			resp, err := sc.store.client.Get(ctx, sc.from, sc.rangeOpt, clientv3.WithLimit(sc.limit), clientv3.WithRev(first.etcd))
			if err == nil {
				p = pageOf((*pb.RangeResponse)(resp), first.revision, first.etcd)
			}
			return err
		})
		if err == nil {
			err = sc.store.rewind(ctx, &p)
		}
		return p, revisionError(err)
	})
	if errors.Is(err, storage.ErrCompacted) {
		return sc.next(first.revision)
	}
	return p, err
}

// read calls get, and sets the first key and the number of records of the next page from the result.
func (sc *scan) read(get func(ctx context.Context) (page, error)) (page, error) {
	inner, leave, err := sc.store.enter(sc.ctx)
	if err != nil {
		return page{}, err
	}
	defer leave()
	p, err := get(inner)
	for tooLarge(err) && sc.limit > 1 { // these records are larger than the previous records
		sc.limit = max(1, sc.limit/pageGrowth)
		p, err = get(inner)
	}
	if err != nil {
		return page{}, sc.store.storageError(sc.ctx, err)
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
