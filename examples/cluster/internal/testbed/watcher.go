package testbed

import (
	"fmt"
	"time"
)

// watcher watches all objects, from the beginning to the fence, switching between the servers.
type watcher struct {
	*Load
	stream
	server  int
	resumed []string // versions at which the watch was resumed, and on which server
}

func (w *watcher) run() {
	for w.watching.Err() == nil {
		w.resumed = append(w.resumed, fmt.Sprintf("after %d on server %d, %v", w.last, w.server%len(w.servers), time.Since(w.began).Round(time.Millisecond)))
		err := w.servers[w.server%len(w.servers)].Watch(w.watching, ConfigMaps, fmt.Sprint("resourceVersion=", w.last), w.take)
		if w.err != nil {
			w.t.Error(w.err)
		}
		if w.err != nil || w.fenced {
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
