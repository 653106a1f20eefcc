package quota

import (
	"context"
	"math"
	"time"

	"orch.io/controlplane/storage"
)

// standing is what a server knows of a namespace with quotas.
type standing struct {
	stale   bool             // less may be used than is counted
	counted time.Time        // when this server counted last
	fence   storage.Revision // of the namespace, as this server saw it last
	raised  storage.Revision // of the fence, by this server last; doubted: it does not know what it took since
	looked  bool             // fence is known
}

// standing returns that of a namespace, for who changes it; the lock is held.
func (l *Ledger) standing(namespace string) *standing {
	s := l.standings[namespace]
	if s == nil {
		s = &standing{}
		l.standings[namespace] = s
	}
	return s
}

// stands returns the standing of a namespace as it is now.
func (l *Ledger) stands(namespace string) (now standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.standings[namespace]; s != nil {
		now = *s
	}
	return now
}

// forget notes that nothing is counted in a namespace any more.
func (l *Ledger) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.standings, namespace)
}

// count has what is used in a namespace counted anew, once for all who ask at one time;
// nobody is refused before.
func (l *Ledger) count(namespace string) {
	l.mu.Lock()
	l.standing(namespace).stale = true
	l.mu.Unlock()
	l.ask(namespace, shortly)
}

// doubtful reports whether what is used in a namespace is to be counted before anybody is
// refused there: a server that died may have left what it took for a write that it did not make.
func (l *Ledger) doubtful(namespace string) bool {
	s := l.stands(namespace)
	return s.stale || time.Since(s.counted) > flight
}

// doubted is older than any revision: whatever was taken, the fence was not raised since.
const doubted = -1

// doubt notes that something was taken for a write that may be made yet, of which nobody will
// know: what is told is not lowered before the fence is raised.
func (l *Ledger) doubt(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.standing(namespace).raised = doubted
}

// fresh notes that what is used in a namespace is counted from now on.
func (l *Ledger) fresh(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.standing(namespace)
	s.stale, s.counted = false, time.Now()
}

// look reads the fence of a namespace.
func (l *Ledger) look(ctx context.Context, namespace string) error {
	if l.fence == nil {
		return nil
	}
	fence, err := l.fence(ctx, namespace)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.standing(namespace)
	s.fence, s.looked = fence, true
	return nil
}

// raiseFence raises the fence of a namespace. Where there are none nobody else takes anything.
func (l *Ledger) raiseFence(ctx context.Context, namespace string) error {
	raised := standing{raised: math.MaxInt64}
	if l.raise != nil {
		fence, err := l.raise(ctx, namespace)
		if err != nil {
			return err
		}
		raised = standing{fence: fence, raised: fence, looked: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.standing(namespace)
	s.fence, s.raised, s.looked = raised.fence, raised.raised, raised.looked
	return nil
}
