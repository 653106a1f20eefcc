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

// roundRobin is a storage.Backend that sends each call to the next of several stores in one database.
// It has the properties that the stores have across processes.
type roundRobin struct {
	stores []*sqlstore.Store
	turn   atomic.Int64
}

func openSeveral(t testing.TB, o sqlstore.Options) *roundRobin {
	s := &roundRobin{}
	for range 3 {
		one, err := sqlstore.Open(t.Context(), o)
		require.NoError(t, err)
		s.stores = append(s.stores, one)
	}
	return s
}

func (s *roundRobin) next() *sqlstore.Store { return s.stores[int(s.turn.Add(1))%len(s.stores)] }

func (s *roundRobin) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	return s.next().Get(ctx, key, at)
}

func (s *roundRobin) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	return s.next().Scan(ctx, prefix, start, at)
}

func (s *roundRobin) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	return s.next().Commit(ctx, ws...)
}

func (s *roundRobin) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.next().Watch(ctx, prefix, after)
}

func (s *roundRobin) History(ctx context.Context, prefix string, after, last storage.Revision) iter.Seq2[[]storage.Event, error] {
	return s.next().History(ctx, prefix, after, last)
}

func (s *roundRobin) Revision(ctx context.Context) (storage.Revision, error) {
	return s.next().Revision(ctx)
}

func (s *roundRobin) Compact(ctx context.Context, before storage.Revision) error {
	return s.next().Compact(ctx, before)
}

func (s *roundRobin) Stamp(ctx context.Context, name, value string) (string, error) {
	return s.next().Stamp(ctx, name, value)
}

func (s *roundRobin) Close() error {
	var errs []error
	for _, one := range s.stores {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// TestConformanceOfSeveralStores: several stores in one database fulfil the contract together.
func TestConformanceOfSeveralStores(t *testing.T) {
	needPostgres(t)
	storagetest.Run(t, func(t testing.TB) storage.Backend { return openSeveral(t, empty(t)) })
}

// underFaults runs the fault tests on several stores while happen injects faults into the database.
func (s *roundRobin) underFaults(t testing.TB, happen func(progress func(commits int))) {
	t.Helper()
	var stores []storage.Backend
	for _, one := range s.stores {
		stores = append(stores, one)
	}
	storagetest.RunFaults(t, stores, happen) // the outcome of an unanswered commit is unknown
	for _, one := range s.stores {
		require.NoError(t, one.Check(t.Context()))
	}
}

// TestConnectionsTerminated: the server repeatedly terminates all connections while stores write and
// watch.
func TestConnectionsTerminated(t *testing.T) {
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

// TestServerKilled: all processes of the server are killed while stores write and watch, and the server
// is started again. It runs with its default durability.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
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
