package main

import (
	"context"
	"sync"
	"time"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// removalPace is the minimal time between the last write of a record and its removal. An etcd needs
// about half of that for each commit.
const removalPace = 10 * time.Millisecond

// paced is a store in memory that removes no record within removalPace of its last write.
//
// A Pod without a node is deleted by two commits: the first sets deletionTimestamp, the second removes
// the Pod. Controllers that react to the first commit read the Pod from their cache, and tests expect
// that it is there. With an etcd between the commits it is; without the delay, both commits reach the
// cache together.
type paced struct {
	*memstore.Store

	mu     sync.Mutex
	last   map[string]time.Time // guarded by mu: the time of the last write of each key in recent
	recent []keyWrite           // guarded by mu: the writes within removalPace, in order of time
}

type keyWrite struct {
	key string
	at  time.Time
}

func newPaced() storage.Backend {
	return &paced{Store: memstore.New(memstore.Options{}), last: map[string]time.Time{}}
}

// Commit implements storage.Backend.
func (p *paced) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if wait := p.untilRemoval(ws); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	revision, err := p.Store.Commit(ctx, ws...)
	if err == nil {
		p.record(ws)
	}
	return revision, err
}

// untilRemoval returns how long a commit must wait because of the keys that it deletes.
func (p *paced) untilRemoval(ws []storage.Write) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ws {
		if at, ok := p.last[w.Key]; ok && w.Value == nil && !w.Guard {
			wait = max(wait, removalPace-time.Since(at))
		}
	}
	return wait
}

// record notes the keys that a commit wrote, and forgets writes older than removalPace.
func (p *paced) record(ws []storage.Write) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ws {
		if w.Value != nil {
			p.last[w.Key] = now
			p.recent = append(p.recent, keyWrite{w.Key, now})
		}
	}
	for len(p.recent) > 0 && now.Sub(p.recent[0].at) >= removalPace {
		old := p.recent[0]
		if p.last[old.key].Equal(old.at) {
			delete(p.last, old.key)
		}
		p.recent = p.recent[1:]
	}
}
