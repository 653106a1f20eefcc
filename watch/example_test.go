package watch_test

import (
	"context"
	"fmt"
	"strings"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/watch"
)

func put(store storage.Backend, key, value string) storage.Revision {
	rev, _ := store.Commit(context.Background(), storage.Write{Key: key, Value: []byte(value), Expect: storage.AnyRevision})
	return rev
}

// A cursor delivers the events after a list, as seen through a query.
func Example() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	put(store, "lamps/desk", "on")
	caches, _ := watch.Open(ctx, store, watch.Options[*watch.Record]{Entry: watch.NewRecord})
	defer caches.Close()

	lit := watch.Query[*watch.Record]{Match: func(r *watch.Record) bool { return string(r.Value) == "on" }}
	lamps, cursor := caches.Cache("lamps/").ListAndWatch(lit)
	for _, lamp := range lamps {
		fmt.Println("lit:", lamp.Key)
	}
	put(store, "lamps/floor", "off")
	put(store, "lamps/floor", "on")
	_ = caches.Wait(ctx, put(store, "lamps/desk", "off"))
	events, _ := cursor.Next(ctx)
	for _, ev := range events {
		switch {
		case ev.Old == nil:
			fmt.Println("switched on:", ev.New.Key, "at", ev.Revision)
		case ev.New == nil:
			fmt.Println("switched off:", ev.Old.Key, "at", ev.Revision)
		}
	}
	// Output:
	// lit: desk
	// switched on: floor at 3
	// switched off: desk at 4
}

// All pages of a list show the same revision.
func ExampleCache_ListAt() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	for _, key := range []string{"lamps/a", "lamps/b", "lamps/c"} {
		put(store, key, "on")
	}
	caches, _ := watch.Open(ctx, store, watch.Options[*watch.Record]{Entry: watch.NewRecord})
	defer caches.Close()
	lamps, all := caches.Cache("lamps/"), watch.Query[*watch.Record]{}

	page := lamps.List(all, "", 2)
	fmt.Println(len(page.Entries), page.Remaining, page.Revision)
	_ = caches.Wait(ctx, put(store, "lamps/d", "on")) // the next page does not show it
	page, _ = lamps.ListAt(ctx, page.Revision, all, page.Next, 2)
	fmt.Println(len(page.Entries), page.Remaining, page.Revision)
	// Output:
	// 2 1 3
	// 1 0 3
}

// A feed delivers the events of several caches in the order of the commits.
func ExampleFeed() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	caches, _ := watch.Open(ctx, store, watch.Options[*watch.Record]{Entry: watch.NewRecord})
	defer caches.Close()
	feed := caches.Feed(caches.Cache("rooms/"), caches.Cache("lamps/"))
	feed.Changes() // the current entries: none yet

	put(store, "rooms/attic", "dark")
	put(store, "lamps/desk", "on")
	_ = caches.Wait(ctx, put(store, "rooms/attic", "bright"))
	events, _ := feed.Changes()
	for cache, ev := range events {
		fmt.Println(ev.Revision, cache.Prefix(), string(ev.New.Value))
	}
	// Output:
	// 1 rooms/ dark
	// 2 lamps/ on
	// 3 rooms/ bright
}

// room is an entry with decoded values and an embedded record.
type room struct {
	watch.Record
	floor string
}

// Cursors that wait for a topic are woken only by entries that have it.
func ExampleCache_SetTopics() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	caches, _ := watch.Open(ctx, store, watch.Options[*room]{Entry: func(r storage.Record) *room {
		floor, _, _ := strings.Cut(string(r.Value), ":")
		return &room{watch.Record(r), floor}
	}})
	defer caches.Close()
	rooms := caches.Cache("rooms/")
	rooms.SetTopics(func(topics []watch.Topic, r *room) ([]watch.Topic, bool) {
		return append(topics, watch.Topic{Name: "floor", Value: r.floor}), true
	})
	_, cursor := rooms.ListAndWatch(watch.Query[*room]{
		Match: func(r *room) bool { return r.floor == "2" },
		Topic: watch.Topic{Name: "floor", Value: "2"},
	})
	put(store, "rooms/hall", "0:large")
	put(store, "rooms/study", "2:small")
	events, _ := cursor.Next(ctx)
	fmt.Println(events[0].New.Key, string(events[0].New.Value))
	// Output:
	// study 2:small
}

// keys works with the entries of any cache.
func keys[V watch.Entry](page watch.Page[V]) (keys []string) {
	for _, e := range page.Entries {
		key, _, _ := e.Origin()
		keys = append(keys, key)
	}
	return keys
}

// The statistics have the number of entries that a list examined.
func ExampleCache_Stats() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	put(store, "lamps/desk", "on")
	put(store, "lamps/floor", "off")
	caches, _ := watch.Open(ctx, store, watch.Options[*watch.Record]{Entry: watch.NewRecord})
	defer caches.Close()
	lamps := caches.Cache("lamps/")
	page := lamps.List(watch.Query[*watch.Record]{Match: func(r *watch.Record) bool { return string(r.Value) == "on" }}, "", 0)
	var stats watch.Stats = lamps.Stats()
	fmt.Println(keys(page), stats.Entries, stats.Examined, stats.Returned)
	// Output:
	// [desk] 2 2 1
}
