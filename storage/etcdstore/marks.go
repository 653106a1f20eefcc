package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// markTime is how long nobody has written to a mark that may be removed.
const markTime = time.Hour

// errForgotten says that the mark of a commit has gone while the commit had no answer.
var errForgotten = errors.New("its mark is gone")

// mark is a key by which a store finds out what became of a commit that etcd has not answered.
// One commit at a time uses it: it depends on the revision at which the mark was last changed, and
// puts its own name there. So whoever writes to the mark, too, knows that what was sent before
// was made, if the name is there, or else never will be.
type mark struct {
	key     string
	at      int64     // the revision of its last change, as far as the store knows; 0: it may not be there
	written time.Time // when that was at the earliest
}

// unchanged is what a commit depends on, and what the writes that come after it undo.
func (m *mark) unchanged() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(m.key), "=", m.at)
}

// look takes note of what is there, and returns the revision of the commit of a name if it is
// that one.
func (m *mark) look(found []*mvccpb.KeyValue, name string) (made int64) {
	if len(found) == 0 {
		m.at = 0
		return 0
	}
	m.at = found[0].ModRevision
	if string(found[0].Value) == name {
		return m.at
	}
	return 0
}

// marks are those of a store, as many as it has ever had commits under way at a time.
type marks struct {
	prefix string // of the keys, followed by the store's own name

	mu    sync.Mutex
	idle  []*mark
	made  int   // marks
	names int64 // of commits, that were given
}

func newMarks(prefix string) *marks { return &marks{prefix: prefix + rand.Text() + "-"} }

// take gives a mark to a commit, and a name that none of the store had before.
func (ms *marks) take() (m *mark, name string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.names++
	name = strconv.FormatInt(ms.names, 10)
	if n := len(ms.idle); n > 0 {
		m, ms.idle = ms.idle[n-1], ms.idle[:n-1]
		return m, name
	}
	ms.made++
	return &mark{key: ms.prefix + strconv.Itoa(ms.made)}, name
}

func (ms *marks) give(m *mark) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.idle = append(ms.idle, m)
}

// touch writes to a mark if that is as the store knows it, and takes note of what is there
// otherwise. It depends on that because a put that gets to etcd late would take away the name of a
// commit that was made meanwhile.
func (s *Store) touch(ctx context.Context, m *mark, name string) (made int64, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		begun := time.Now()
		resp, err := s.client.Txn(ctx).If(m.unchanged()).Then(clientv3.OpPut(m.key, "")).Else(clientv3.OpGet(m.key)).Commit()
		switch {
		case err != nil:
			return err
		case resp.Succeeded:
			m.at, m.written = resp.Header.Revision, begun
			return nil
		}
		made = m.look(resp.Responses[0].GetResponseRange().Kvs, name)
		return nil
	})
	return made, err
}

// renew makes sure that a mark is there, and too young for being removed before a commit that
// begins now has ended.
func (s *Store) renew(ctx context.Context, m *mark) error {
	for m.at == 0 || time.Since(m.written) >= markTime/2 {
		if _, err := s.touch(ctx, m, ""); err != nil {
			return err
		}
	}
	return nil
}

// settle finds out what became of a commit that was sent: it returns its revision if it was made,
// or 0 if it never will be. Where etcd has no room it takes none of what was sent before either.
func (s *Store) settle(ctx context.Context, m *mark, name string) (made int64, err error) {
	made, err = s.touch(ctx, m, name)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		made, err = s.found(ctx, m, name)
	}
	if err == nil && m.at == 0 {
		err = errForgotten
	}
	return made, err
}

// found returns the revision of the commit of a name, if its mark has that.
func (s *Store) found(ctx context.Context, m *mark, name string) (made int64, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, m.key)
		if err == nil {
			made = m.look(resp.Kvs, name)
		}
		return err
	})
	return made, err
}

// sweep removes marks that have stayed the same since the look before, as those of stores that
// are gone do, and returns those that it has seen now. A store whose mark is removed while it
// does not use it makes it again.
func (s *Store) sweep(ctx context.Context, before map[string]int64) (map[string]int64, error) {
	now := map[string]int64{}
	err := s.again(ctx, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.marked, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err == nil {
			for _, kv := range resp.Kvs {
				now[string(kv.Key)] = kv.ModRevision
			}
		}
		return err
	})
	if err != nil {
		return before, err
	}
	for key, at := range now {
		if before[key] != at {
			continue
		}
		m := mark{key: key, at: at}
		err := s.again(ctx, func(ctx context.Context) error {
			_, err := s.client.Txn(ctx).If(m.unchanged()).Then(clientv3.OpDelete(key)).Commit()
			return err
		})
		if err != nil {
			return now, err
		}
		delete(now, key)
	}
	return now, nil
}

// clean sweeps as long as the store is open. The time between two looks is by its own clock.
func (s *Store) clean() {
	var seen map[string]int64
	for wait(s.life, markTime) {
		var err error
		if seen, err = s.sweep(s.life, seen); err != nil && s.life.Err() == nil {
			s.logger.Warn("marks of commits were not removed from etcd", "error", err)
		}
	}
}
