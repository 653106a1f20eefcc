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

// Each unique value of an object, of a registry.Allocator or of a unique field, is reserved by a record of its own. The
// record names the holder by storage key and uid. Commits of the holder write and delete it, so two servers that
// share a store never give a value to two objects, whatever their caches show. A record reserves nothing if its
// holder does not have the value, for example because another program wrote it.

// reserve adds a precondition for each value that obj begins to hold: the reservation is unchanged, and the commit
// sets its holder to obj. If another object holds the value, the error is a *storage.ConflictError, because the value
// may be free when the write is retried. If it is not, the validation of the retry reports it.
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

// releases returns the deletions of the reservations of the values that obj no longer holds.
func (s *Store) releases(ctx context.Context, a *attempt, obj *meta.Object) (ws []storage.Write, err error) {
	t := a.Version.Type
	for _, claim := range difference(a.held, a.claims) {
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

// difference returns the claims that are not in others. Both slices must be sorted.
func difference(claims, others []string) (rest []string) {
	for _, c := range claims {
		if _, found := slices.BinarySearch(others, c); !found {
			rest = append(rest, c)
		}
	}
	return rest
}

// Limits of a commit, without its LeaderFence.
const (
	commitLength = storage.CommitLength - 1
	commitBytes  = storage.CommitBytes - leaderFenceBytes
)

// reservable is the largest number of values that a write can reserve. The remaining places in the commit are for the
// object and up to four other preconditions.
const reservable = commitLength - 1 - 4

// checkReservable returns an error if a write reserves more values than every backend can commit together.
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
	return meta.TooLarge("%s %q cannot be stored: one write would reserve %d values in %d bytes: limit is %d values in %d bytes",
		t.Kind, obj.Name(), len(claims), size, reservable, commitBytes)
}

// holder returns the value of a reservation.
func holder(t *resource.Type, key meta.Key, obj *meta.Object) string {
	return t.StorageKey(key) + " " + obj.UID()
}

// parseHolder parses the value of a reservation.
func parseHolder(text string) (r meta.GroupResource, key meta.Key, uid string, ok bool) {
	i := strings.LastIndexByte(text, ' ') // a name may contain spaces
	if i < 0 {
		return r, key, "", false
	}
	r, key, ok = resource.ParseStorageKey(text[:i])
	return r, key, text[i+1:], ok
}

// divide returns the writes to commit together with the preconditions, and the releases that exceed the limits of a
// commit. Reservations always fit, see checkReservable. A release may be committed later, because a reservation has
// no effect if its holder does not have the value.
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

// reservation returns the reservation of a claim, like currentRecord.
func (s *Store) reservation(ctx context.Context, t *resource.Type, claim string) (storage.Record, error) {
	return s.currentRecord(ctx, resource.ReservationKey(t.GroupResource(), claim))
}

// currentRecord returns a record in order to replace it. If the record does not exist, its revision is 0. If it
// cannot be read, its value is nil.
func (s *Store) currentRecord(ctx context.Context, key string) (storage.Record, error) {
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

// holderOf returns the key of the object that a reservation names, if it is known, and reports whether that object
// holds the value.
func (s *Store) holderOf(ctx context.Context, p *allocator, claim string, rec storage.Record) (by meta.Key, holds bool, err error) {
	if rec.Revision == 0 {
		return by, false, nil
	}
	// One commit wrote the record and its holder. So the cache now shows the holder, or that it was deleted.
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

// reservationsAtOnce is the number of records that ReserveHeld and the sweeps write in one commit.
const reservationsAtOnce = 32

// ReserveHeld adds the missing reservations of the values that stored objects hold. They are missing if an older
// release stored the objects, or if a field became unique later. If several objects hold the same value, ReserveHeld
// reserves it for the first object that it finds, and logs the others. Before that, to make room, it deletes orphaned
// reservations. These are left by a server that is killed during a deletion, or when an administrator deletes an
// unreadable object.
func (s *Store) ReserveHeld(ctx context.Context) error {
	reserved, err := s.allReservations(ctx)
	if err != nil {
		return err
	}
	var missing, orphans []storage.Write
	held := map[string]bool{}
	for r, p := range s.allocators {
		for _, e := range s.o.Hub.Cache(r).List(objectcache.Query{}, "", 0).Entries {
			lacking, err := s.unreserved(ctx, p, e, reserved, held)
			if err != nil {
				return err
			}
			missing = append(missing, lacking...)
		}
	}
	for key, rec := range reserved {
		if held[key] {
			continue
		}
		orphaned, err := s.orphaned(ctx, rec)
		if err != nil {
			return err
		}
		if orphaned {
			orphans = append(orphans, storage.Write{Key: key, Expect: rec.Revision})
		}
	}
	for _, all := range [][]storage.Write{orphans, missing} {
		for ws := range slices.Chunk(all, reservationsAtOnce) {
			if err := s.commitEach(ctx, ws); err != nil {
				return fmt.Errorf("reserving unique values: %w", err)
			}
		}
	}
	return nil
}

// orphaned reports whether no object holds the value of a reservation. If the type has no unique values in this
// release, another release may use the reservation as long as its holder exists.
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
	stored, err := s.UID(ctx, of, key)
	return err == nil && stored != uid, nil // an unreadable object may be the holder
}

// allReservations returns all reservations by key. When it returns, the caches show the holders.
func (s *Store) allReservations(ctx context.Context) (map[string]storage.Record, error) {
	at, records, err := s.backend.Scan(ctx, resource.ReservationPrefix, "", 0)
	if err != nil {
		return nil, err
	}
	stored := map[string]storage.Record{}
	for rec, err := range records {
		if damaged := (*storage.DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return nil, err
		}
		stored[rec.Key] = rec
	}
	return stored, s.o.Hub.Wait(ctx, at)
}

// unreserved returns the missing reservations of an object. It adds them to reserved, and the keys of all
// reservations that the object needs to held.
func (s *Store) unreserved(ctx context.Context, p *allocator, e *objectcache.Entry, reserved map[string]storage.Record, held map[string]bool) (missing []storage.Write, err error) {
	obj, err := Object(ctx, e, p.t.Hub)
	if err != nil {
		return nil, err
	}
	by := holder(p.t, e.Key(), obj)
	for _, claim := range p.claims(obj) {
		key := resource.ReservationKey(p.t.GroupResource(), claim)
		held[key] = true
		rec := reserved[key]
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
		reserved[key] = storage.Record{Key: key, Value: []byte(by), Revision: cmp.Or(rec.Revision, e.Revision())}
	}
	return missing, nil
}
