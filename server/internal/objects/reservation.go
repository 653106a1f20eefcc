package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Each value that an object holds alone, of a registry.Allocator or of a unique field, is reserved by a record of its
// own. The record names the holder by storage key and uid, and is written and removed by commits of the holder, so
// that two servers over one store never give a value to two objects, whatever their caches show. A record whose
// holder does not hold the value, as another program may leave it, reserves nothing.

// reserve adds a precondition for each value that obj begins to hold: its record is as it was found, and names obj
// after the commit. If another object holds the value, the error is a *storage.ConflictError, because the value may
// be free when the write is retried; the validation of the retry reports a value that is not.
func (s *Store) reserve(ctx context.Context, a *attempt, obj *meta.Object) error {
	t := a.Version.Type
	for _, claim := range a.added() {
		rec, err := s.reservation(ctx, t, claim)
		if err != nil {
			return err
		}
		key, holds, err := s.holderOf(ctx, s.allocators[t.GroupResource()], claim, rec)
		if err != nil {
			return err
		}
		if _, damaged := s.o.Hub.Cache(t.GroupResource()).DamagedAt(key); damaged && holds {
			a.unseenClaims = append(a.unseenClaims, claim)
		}
		if holds {
			return &storage.ConflictError{Key: rec.Key}
		}
		reserved := storage.Write{Key: rec.Key, Value: []byte(holder(t, a.Key, obj)), Expect: rec.Revision}
		a.require(&precondition{Write: reserved, reason: becauseUnique})
	}
	return nil
}

// releases returns the removal of the records of the values that obj does not hold any more.
func (s *Store) releases(ctx context.Context, a *attempt, obj *meta.Object) (ws []storage.Write, err error) {
	t := a.Version.Type
	for _, claim := range without(a.held, a.claims) {
		rec, err := s.reservation(ctx, t, claim)
		if err != nil {
			return nil, err
		}
		if rec.Revision != 0 && string(rec.Value) == holder(t, a.Key, obj) {
			ws = append(ws, storage.Write{Key: rec.Key, Expect: rec.Revision})
		}
	}
	return ws, nil
}

// without returns the claims that are not among others. Both are sorted.
func without(claims, others []string) (rest []string) {
	for _, c := range claims {
		if _, found := slices.BinarySearch(others, c); !found {
			rest = append(rest, c)
		}
	}
	return rest
}

// Bounds of a commit, less what a LeaderFence takes.
const (
	commitLength = storage.CommitLength - 1
	commitBytes  = storage.CommitBytes - leaderFenceBytes
)

// reservable is the largest number of values that a write can reserve. The rest is for the write itself and its
// other preconditions.
const reservable = commitLength - 1 - 4

// checkReservable refuses a write that reserves more values than every backend commits together.
func checkReservable(a *attempt, obj *meta.Object) error {
	t := a.Version.Type
	claims := a.added()
	size := len(t.StorageKey(a.Key))
	for _, c := range claims {
		size += len(resource.ReservationKey(t.GroupResource(), c)) + len(holder(t, a.Key, obj))
	}
	if len(claims) <= reservable && size <= commitBytes {
		return nil
	}
	return meta.TooLarge("%s %q cannot be kept: one write would reserve %d values in %d bytes: limit is %d values in %d bytes",
		t.Kind, obj.Name(), len(claims), size, reservable, commitBytes)
}

func holder(t *resource.Type, key meta.Key, obj *meta.Object) string {
	return t.StorageKey(key) + " " + obj.UID()
}

// parseHolder is the inverse of holder.
func parseHolder(text string) (r meta.GroupResource, key meta.Key, uid string, ok bool) {
	i := strings.LastIndexByte(text, ' ') // the name may have spaces, too
	if i < 0 {
		return r, key, "", false
	}
	r, key, ok = resource.ParseStorageKey(text[:i])
	return r, key, text[i+1:], ok
}

// divide returns the writes to commit together with the preconditions, and the releases for which there is no room
// beside them. What is reserved fits, see checkReservable. A reservation that is not removed reserves nothing.
func divide(w storage.Write, required []*precondition, released []storage.Write) (together, later []storage.Write) {
	length, size := 1+len(required), len(w.Key)
	for _, p := range required {
		size += len(p.Key) + len(p.Value)
	}
	together = append(make([]storage.Write, 0, 1+len(required)+len(released)), w)
	for _, r := range released {
		if size += len(r.Key); length == commitLength || size > commitBytes {
			later = append(later, r)
			continue
		}
		together = append(together, r)
		length++
	}
	return together, later
}

// reservation returns the record of a claim as mark does.
func (s *Store) reservation(ctx context.Context, t *resource.Type, claim string) (storage.Record, error) {
	return s.mark(ctx, resource.ReservationKey(t.GroupResource(), claim))
}

// mark returns a record to be replaced whatever its value is: with revision 0 if it does not exist, and without a
// value if it cannot be read.
func (s *Store) mark(ctx context.Context, key string) (storage.Record, error) {
	rec, err := s.backend.Get(ctx, key, 0)
	var damaged *storage.DamagedError
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return storage.Record{Key: key}, nil
	case errors.As(err, &damaged):
		return storage.Record{Key: key, Revision: damaged.Revision}, nil
	}
	return rec, err
}

