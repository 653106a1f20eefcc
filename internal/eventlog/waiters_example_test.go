package eventlog_test

import (
	"fmt"
	"sync"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// hub is what a store's watches read from: a log and those who wait, under one lock.
type hub struct {
	mu    sync.Mutex
	log   eventlog.Log[string]
	parks eventlog.Waiters[string]
}

// commit appends what happened to a key, and wakes who waits for it.
func (h *hub) commit(key string) {
	h.mu.Lock()
	rev := h.log.Newest() + 1
	h.log.Append(time.Now(), eventlog.Commit[string]{Revision: rev, Events: []string{key}, Bytes: 1})
	var woken eventlog.Woken
	woken = h.parks.Wake(woken, key, rev-1)
	h.mu.Unlock()
	woken.Release()
}

// next returns what was committed after a revision, or where to wait for it.
func (h *hub) next(key string, after storage.Revision) ([]eventlog.Commit[string], *eventlog.Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if run := h.log.After(after); len(run) > 0 {
		return run, nil
	}
	return nil, h.parks.Park(key)
}

// A reader that has read everything waits, and misses nothing.
func ExampleWaiters() {
	h := &hub{parks: eventlog.Waiters[string]{}}
	h.log.Init(0, eventlog.Limits{})
	_, group := h.next("a", 0)
	h.commit("a")
	<-group.Woken()
	h.commit("b")
	run, _ := h.next("a", group.Quiet())
	fmt.Println(len(run), eventlog.UpTo(run, 1))
	// Output: 2 [{1 [a] 1}]
}
