package storagetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func lifeRules() []rule {
	return []rule{
		{"CancelledContext", allMethods, "a call fails with the error of its context after the context has ended", cancelledContext},
		{"CancelledScan", allMethods, "a scan yields the error of its context when the context ends", cancelledScan},
		{"CloseFailsCalls", allMethods, "after Close every call fails with ErrClosed; a second Close returns nil", closeFailsCalls},
		{"CloseEndsWatches", closeEnds, "Close ends running watches", closeEndsWatches},
		{"CloseWhileBusy", closeEnds, "calls during Close succeed or fail with ErrClosed, and Close waits for them", closeWhileBusy},
	}
}

// calls calls every method once and returns the errors by method name.
func calls(ctx context.Context, b *store) map[string]error {
	errs := map[string]error{}
	_, errs["Get"] = b.Get(ctx, "a", 0)
	_, errs["Get at"] = b.Get(ctx, "a", 1)
	_, _, errs["Scan"] = b.Scan(ctx, "", "", 0)
	_, errs["Commit"] = b.Commit(ctx, storage.Write{Key: "a", Value: []byte("x"), Expect: storage.AnyRevision})
	_, errs["Revision"] = b.Revision(ctx)
	errs["Compact"] = b.Compact(ctx, 1)
	if stamper, ok := b.raw.(storage.Stamper); ok {
		_, errs["Stamp"] = stamper.Stamp(ctx, "a", "x")
	}
	return errs
}

func cancelledContext(s *store) {
	s.put("a", "x")
	before := s.newest()
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	for name, err := range calls(ctx, s) {
		require.ErrorIs(s.t, err, context.Canceled, name)
	}
	s.put("b", "y")
	require.Equal(s.t, "x", string(s.get("a", 0).Value))
	require.Greater(s.t, s.newest(), before)
}

func cancelledScan(s *store) {
	const n = 2000
	write(s, 8, n, func(i int) storage.Write {
		return storage.Write{Key: fmt.Sprintf("k/%04d", i), Value: []byte("x")}
	})
	ctx, cancel := context.WithCancel(s.ctx)
	_, records, err := s.Scan(ctx, "", "", 0)
	require.NoError(s.t, err)
	cancel()
	got := 0
	var end error
	for _, err := range records {
		require.NoError(s.t, end, "the watch yielded an element after the error")
		if end = err; err == nil {
			got++
		}
	}
	require.ErrorIs(s.t, end, context.Canceled)
	require.Less(s.t, got, n)
}

func closeFailsCalls(s *store) {
	s.put("a", "x")
	_, records, err := s.Scan(s.ctx, "", "", 0)
	require.NoError(s.t, err)
	require.NoError(s.t, s.Close())
	for name, err := range calls(s.ctx, s) {
		require.ErrorIs(s.t, err, storage.ErrClosed, name)
	}
	for rec, err := range records {
		if err != nil {
			require.ErrorIs(s.t, err, storage.ErrClosed)
			break
		}
		require.Equal(s.t, "x", string(rec.Value))
	}
	for _, err := range s.Watch(s.ctx, "", 0) {
		require.ErrorIs(s.t, err, storage.ErrClosed)
	}
	require.NoError(s.t, s.Close())
}

func closeEndsWatches(s *store) {
	first := s.put("a", "x")
	const watches = 8
	ready := make(chan struct{}, 2*watches) // one element for the event and one for the end of each watch
	errs := make([]error, watches)
	var wg sync.WaitGroup
	for i := range watches {
		wg.Go(func() {
			defer func() { ready <- struct{}{} }()
			for _, err := range s.Watch(s.ctx, "", first-1) {
				if err != nil {
					errs[i] = err
					break
				}
				ready <- struct{}{}
			}
		})
	}
	for range watches {
		<-ready
	}
	require.NoError(s.t, s.Close())
	wg.Wait()
	for _, err := range errs {
		require.True(s.t, err == nil || errors.Is(err, storage.ErrClosed), "%v", err)
	}
	require.NoError(s.t, s.ctx.Err())
}

func closeWhileBusy(s *store) {
	s.put("a", "0")
	started := make(chan struct{}, 64)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := 0; ; n++ {
				if n == 5 {
					started <- struct{}{}
				}
				if errs[i] = busy(s, i); errs[i] != nil {
					started <- struct{}{}
					return
				}
				runtime.Gosched() // readers that never wait would starve the writers
			}
		})
	}
	for range errs {
		<-started
	}
	require.NoError(s.t, s.Close())
	wg.Wait()
	for _, err := range errs {
		require.ErrorIs(s.t, err, storage.ErrClosed)
	}
}

func busy(s *store, i int) error {
	switch i % 4 {
	case 0:
		_, err := s.Commit(s.ctx, storage.Write{Key: fmt.Sprint(i), Value: []byte("x"), Expect: storage.AnyRevision})
		return err
	case 1:
		return increment(s.ctx, s.Backend, "a")
	case 2:
		_, records, err := s.Scan(s.ctx, "", "", 0)
		if err != nil {
			return err
		}
		for _, err := range records {
			if err != nil {
				return err
			}
		}
		return nil
	default:
		_, err := s.Get(s.ctx, "a", 0)
		return err
	}
}
