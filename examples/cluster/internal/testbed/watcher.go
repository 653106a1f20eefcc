package main

import (
	"fmt"
	"time"
)

// watcher watches all objects, from the beginning to the fence, switching between the servers.
type watcher struct {
	*load
	server  int
	last    uint64 // the newest version received
	seen    []event
	resumed []string // versions at which the watch was resumed, and on which server
}

func (w *watcher) run() {
	w.last = w.base
	for w.watching.Err() == nil {
		whole := false
		w.resumed = append(w.resumed, fmt.Sprintf("after %d on server %d, %v", w.last, w.server%len(w.servers), time.Since(w.began).Round(time.Millisecond)))
		err := w.servers[w.server%len(w.servers)].watch(w.watching, w.last, func(e event) bool {
			whole = !w.take(e)
			return !whole
		})
		if whole {
			return
		}
		if err != nil && w.watching.Err() == nil {
			w.server++
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-w.watching.Done():
		}
	}
}

// take checks the order of versions and records events other than bookmarks. It returns false at the
// fence and after an error.
func (w *watcher) take(e event) bool {
	version := e.Object.version()
	switch {
	case e.Type == "BOOKMARK":
		if version < w.last {
			w.t.Errorf("bookmark %d after %d", version, w.last)
		}
		w.last = version
		return true
	case e.Type == "ERROR" && e.Object.Code >= 500: // a watch may end with this error; the next one continues
		return true
	case e.Type == "ERROR":
		w.t.Errorf("the watch after %d ended: %d %s", w.last, e.Object.Code, e.Object.Text)
		return false
	case version <= w.last:
		w.t.Errorf("%s of %s at %d after %d", e.Type, e.Object.Metadata.Name, version, w.last)
		return false
	}
	w.last = version
	if e.Object.Metadata.Name == w.fenceName() {
		return false
	}
	if e.Object.Metadata.Labels["epoch"] == "" { // not an object of the load
		return true
	}
	w.seen = append(w.seen, e)
	return true
}
