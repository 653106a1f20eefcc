// Command readmodel serves another API on the store of an API server: GET /rooms/attic returns the
// lamps of a room, followed by a line for each change.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// lamp is a stored Lamp with the fields that the read model needs, decoded once for all readers.
type lamp struct {
	watch.Record
	room, state string
}

func decode(r storage.Record) *lamp {
	var object struct{ Spec struct{ Room, State string } }
	// The record is the validated object, followed by a line for the server's own use.
	_ = json.NewDecoder(bytes.NewReader(r.Value)).Decode(&object)
	return &lamp{watch.Record(r), object.Spec.Room, object.Spec.State}
}

// rooms returns the handler of the read model. Readers of a room only wait for changes in that room.
func rooms(caches *watch.CacheSet[*lamp]) http.Handler {
	lamps := caches.Cache("lamps.example.com/")
	lamps.SetTopics(func(topics []watch.Topic, l *lamp) ([]watch.Topic, bool) {
		return append(topics, watch.Topic{Name: "room", Value: l.room}), true
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rooms/{room}", func(w http.ResponseWriter, r *http.Request) {
		room := r.PathValue("room")
		there, cursor := lamps.ListAndWatch(watch.Query[*lamp]{
			Match: func(l *lamp) bool { return l.room == room },
			Topic: watch.Topic{Name: "room", Value: room},
		})
		for _, l := range there {
			fmt.Fprintln(w, l.Key, "is", l.state)
		}
		for {
			_ = http.NewResponseController(w).Flush()
			events, err := cursor.Next(r.Context())
			if err != nil {
				return // the reader is gone or was too slow; it can repeat the request
			}
			for _, ev := range events {
				if ev.New == nil {
					fmt.Fprintln(w, ev.Old.Key, "has left the room")
				} else {
					fmt.Fprintln(w, ev.New.Key, "is", ev.New.state)
				}
			}
		}
	})
	return mux
}
