package main

import (
	"context"
	"sync"
	"time"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// removalPace is the shortest time between the last write of a record and its removal. An
// etcd needs about half of that for each commit.
const removalPace = 10 * time.Millisecond

// paced is a store in memory that removes no record within removalPace of its last write.
//
// A Pod without a node is deleted by two commits: the first one sets deletionTimestamp, the
// second one removes the Pod. Controllers that act on the first one read the Pod from their
// cache, and tests expect that they find it there. They do if an etcd lies between the
// commits; without the pace both reach a cache together.
type paced struct {
	*memstore.Store

	mu     sync.Mutex
	last   map[string]time.Time // when the keys of recent were last written
	recent []keyWrite           // in order of time, those within removalPace
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
		p.note(ws)
	}
	return revision, err
}

// untilRemoval returns how long a commit has to wait because of the keys that it deletes.
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

// note remembers the keys that a commit wrote, and forgets those written before removalPace.
func (p *paced) note(ws []storage.Write) {
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
