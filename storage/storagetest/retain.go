package storagetest

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// OpenRetaining opens a store that keeps its history for a time. A store that is
// in a directory uses dir, which is empty at first.
type OpenRetaining func(t testing.TB, dir string, keep time.Duration) storage.Backend

// RunRetained checks the rule of storage.Retention with a clock of its own, in
// testing/synctest bubbles. durable says that a store which is closed and opened
// again in the same directory has kept everything.
func RunRetained(t *testing.T, open OpenRetaining, durable bool) {
	rules := []struct {
		name, says string
		test       func(r *retained)
	}{
		{"Busy", "beside commits a state is readable until the time has passed since it was replaced, and no longer", retainBusy},
		{"Quiet", "a replaced state is forgotten in time also if nothing else happens, and the newest never", retainQuiet},
	}
	if durable {
		rules = append(rules, []struct {
			name, says string
			test       func(r *retained)
		}{
			{"Restarts", "history ages across restarts, however often they come", retainRestarts},
			{"Closed", "history ages while the store is closed", retainClosed},
		}...)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("the rule: " + rule.says)
				}
			})
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				r := &retained{t: t, open: open, dir: dir}
				r.restart()
				rule.test(r)
				require.NoError(t, r.Close())
			})
		})
	}
}

// kept is how long the stores of these rules keep their history, and slack how
// much longer they may.
const (
	kept  = 5 * time.Minute
	slack = kept / 32
)

// retained is a store with the times of its commits.
type retained struct {
	storage.Backend
	t    *testing.T
	open OpenRetaining
	dir  string
	at   []time.Time
	revs []storage.Revision
}

func (r *retained) restart() {
	r.t.Helper()
	if r.Backend != nil {
		require.NoError(r.t, r.Close())
	}
	r.Backend = r.open(r.t, r.dir, kept)
}

func (r *retained) commit() {
	r.t.Helper()
	revision, err := r.Commit(r.t.Context(), storage.Write{Key: "a", Value: fmt.Append(nil, len(r.revs)), Expect: storage.AnyRevision})
	require.NoError(r.t, err)
	r.at, r.revs = append(r.at, time.Now()), append(r.revs, revision)
}

// check reads every state that there was.
func (r *retained) check(slack time.Duration) {
	r.t.Helper()
	for i, rev := range r.revs {
		age := time.Duration(0)
		if i+1 < len(r.at) {
			age = time.Since(r.at[i+1])
		}
		err := r.read(i, rev)
		switch {
		case age <= kept:
			require.NoError(r.t, err, "state %d was replaced %v ago", i, age)
		case age > kept+slack:
			require.ErrorIs(r.t, err, storage.ErrCompacted, "state %d was replaced %v ago", i, age)
		case err != nil:
			require.ErrorIs(r.t, err, storage.ErrCompacted)
		}
	}
}

// read reads a state in every way; they have to agree.
func (r *retained) read(i int, rev storage.Revision) error {
	rec, err := r.Get(r.t.Context(), "a", rev)
	if err == nil && string(rec.Value) != fmt.Sprint(i) {
		return fmt.Errorf("%q at revision %d", rec.Value, rev)
	}
	_, records, scanned := r.Scan(r.t.Context(), "", "", rev)
	if errors.Is(scanned, storage.ErrCompacted) != errors.Is(err, storage.ErrCompacted) {
		return fmt.Errorf("get said %v, scan %v", err, scanned)
	}
	if scanned == nil {
		for rec, err := range records {
			if err != nil || string(rec.Value) != fmt.Sprint(i) {
				return fmt.Errorf("%q, %v in a scan at revision %d", rec.Value, err, rev)
			}
		}
	}
	if i+1 == len(r.revs) {
		return err // a watch would wait
	}
	for commit, watched := range r.Watch(r.t.Context(), "", rev) {
		if errors.Is(watched, storage.ErrCompacted) != errors.Is(err, storage.ErrCompacted) {
			return fmt.Errorf("get said %v, watch %v", err, watched)
		}
		if watched == nil && commit[0].Revision != r.revs[i+1] {
			return fmt.Errorf("revision %d after %d", commit[0].Revision, rev)
		}
		break
	}
	return err
}

func retainBusy(r *retained) {
	for range 40 {
		for range 3 {
			r.commit()
			time.Sleep(kept / 50)
		}
		r.check(slack)
	}
}

func retainQuiet(r *retained) {
	for range 3 {
		r.commit()
		r.commit()
		time.Sleep(kept)
		r.check(slack)
		time.Sleep(slack + time.Millisecond)
		r.check(slack)
		time.Sleep(20 * kept)
		r.check(slack)
	}
}

// retainRestarts restarts far more often than history is forgotten. What was
// committed since the store last wrote down the time may count as committed at
// the start.
func retainRestarts(r *retained) {
	for range 30 {
		r.commit()
		time.Sleep(kept / 10)
		r.restart()
		r.commit()
		time.Sleep(kept / 20)
		r.check(slack)
	}
}

func retainClosed(r *retained) {
	for range 4 {
		r.commit()
	}
	require.NoError(r.t, r.Close())
	time.Sleep(kept / 2)
	r.Backend = r.open(r.t, r.dir, kept)
	r.check(slack)
	r.commit()
	require.NoError(r.t, r.Close())
	time.Sleep(kept/2 + 2*slack)
	r.Backend = r.open(r.t, r.dir, kept)
	r.check(slack)
}
