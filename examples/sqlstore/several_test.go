package sqlstore_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/storagetest"
)

// several is a storage.Backend of several stores over one database: each call goes to another
// one. What holds for it holds across processes.
type several struct {
	stores []*sqlstore.Store
	turn   atomic.Int64
}

func openSeveral(t testing.TB, o sqlstore.Options) *several {
	s := &several{}
	for range 3 {
		one, err := sqlstore.Open(t.Context(), o)
		require.NoError(t, err)
		s.stores = append(s.stores, one)
	}
	return s
}

func (s *several) next() *sqlstore.Store { return s.stores[int(s.turn.Add(1))%len(s.stores)] }

func (s *several) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	return s.next().Get(ctx, key, at)
}

func (s *several) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	return s.next().Scan(ctx, prefix, start, at)
}

func (s *several) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	return s.next().Commit(ctx, ws...)
}

func (s *several) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.next().Watch(ctx, prefix, after)
}

func (s *several) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.next().History(ctx, prefix, after, last)
}

func (s *several) Revision(ctx context.Context) (storage.Revision, error) {
	return s.next().Revision(ctx)
}

func (s *several) Compact(ctx context.Context, before storage.Revision) error {
	return s.next().Compact(ctx, before)
}

func (s *several) Stamp(ctx context.Context, name, value string) (string, error) {
	return s.next().Stamp(ctx, name, value)
}

func (s *several) Close() error {
	var errs []error
	for _, one := range s.stores {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// TestSeveral: several stores over one database keep the contract together.
func TestSeveral(t *testing.T) {
	needPostgres(t)
	storagetest.Run(t, func(t testing.TB) storage.Backend { return openSeveral(t, empty(t)) })
}

// underFaults checks what several stores keep whatever happens to the database.
func (s *several) underFaults(t testing.TB, happen func(progress func(commits int))) {
	t.Helper()
	var stores []storage.Backend
	for _, one := range s.stores {
		stores = append(stores, one)
	}
	storagetest.RunFaults(t, stores, happen) // what became of a commit without an answer is not known
	for _, one := range s.stores {
		require.NoError(t, one.Check(t.Context()))
	}
}

// TestTerminated: the server ends all connections, again and again, under writers and watches.
func TestTerminated(t *testing.T) {
	t.Parallel()
	o := empty(t)
	many := openSeveral(t, o)
	defer func() { require.NoError(t, many.Close()) }()
	many.underFaults(t, func(progress func(commits int)) {
		for range 5 {
			progress(50)
			query(t, o, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()`, o.Schema)
		}
		progress(50)
	})
}

// TestServerKilled: all processes of the server are killed under writers and watches, and it is
// started again. It writes to the disk as it does by itself.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	c := own(t)
	many := openSeveral(t, sqlstore.Options{Postgres: c.url(), Retain: forever})
	defer func() { require.NoError(t, many.Close()) }()
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	many.underFaults(t, func(progress func(commits int)) {
		for range rounds {
			progress(50)
			c.kill()
			require.NoError(t, c.start())
		}
		progress(50)
	})
}
