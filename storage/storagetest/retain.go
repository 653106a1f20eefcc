package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// OpenRetaining opens a store that keeps its history for the duration keep. A store in a directory uses dir, which is empty
// at the first call.
type OpenRetaining func(t testing.TB, dir string, keep time.Duration) storage.Backend

// RunRetained tests that a store follows the rule of storage.Retention. The cases run in testing/synctest bubbles, with a
// fake clock. durable must be true if a store that is closed and opened again in the same directory keeps its data.
func RunRetained(t *testing.T, open OpenRetaining, durable bool) {
	type retention struct {
		name        string
		of          sentence
		description string
		test        func(r *retained)
	}
	rules := []retention{
		{"Busy", retains, "during commits, a replaced revision is readable for the retention time and no longer", retainBusy},
		{"Quiet", retains, "a replaced revision is dropped in time even if there are no calls, and the newest revision is never dropped", retainQuiet},
	}
	if durable {
		rules = append(rules, []retention{
			{"Restarts", retains, "history expires across frequent restarts", retainRestarts},
			{"Closed", retains, "history expires while the store is closed", retainClosed},
		}...)
	}
	h := &hang{}
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				// The case takes years of the fake clock.
				err := rule{c.name, c.of, c.description, nil}.examine(h, 0, func(v *verdict) {
					r := &retained{t: v, test: t, open: open, dir: dir, ctx: t.Context()}
					r.start()
					defer func() { r.end() }()
					c.test(r)
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// keeps is the retention time of the stores, and slack the time by which they may exceed it.
const (
	keeps = 5 * time.Minute
	slack = keeps / 32
)

// retained is a store with the times of its commits.
type retained struct {
	storage.Backend
	t    *verdict
	test testing.TB
	ctx  context.Context
	open OpenRetaining
	dir  string
	end  func() // closes the store
	at   []time.Time
	revs []storage.Revision
}

func (r *retained) start() {
	s, end := newStore(r.t, r.open(r.test, r.dir, keeps))
	r.Backend, r.end = s.Backend, end
}

func (r *retained) restart() {
	r.end()
	r.start()
}

func (r *retained) commit() {
	r.t.Helper()
	revision, err := r.Commit(r.ctx, storage.Write{Key: "a", Value: fmt.Append(nil, len(r.revs)), Expect: storage.AnyRevision})
	require.NoError(r.t, err)
	r.at, r.revs = append(r.at, time.Now()), append(r.revs, revision)
}

// check reads at every revision and compares the result with the retention rule.
func (r *retained) check(slack time.Duration) {
	r.t.Helper()
	for i, rev := range r.revs {
		age := time.Duration(0)
		if i+1 < len(r.at) {
			age = time.Since(r.at[i+1])
		}
		err := r.read(i, rev)
		switch {
		case age <= keeps:
			require.NoError(r.t, err, "state %d was replaced %v ago", i, age)
		case age > keeps+slack:
			require.ErrorIs(r.t, err, storage.ErrCompacted, "state %d was replaced %v ago", i, age)
		case err != nil:
			require.ErrorIs(r.t, err, storage.ErrCompacted)
		}
	}
}

// read reads at a revision with every method. The methods must agree whether the revision is compacted.
func (r *retained) read(i int, rev storage.Revision) error {
	rec, err := r.Get(r.ctx, "a", rev)
	if err == nil && string(rec.Value) != fmt.Sprint(i) {
		return fmt.Errorf("%q at revision %d", rec.Value, rev)
	}
	_, records, scanned := r.Scan(r.ctx, "", "", rev)
	if errors.Is(scanned, storage.ErrCompacted) != errors.Is(err, storage.ErrCompacted) {
		return fmt.Errorf("Get returned %v, but Scan %v", err, scanned)
	}
	if scanned == nil {
		for rec, err := range records {
			if err != nil || string(rec.Value) != fmt.Sprint(i) {
				return fmt.Errorf("%q, %v in a scan at revision %d", rec.Value, err, rev)
			}
		}
	}
	if i+1 == len(r.revs) {
		return err // a watch would wait forever
	}
	for commit, watched := range r.Watch(r.ctx, "", rev) {
		if errors.Is(watched, storage.ErrCompacted) != errors.Is(err, storage.ErrCompacted) {
			return fmt.Errorf("Get returned %v, but Watch %v", err, watched)
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
			time.Sleep(keeps / 50)
		}
		r.check(slack)
	}
}

func retainQuiet(r *retained) {
	for range 3 {
		r.commit()
		r.commit()
		time.Sleep(keeps)
		r.check(slack)
		time.Sleep(slack + time.Millisecond)
		r.check(slack)
		time.Sleep(20 * keeps)
		r.check(slack)
	}
}

// retainRestarts restarts the store much more often than history expires. Commits after the store last saved their times
// may count as committed at the restart.
func retainRestarts(r *retained) {
	for range 30 {
		r.commit()
		time.Sleep(keeps / 10)
		r.restart()
		r.commit()
		time.Sleep(keeps / 20)
		r.check(slack)
	}
}

func retainClosed(r *retained) {
	for range 4 {
		r.commit()
	}
	r.end()
	time.Sleep(keeps / 2)
	r.start()
	r.check(slack)
	r.commit()
	r.end()
	time.Sleep(keeps/2 + 2*slack)
	r.start()
	r.check(slack)
}
