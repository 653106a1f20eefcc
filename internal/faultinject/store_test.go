package faultinject_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errFault = errors.New("fault")

// A wrapper without a plan behaves like the wrapped store.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Backend {
		return faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	})
}

// open returns a store with the keys a, b and c at the revisions 1, 2 and 3.
func open(t *testing.T) *faultinject.Store {
	s := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, key := range []string{"a", "b", "c"} {
		_, err := s.Commit(t.Context(), storage.Write{Key: key, Value: []byte(key)})
		require.NoError(t, err)
	}
	return s
}

// on returns a plan that returns f for calls with the given Op and key.
func on(op faultinject.Op, key string, f faultinject.Fault) faultinject.Plan {
	return func(c faultinject.Call) faultinject.Fault {
		if c.Op == op && c.Key == key {
			return f
		}
		return faultinject.Fault{}
	}
}

func TestErrOfNthCall(t *testing.T) {
	s := open(t)
	for op, call := range map[faultinject.Op]func(ctx context.Context) error{
		faultinject.OpGet:      func(ctx context.Context) error { _, err := s.Get(ctx, "a", 0); return err },
		faultinject.OpScan:     func(ctx context.Context) error { _, _, err := s.Scan(ctx, "", "", 0); return err },
		faultinject.OpRevision: func(ctx context.Context) error { _, err := s.Revision(ctx); return err },
		faultinject.OpCompact:  func(ctx context.Context) error { return s.Compact(ctx, 1) },
		faultinject.OpStamp:    func(ctx context.Context) error { _, err := s.Stamp(ctx, "a", "x"); return err },
		faultinject.OpCommit: func(ctx context.Context) error {
			_, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("x"), Expect: storage.AnyRevision})
			return err
		},
	} {
		before := s.Count(op)
		s.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == op && c.N == before+2 {
				return faultinject.Fault{Err: errFault}
			}
			return faultinject.Fault{}
		})
		require.NoError(t, call(t.Context()), op)
		require.ErrorIs(t, call(t.Context()), errFault, op)
		require.NoError(t, call(t.Context()), op)
		require.Equal(t, before+3, s.Count(op))
	}
}

func TestCommitWithDoneSucceedsDespiteError(t *testing.T) {
	s := open(t)
	s.SetPlan(on(faultinject.OpCommit, "d", faultinject.Fault{Err: errFault, Done: true}))
	_, err := s.Commit(t.Context(), storage.Write{Key: "d", Value: []byte("x")})
	require.ErrorIs(t, err, errFault)
	rec, err := s.Get(t.Context(), "d", 0)
	require.NoError(t, err)
	require.Equal(t, storage.Revision(4), rec.Revision)
	s.SetPlan(on(faultinject.OpCommit, "e", faultinject.Fault{Err: errFault}))
	_, err = s.Commit(t.Context(), storage.Write{Key: "e", Value: []byte("x")})
	require.ErrorIs(t, err, errFault)
	_, err = s.Get(t.Context(), "e", 0)
	require.ErrorIs(t, err, storage.ErrNotFound)
}

func TestScanFaults(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		fault faultinject.Fault
		keys  string
		err   error
	}{
		{faultinject.Fault{Err: errFault}, "a", errFault},
		{faultinject.Fault{Drop: true}, "ac", nil},
	} {
		s.SetPlan(on(faultinject.OpRecord, "b", c.fault))
		_, records, err := s.Scan(t.Context(), "", "", 0)
		require.NoError(t, err)
		keys := ""
		var end error
		for rec, err := range records {
			keys, end = keys+rec.Key, err
		}
		require.Equal(t, c.keys, keys)
		require.Equal(t, c.err, end)
	}
}

func TestWatchFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		plan faultinject.Plan
		keys string
		err  error
	}{
		{"opening fails", on(faultinject.OpWatch, "", faultinject.Fault{Err: errFault}), "", errFault},
		{"opening ends", on(faultinject.OpWatch, "", faultinject.Fault{End: true}), "", nil},
		{"event fails", on(faultinject.OpEvent, "b", faultinject.Fault{Err: errFault}), "a", errFault},
		{"event ends", on(faultinject.OpEvent, "b", faultinject.Fault{End: true}), "a", nil},
		{"event is lost", on(faultinject.OpEvent, "b", faultinject.Fault{Drop: true}), "ac", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			s.SetPlan(c.plan)
			keys := ""
			var end error
			for commit, err := range s.Watch(t.Context(), "", 0) {
				for _, e := range commit {
					keys += e.Key
				}
				if end = err; strings.HasSuffix(keys, "c") {
					break
				}
			}
			require.Equal(t, c.keys, keys)
			require.Equal(t, c.err, end)
		})
	}
}

func TestEndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		for _, reason := range []error{errFault, nil} {
			ended := make(chan error, 4)
			for range 4 {
				go func() {
					var end error
					for _, err := range s.Watch(t.Context(), "", 0) {
						end = err
					}
					ended <- end
				}()
			}
			synctest.Wait()
			s.EndWatches(reason)
			for range 4 {
				require.Equal(t, reason, <-ended)
			}
		}
		for commit, err := range s.Watch(t.Context(), "", 2) {
			require.NoError(t, err)
			require.Equal(t, "c", commit[0].Key)
			break
		}
	})
}

func TestDelayAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.SetPlan(on(faultinject.OpGet, "a", faultinject.Fault{Delay: time.Minute}))
		start := time.Now()
		_, err := s.Get(t.Context(), "a", 0)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.Get(ctx, "a", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		gate := make(chan struct{})
		s.SetPlan(on(faultinject.OpGet, "b", faultinject.Fault{Wait: gate}))
		got := make(chan error, 1)
		go func() {
			_, err := s.Get(t.Context(), "b", 0)
			got <- err
		}()
		synctest.Wait()
		require.Empty(t, got)
		close(gate)
		require.NoError(t, <-got)
	})
}
