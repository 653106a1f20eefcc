package eventlog_test

import (
	"fmt"
	"sync"
	"time"

	"orch.io/controlplane/internal/eventlog"
	"orch.io/controlplane/storage"
)

// hub is a log with its waiting readers, under one lock.
type hub struct {
	mu    sync.Mutex
	log   eventlog.Log[string]
	parks eventlog.Waiters[string]
}

// commit appends an event of key and wakes the readers that wait for it.
func (h *hub) commit(key string) {
	h.mu.Lock()
	rev := h.log.Newest() + 1
	h.log.Append(time.Now(), eventlog.Commit[string]{Revision: rev, Events: []string{key}, Bytes: 1})
	var woken eventlog.Woken
	woken = h.parks.Wake(woken, key, rev-1)
	h.mu.Unlock()
	woken.Release()
}

// next returns the commits after a revision. If there are none, it returns the group to wait in.
func (h *hub) next(key string, after storage.Revision) ([]eventlog.Commit[string], *eventlog.Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if run := h.log.After(after); len(run) > 0 {
		return run, nil
	}
	return nil, h.parks.Park(key)
}

// A reader that has read all commits waits for the next one and misses none.
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
