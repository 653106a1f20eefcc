package storagetest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"orch.io/controlplane/storage"
)

// Maximum times of a call and of a case. They are much longer than any store needs, so they expire only if a store
// does not conform.
const (
	callTime = 30 * time.Second
	caseTime = 2 * time.Minute
)

// rule is one case of the kit.
type rule struct {
	name        string
	of          sentence // the violated sentence, unless the guard finds a more specific sentence
	description string   // description of the rule, shown if the case fails
	test        func(s *store)
}

// verdict collects the result of a case. It replaces testing.T for the case, because a case that hangs is abandoned and
// may continue after its test has ended.
type verdict struct {
	hang     *hang
	mu       sync.Mutex
	first    *breach  // the first violation
	failures []string // messages of failed assertions
	notes    []string
}

// hang records for all cases of a run whether a call of the store did not return in time. After that, later calls get
// less time, so that the run ends before the time limit of the test process.
type hang struct {
	mu   sync.Mutex
	seen bool
}

func (h *hang) patience() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen {
		return callTime / 15
	}
	return callTime
}

func (h *hang) note() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = true
}

// Errorf implements require.TestingT. It adds the message of a failed assertion.
func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failures = append(v.failures, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// FailNow ends the goroutine of the case.
func (v *verdict) FailNow() { runtime.Goexit() }

// Helper is for assertions.
func (v *verdict) Helper() {}

func (v *verdict) Error(args ...any) { v.Errorf("%s", fmt.Sprint(args...)) }

func (v *verdict) Fatal(args ...any) {
	v.Error(args...)
	v.FailNow()
}

// Logf adds a message that is shown only if the case fails.
func (v *verdict) Logf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

// note stores b if it is the first breach, and returns b.
func (v *verdict) note(b *breach) *breach {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first == nil {
		v.first = b
	}
	return b
}

// err returns the violation of the case, or nil.
func (v *verdict) err(r rule) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first == nil && len(v.failures) == 0 {
		return nil
	}
	of, did := r.of, v.failures
	if v.first != nil {
		of, did = v.first.of, append([]string{v.first.did}, v.failures...)
	}
	where, words, _ := strings.Cut(string(of), ": ")
	text := fmt.Sprintf("the store breaks the contract of storage.%s:\n\t%q\n%s\nthe rule: %s", where, words, did[0], r.description)
	for _, more := range append(did[1:], v.notes...) {
		text += "\n" + more
	}
	return &breach{of, text}
}

// examine runs a case and returns the violation. If the case does not end within limit, that is a violation, and the case
// is abandoned. A limit of 0 means no limit.
func (r rule) examine(h *hang, limit time.Duration, test func(v *verdict)) error {
	v := &verdict{hang: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				v.note(breaks(r.of, "the case panicked: %v\n%s", p, debug.Stack()))
			}
		}()
		test(v)
	}()
	if limit == 0 {
		<-done
		return v.err(r)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		h.note()
		v.note(breaks(r.of, "the case has not ended within %v: something that the store has to do does not happen", limit))
	}
	return v.err(r)
}

// store is an open backend with the case that uses it.
type store struct {
	storage.Backend // guarded, see guarded
	raw             storage.Backend
	t               *verdict
	ctx             context.Context
}

// newStore returns a guarded store for a case, and a function that closes it.
func newStore(v *verdict, b storage.Backend) (*store, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), caseTime-callTime)
	g := &guarded{backend: b, v: v, ofKey: map[string]storage.Revision{}}
	return &store{Backend: g, raw: b, t: v, ctx: ctx}, func() {
		cancel()
		g.unchanged()
		_ = g.Close() // the guard records violations
	}
}

// run runs the case in a test.
func (r rule) run(t *testing.T, h *hang, open func(t testing.TB) storage.Backend) {
	t.Helper()
	b := open(t)
	err := r.examine(h, caseTime, func(v *verdict) {
		s, end := newStore(v, b)
		defer end()
		r.test(s)
	})
	if err != nil {
		t.Error(err)
	}
}
