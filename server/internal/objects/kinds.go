package objects

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// kinds is what a store says of the shapes of its records, in a record of its own: the one
// with which a store begins, so that no state of it has the version "0", which to
// clients means any state.
//
// Records of a kind are of one shape, that of all who wrote them, or they are mixed, and
// every one is looked at when it is read. Several servers, of several releases, may stand
// over one store. Before one writes, the store does not say that all records are of
// another shape than its own; a running one that reads such a word takes it back. So that
// word is true as long as it is there, but for what was under way when it was given.
type kinds struct {
	by    map[meta.GroupResource]*kind
	empty bool // the store was
}

// kind is a type of which there are records.
type kind struct {
	t     *resource.Type
	shape string
	mixed atomic.Bool // records may be of another shape
	other atomic.Bool // the store says that all are
	first bool        // no release of this shape has served the store
}

// word is what the store says of a kind.
type word struct {
	All  string   `json:"all,omitempty"` // the shape of all records; empty: they are mixed
	Seen []string `json:"seen"`          // the shapes of those who served it, the last ones, in order
}

// maxSeen bounds how many releases of a kind the store knows.
const maxSeen = 32

// words is what the store says, by kinds as storage keys name them.
type words map[string]word

func (k *kind) String() string { return k.t.GroupResource().String() }

// open reads what the store says.
func (ks *kinds) open(ctx context.Context, b storage.Backend, types []*resource.Type) error {
	ks.by = map[meta.GroupResource]*kind{}
	said, _, err := readWords(ctx, b, 0)
	if err != nil {
		return err
	}
	newest, err := b.Revision(ctx)
	if err != nil {
		return err
	}
	for _, t := range types {
		if t.Virtual || t.ConformOnRead {
			continue
		}
		k := &kind{t: t, shape: t.Shape()}
		ks.by[t.GroupResource()] = k
		w := said[k.String()]
		k.first = !slices.Contains(w.Seen, k.shape)
		k.mixed.Store(w.All != k.shape && newest > 0)
	}
	ks.empty = newest == 0
	return nil
}

// kindOf returns the kind whose object a key leads to, or nil.
func (ks *kinds) kindOf(key string) *kind {
	of, _, ok := resource.ParseStorageKey(key)
	if !ok {
		return nil
	}
	return ks.by[of]
}

// whole says that all records are of the kinds' shapes.
func whole(k *kind, w word) word { return w.with(k.shape, k.shape) }

// begins is whole for a store that was empty, unless another server was there first.
func begins(k *kind, w word) word {
	if len(w.Seen) > 0 {
		return claims(k, w)
	}
	return whole(k, w)
}

// wholeSince is whole for one who looked at all records since that word was said, if
// nobody said another one.
func wholeSince(k *kind, w, then word) word {
	if w.All != then.All || !slices.Equal(w.Seen, then.Seen) {
		return claims(k, w)
	}
	return whole(k, w)
}

// with returns the word after a release of that shape came.
func (w word) with(shape, all string) word {
	seen := slices.DeleteFunc(slices.Clone(w.Seen), func(s string) bool { return s == shape })
	seen = append(seen, shape)
	return word{All: all, Seen: seen[max(0, len(seen)-maxSeen):]}
}

// claims says that there may be records of the kind's shape.
func claims(k *kind, w word) word {
	switch {
	case w.All == k.shape:
		return w
	case w.All == "" && slices.Contains(w.Seen, k.shape):
		return w
	}
	return w.with(k.shape, "")
}

// say changes what the store says of every kind.
func (ks *kinds) say(ctx context.Context, b storage.Backend, change func(*kind, word) word) error {
	for {
		said, rev, err := readWords(ctx, b, 0)
		if err != nil {
			return err
		}
		now := maps.Clone(said)
		if now == nil {
			now = words{}
		}
		for _, k := range ks.by {
			now[k.String()] = change(k, said[k.String()])
		}
		text, err := json.Marshal(now) // in order
		if err != nil {
			return err
		}
		before, err := json.Marshal(said)
		if err != nil || string(text) == string(before) {
			return err
		}
		_, err = b.Commit(ctx, storage.Write{Key: resource.KindsKey, Value: text, Expect: rev})
		if conflict := (*storage.ConflictError)(nil); !errors.As(err, &conflict) {
			return err
		}
	}
}

// readWords reads what the store says at a revision. What cannot be read says nothing: every
// record is looked at then, and the next word takes its place.
func readWords(ctx context.Context, b storage.Backend, at storage.Revision) (words, storage.Revision, error) {
	rec, err := b.Get(ctx, resource.KindsKey, at)
	var damaged *storage.DamagedError
	switch {
	case errors.As(err, &damaged):
		return nil, damaged.Revision, nil
	case errors.Is(err, storage.ErrNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	return parseWords(rec.Value), rec.Revision, nil
}

func parseWords(text []byte) (said words) {
	if json.Unmarshal(text, &said) != nil {
		return nil
	}
	return said
}

// claim comes before a write: nobody says that all records are of another shape.
func (ks *kinds) claim(ctx context.Context, b storage.Backend, ws ...storage.Write) error {
	for _, w := range ws {
		if k := ks.kindOf(w.Key); k != nil && k.other.Load() {
			return ks.say(ctx, b, claims)
		}
	}
	return nil
}

// hear takes in what the store says at a revision, and returns it.
func (ks *kinds) hear(ctx context.Context, b storage.Backend, at storage.Revision) (words, error) {
	said, rev, err := readWords(ctx, b, at)
	if err == nil && rev > 0 {
		ks.take(said)
	}
	return said, err
}

// learn takes in what a server said of the kinds, and reports whether it is to be
// contradicted.
func (ks *kinds) learn(text []byte) bool { return ks.take(parseWords(text)) }

func (ks *kinds) take(said words) (contradicts bool) {
	for _, k := range ks.by {
		w := said[k.String()]
		k.mixed.Store(w.All != k.shape)
		other := w.All != "" && w.All != k.shape
		k.other.Store(other)
		contradicts = contradicts || other
	}
	return contradicts
}
