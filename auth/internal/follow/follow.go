// Package follow keeps an index current by pulling a feed when the index is
// about to be read.
package follow

import (
	"sync"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

// Follower is a feed that is opened at the first use.
type Follower struct {
	Client registry.Client
	Types  []meta.GroupResource // those that the server does not have are left out

	mu   sync.Mutex // guards feed, and orders the calls of apply
	feed registry.Feed
}

// Sync hands what has changed since the last call to apply, if anything has. It
// returns when all that was acknowledged before the call is applied.
func (f *Follower) Sync(apply func(changes []registry.Change, reset bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.feed == nil {
		f.feed = f.Client.Feed(f.known()...)
	}
	if changes, reset := f.feed.Pull(); len(changes) > 0 || reset {
		apply(changes, reset)
	}
}

func (f *Follower) known() []meta.GroupResource {
	served := f.Client.Types()
	if len(served) == 0 {
		return f.Types
	}
	var out []meta.GroupResource
	for _, r := range f.Types {
		for _, t := range served {
			if t.GroupResource() == r {
				out = append(out, r)
			}
		}
	}
	return out
}

// Close ends following.
func (f *Follower) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.feed != nil {
		f.feed.Close()
		f.feed = nil
	}
}
