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

// Each value that an object holds as its own, of a registry.Pool or of a unique field,
// is reserved by a record of its own, which is written and removed by the commits of
// the object: two servers over one store do not give a value twice, whatever they
// believe is free. The record says who holds the value, by storage key and uid. One
// whose holder does not hold it, as another program may have left it, is nobody's.

// reservations returns what is to be committed with a write of obj: that what it rests on, by
// the word of admission or as its definition, is as it was, its place in a sequence, what is
// reserved for what it comes to hold, then what is given back. A *storage.ConflictError says
// that somebody else holds a value that obj holds; who tries again sees it.
func (s *Store) reservations(ctx context.Context, a *attempt, obj *meta.Object) ([]storage.Write, error) {
	t := a.Version.Type
	ws, err := a.bases()
	if err != nil {
		return nil, err
	}
	ws = slices.Concat(ws, a.fence(), a.serial, a.definition)
	for _, claim := range a.added() {
		rec, err := s.reservation(ctx, t, claim)
		if err != nil {
			return nil, err
		}
		key, holds, err := s.holderOf(ctx, s.allocators[t.GroupResource()], claim, rec)
		if err != nil {
			return nil, err
		}
		if _, damaged := s.o.Hub.Cache(t.GroupResource()).DamagedAt(key); damaged && holds {
			a.unseenClaims = append(a.unseenClaims, claim)
		}
		if holds {
			return nil, &storage.ConflictError{Key: rec.Key} // it may have been given back since: who looks again asks
		}
		ws = append(ws, storage.Write{Key: rec.Key, Value: []byte(holder(t, a.Key, obj)), Expect: rec.Revision})
	}
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

// without returns the claims that are not among others; both are in order.
func without(claims, others []string) (rest []string) {
	for _, c := range claims {
		if _, found := slices.BinarySearch(others, c); !found {
			rest = append(rest, c)
		}
	}
	return rest
}

// What a commit of objects may have, with what it may have for a term.
const (
	commitLength = storage.CommitLength - 1
	commitBytes  = storage.CommitBytes - termBytes
)

// reservable is the most values that a write can reserve, with what it writes itself and
// what it only compares.
const reservable = commitLength - 1 - 4

// checkReservable refuses a write that reserves more than every store commits at once.
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

// withReservations divides what belongs to a write into what is committed with it and
// what may be committed after it. The former has everything that is reserved, which
// fits, see checkReservable; what is not given back at once is nobody's.
func withReservations(w storage.Write, reserved []storage.Write) (now, later []storage.Write) {
	now = append(make([]storage.Write, 0, 1+len(reserved)), w)
	size := len(w.Key)
	for _, r := range reserved {
		size += len(r.Key) + len(r.Value)
		if r.Value == nil && (len(now) == commitLength || size > commitBytes) {
			later = append(later, r)
			continue
		}
		now = append(now, r)
	}
	return now, later
}

// reservation returns the record of a claim, see mark.
func (s *Store) reservation(ctx context.Context, t *resource.Type, claim string) (storage.Record, error) {
	return s.mark(ctx, resource.ReservationKey(t.GroupResource(), claim))
}

// mark returns a record that is written over whatever it says: without a revision if there is
// none, and without a value if it cannot be read.
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

// holderOf returns who holds the value of a reservation, as far as that is known, and
// whether he holds it.
func (s *Store) holderOf(ctx context.Context, p *allocator, claim string, rec storage.Record) (by meta.Key, holds bool, err error) {
	if rec.Revision == 0 {
		return by, false, nil
	}
	// Record and holder are of one commit: the cache shows who has the value, or had.
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

// reservationsAtOnce is how many records ReserveHeld makes with one commit.
const reservationsAtOnce = 32

// ReserveHeld reserves what the objects of the store hold and is not reserved, as a
// store of an older release has it, or one that was filled before a field became
// unique. Of several objects that hold one value the first one gets it; the log tells
// of the others. What is nobody's, as a server leaves it that ends in the middle of a deletion
// or an administrator who deletes what cannot be read, goes, and goes first: it takes no room.
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
		nobodys, err := s.nobodys(ctx, rec)
		if err != nil {
			return err
		}
		if nobodys {
			left = append(left, storage.Write{Key: key, Expect: rec.Revision})
		}
	}
	for _, all := range [][]storage.Write{left, lacking} {
		for ws := range slices.Chunk(all, reservationsAtOnce) {
			if err := s.commitEach(ctx, ws); err != nil {
				return fmt.Errorf("reserving what objects hold: %w", err)
			}
		}
	}
	return nil
}

// nobodys reports whether a reservation is that of no object. One of a type that has nothing to
// reserve here may be that of another release, as long as its holder is there.
func (s *Store) nobodys(ctx context.Context, rec storage.Record) (bool, error) {
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
	return err == nil && there != uid, nil // one that cannot be read may be its holder
}

// allReservations returns the records of all reservations, by key; the caches show
// what they speak of.
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

// unreserved returns the reservations that an object lacks, and notes them among
// those that are there, and what it holds.
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
			s.o.Log.Warn("two objects hold a value that only one may hold; neither was changed", "resource", p.t.GroupResource(),
				"value", claim, "first", other, "other", e.Key())
			continue
		}
		missing = append(missing, storage.Write{Key: key, Value: []byte(by), Expect: rec.Revision})
		there[key] = storage.Record{Key: key, Value: []byte(by), Revision: cmp.Or(rec.Revision, e.Revision())}
	}
	return missing, nil
}

// commitEach makes writes, but not those of records that another server changed
// meanwhile.
func (s *Store) commitEach(ctx context.Context, ws []storage.Write) error {
	_, err := s.backend.Commit(ctx, ws...)
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, w := range ws {
		if _, err := s.backend.Commit(ctx, w); err != nil && !errors.As(err, &conflict) {
			return err
		}
	}
	return nil
}