// holderOf returns the key of the object that a reservation names, as far as it is known, and reports whether that
// object holds the value.
func (s *Store) holderOf(ctx context.Context, p *allocator, claim string, rec storage.Record) (by meta.Key, holds bool, err error) {
	if rec.Revision == 0 {
		return by, false, nil
	}
	// The record and its holder were written by one commit, so the cache shows the holder, or that it is gone.
	if err := s.o.Hub.Wait(ctx, rec.Revision); err != nil {
		return by, false, err
	}
	if rec.Value == nil {
		return by, p.heldByOthers(claim, by), nil
	}
	r, key, uid, ok := parseHolder(string(rec.Value))
	if !ok || r != p.t.GroupResource() {
		return by, false, nil
	}
	cache := s.o.Hub.Cache(r)
	if _, damaged := cache.DamagedAt(key); damaged {
		return key, true, nil
	}
	e := cache.Get(key)
	if e == nil {
		return key, false, nil
	}
	obj, err := Object(ctx, e, p.t.Hub)
	if err != nil {
		return key, false, err
	}
	return key, obj.UID() == uid && slices.Contains(p.claims(obj), claim), nil
}

// reservationsAtOnce is how many records ReserveHeld writes with one commit.
const reservationsAtOnce = 32

// ReserveHeld reserves the values that objects of the store hold without a reservation, as an older release leaves
// them, or a store that was filled before a field became unique. If several objects hold one value, the first one
// gets it, and the others are logged. Orphaned reservations, as a server leaves that is killed during a deletion, or
// an administrator who deletes an unreadable object, are removed first, which makes room.
func (s *Store) ReserveHeld(ctx context.Context) error {
	there, err := s.allReservations(ctx)
	if err != nil {
		return err
	}
	var lacking, left []storage.Write
	held := map[string]bool{}
	for r, p := range s.allocators {
		for _, e := range s.o.Hub.Cache(r).List(objectcache.Query{}, "", 0).Entries {
			missing, err := s.unreserved(ctx, p, e, there, held)
			if err != nil {
				return err
			}
			lacking = append(lacking, missing...)
		}
	}
	for key, rec := range there {
		if held[key] {
			continue
		}
		orphaned, err := s.orphaned(ctx, rec)
		if err != nil {
			return err
		}
		if orphaned {
			left = append(left, storage.Write{Key: key, Expect: rec.Revision})
		}
	}
	for _, all := range [][]storage.Write{left, lacking} {
		for ws := range slices.Chunk(all, reservationsAtOnce) {
			if err := s.commitEach(ctx, ws); err != nil {
				return fmt.Errorf("reserving unique values: %w", err)
			}
		}
	}
	return nil
}

// orphaned reports whether no object holds the value of a reservation. A reservation of a type that reserves nothing
// in this release may be that of another release, as long as its holder exists.
func (s *Store) orphaned(ctx context.Context, rec storage.Record) (bool, error) {
	plural, claim, _ := strings.Cut(strings.TrimPrefix(rec.Key, resource.ReservationPrefix), "/")
	var r meta.GroupResource
	r.Resource, r.Group, _ = strings.Cut(plural, ".")
	if p := s.allocators[r]; p != nil {
		_, holds, err := s.holderOf(ctx, p, claim, rec)
		return !holds, err
	}
	of, key, uid, ok := parseHolder(string(rec.Value))
	if !ok {
		return rec.Value != nil && s.o.Types().Type(r) != nil, nil
	}
	there, err := s.UID(ctx, of, key)
	return err == nil && there != uid, nil // an unreadable object may be the holder
}

// allReservations returns the records of all reservations by key. The caches show the holders.
func (s *Store) allReservations(ctx context.Context) (map[string]storage.Record, error) {
	at, records, err := s.backend.Scan(ctx, resource.ReservationPrefix, "", 0)
	if err != nil {
		return nil, err
	}
	there := map[string]storage.Record{}
	for rec, err := range records {
		if damaged := (*storage.DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return nil, err
		}
		there[rec.Key] = rec
	}
	return there, s.o.Hub.Wait(ctx, at)
}

// unreserved returns the reservations that an object lacks. It adds them to there, and the keys of all that the
// object holds to held.
func (s *Store) unreserved(ctx context.Context, p *allocator, e *objectcache.Entry, there map[string]storage.Record, held map[string]bool) (missing []storage.Write, err error) {
	obj, err := Object(ctx, e, p.t.Hub)
	if err != nil {
		return nil, err
	}
	by := holder(p.t, e.Key(), obj)
	for _, claim := range p.claims(obj) {
		key := resource.ReservationKey(p.t.GroupResource(), claim)
		held[key] = true
		rec := there[key]
		if string(rec.Value) == by {
			continue
		}
		other, holds, err := s.holderOf(ctx, p, claim, rec)
		if err != nil {
			return nil, err
		}
		if holds && (rec.Value != nil || p.heldByOthers(claim, e.Key())) {
			s.o.Log.Warn("two objects hold the same unique value; neither was changed", "resource", p.t.GroupResource(),
				"value", claim, "first", other, "other", e.Key())
			continue
		}
		missing = append(missing, storage.Write{Key: key, Value: []byte(by), Expect: rec.Revision})
		there[key] = storage.Record{Key: key, Value: []byte(by), Revision: cmp.Or(rec.Revision, e.Revision())}
	}
	return missing, nil
}
