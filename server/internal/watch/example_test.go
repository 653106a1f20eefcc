package watch_test

import (
	"context"
	"fmt"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var lamps = meta.GroupResource{Group: "example.com", Resource: "lamps"}

func write(store storage.Backend, name, state string) storage.Revision {
	value := fmt.Sprintf(`{"kind":"Lamp","metadata":{"name":%q,"labels":{"state":%q}}}`, name, state)
	rev, _ := store.Commit(context.Background(), storage.Write{
		Key: "lamps.example.com//" + name, Value: []byte(value), Expect: storage.AnyRevision,
	})
	return rev
}

func ExampleHub() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	write(store, "desk", "on")
	hub, _ := watch.Open(ctx, store, watch.Options{})
	defer hub.Close()

	on, _ := meta.ParseLabelSelector("state=on")
	entries, cursor := hub.Cache(lamps).WatchFrom(watch.Query{Labels: on})
	defer cursor.Close()
	for _, e := range entries {
		fmt.Println("at first", string(e.JSON()))
	}
	write(store, "floor", "off")
	write(store, "floor", "on")
	_ = hub.Wait(ctx, write(store, "desk", "off"))
	events, _ := cursor.Next(ctx)
	for _, ev := range events {
		fmt.Println(ev.Type, ev.Entry.Key(), ev.Revision)
	}
	// Output:
	// at first {"kind":"Lamp","metadata":{"resourceVersion":"1","name":"desk","labels":{"state":"on"}}}
	// ADDED floor 3
	// DELETED desk 4
}

func ExampleCache_ListAt() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	for _, name := range []string{"a", "b", "c"} {
		write(store, name, "on")
	}
	hub, _ := watch.Open(ctx, store, watch.Options{})
	defer hub.Close()
	cache := hub.Cache(lamps)

	page := cache.List(watch.Query{}, "", 2)
	fmt.Println(len(page.Entries), page.Remaining, page.Revision)
	_ = hub.Wait(ctx, write(store, "d", "on")) // the next page does not show it
	page, _ = cache.ListAt(ctx, page.Revision, watch.Query{}, page.Next, 2)
	fmt.Println(len(page.Entries), page.Remaining, page.Revision)
	// Output:
	// 2 1 3
	// 1 0 3
}

// A feed shows what changed, object by object, to a reader in the same process.
func ExampleFeed() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	write(store, "desk", "on")
	hub, _ := watch.Open(ctx, store, watch.Options{})
	defer hub.Close()
	feed := hub.Feed(lamps)
	defer feed.Close()

	changes, _ := feed.Changes()
	fmt.Println(len(slices.Collect(changes)), "at first")
	_ = hub.Wait(ctx, write(store, "desk", "off"))
	changes, _ = feed.Changes()
	for c := range changes {
		fmt.Println(c.Key, c.Old.String("metadata", "labels", "state"), "to", c.Object.String("metadata", "labels", "state"))
	}
	// Output:
	// 1 at first
	// desk on to off
}
