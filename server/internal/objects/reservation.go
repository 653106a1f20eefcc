package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// Each value that an object of a kind with a registry.Pool holds is reserved by a
// record of its own, which is written and removed by the commits of the object: two
// servers over one store do not give a value twice, whatever they believe is free.
// The record says who holds the value, by storage key and uid. One whose holder does
// not hold it, as another program may have left it, is nobody's.

// reservations returns what is to be committed with a write that makes obj of the
// object that is there, if there is one, or removes it. A *storage.ConflictError says
// that somebody else holds a value that obj holds; who tries again sees it.
func (s *Store) reservations(ctx context.Context, w *Write, entry *watch.Entry, obj *meta.Object, removes bool) ([]storage.Write, error) {
	t := w.Version.Type
	if t.Pool == nil {
		return nil, nil
	}
	var live *meta.Object
	if entry != nil {
		live = Object(entry, t.Storage)
	}
	if removes {
		obj = nil
	}
	before, after := held(t, live), held(t, obj)
	var ws []storage.Write
	for _, value := range before {
		if slices.Contains(after, value) {
			continue
		}
		rec, err := s.reservation(ctx, t, value)
		if err != nil {
			return nil, err
		}
		if rec.Revision != 0 && string(rec.Value) == holder(t, w.Key, live) {
			ws = append(ws, storage.Write{Key: rec.Key, Expect: rec.Revision})
		}
	}
	for _, value := range after {
		if slices.Contains(before, value) {
			continue
		}
		rec, err := s.reservation(ctx, t, value)
		if err != nil {
			return nil, err
		}
		taken, err := s.taken(ctx, t, value, rec)
		if err != nil {
			return nil, err
		}
		if taken {
			return nil, &storage.ConflictError{Key: rec.Key, Current: rec}
		}
		ws = append(ws, storage.Write{Key: rec.Key, Value: []byte(holder(t, w.Key, obj)), Expect: rec.Revision})
	}
	return ws, nil
}

// held returns the values that an object, or nil, holds, each once and in order.
func held(t *registry.Type, obj *meta.Object) []string {
	if obj == nil {
		return nil
	}
	values := slices.Clone(t.Pool.Held(obj))
	slices.Sort(values)
	return slices.Compact(values)
}

func holder(t *registry.Type, key meta.Key, obj *meta.Object) string {
	return t.StorageKey(key) + " " + obj.UID()
}

// reservation returns the record of a value, without a revision if there is none.
// One that cannot be read has no value.
func (s *Store) reservation(ctx context.Context, t *registry.Type, value string) (storage.Record, error) {
	key := registry.ReservationKey(t.GroupResource(), value)
	rec, err := s.o.Backend.Get(ctx, key, 0)
	var damaged *storage.DamagedError
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return storage.Record{Key: key}, nil
	case errors.As(err, &damaged):
		return storage.Record{Key: key, Revision: damaged.Revision}, nil
	}
	return rec, err
}

// taken reports whether the holder that a record names holds its value.
func (s *Store) taken(ctx context.Context, t *registry.Type, value string, rec storage.Record) (bool, error) {
	if rec.Revision == 0 {
		return false, nil
	}
	// Record and holder are of one commit: the cache shows who has the value, or had.
	if err := s.o.Hub.Wait(ctx, rec.Revision); err != nil {
		return false, err
	}
	if rec.Value == nil {
		return s.allocators[t.GroupResource()].taken(value), nil
	}
	name, uid, _ := strings.Cut(string(rec.Value), " ")
	r, key, ok := registry.ParseStorageKey(name)
	if !ok || r != t.GroupResource() {
		return false, nil
	}
	cache := s.o.Hub.Cache(r)
	if _, damaged := cache.DamagedAt(key); damaged {
		return true, nil
	}
	e := cache.Get(key)
	if e == nil {
		return false, nil
	}
	obj := Object(e, t.Storage)
	return obj.UID() == uid && slices.Contains(t.Pool.Held(obj), value), nil
}

// reservationsAtOnce is how many records ReserveHeld makes with one commit.
const reservationsAtOnce = 32

// ReserveHeld reserves what the objects of the store hold and is not reserved, as a
// store of an older release has it. Of several objects that hold one value the first
// one gets it.
func (s *Store) ReserveHeld(ctx context.Context) error {
	if len(s.allocators) == 0 {
		return nil
	}
	there := map[string]bool{}
	_, records, err := s.o.Backend.Scan(ctx, registry.ReservationPrefix, "", 0)
	if err != nil {
		return err
	}
	for rec, err := range records {
		if damaged := (*storage.DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return err
		}
		there[rec.Key] = true
	}
	var missing []storage.Write
	for r := range s.allocators {
		t := s.o.Types().Type(r)
		for _, e := range s.o.Hub.Cache(r).List(watch.Query{}, "", 0).Entries {
			obj := Object(e, t.Storage)
			for _, value := range held(t, obj) {
				key := registry.ReservationKey(r, value)
				if !there[key] {
					missing = append(missing, storage.Write{Key: key, Value: []byte(holder(t, e.Key(), obj))})
				}
				there[key] = true
			}
		}
	}
	for ws := range slices.Chunk(missing, reservationsAtOnce) {
		if err := s.reserve(ctx, ws); err != nil {
			return fmt.Errorf("reserving what objects hold: %w", err)
		}
	}
	return nil
}

// reserve makes records, but not those that another server made meanwhile.
func (s *Store) reserve(ctx context.Context, ws []storage.Write) error {
	_, err := s.o.Backend.Commit(ctx, ws...)
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, w := range ws {
		if _, err := s.o.Backend.Commit(ctx, w); err != nil && !errors.As(err, &conflict) {
			return err
		}
	}
	return nil
}
