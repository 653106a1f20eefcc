package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Migration is how far the migration of a type is.
type Migration struct {
	Resource  meta.GroupResource
	Done      int           // objects that were looked at
	Total     int           // objects there were when it began
	Rewritten int           // of Done, stored anew
	Kept      int           // of Done, that hold what the kind cannot show, cannot be read, or would be too large
	Rate      float64       // objects a second, 0 until it is known
	Left      time.Duration // time until the end at that rate, 0 if it is not known
}

// String returns the figures in one line, in the form of the backup commands.
func (m Migration) String() string {
	text := fmt.Sprintf("%d of %d objects", m.Done, m.Total)
	if m.Total > 0 {
		text += fmt.Sprintf(" (%d%%)", 100*m.Done/m.Total)
	}
	if m.Rate > 0 {
		text += fmt.Sprintf(", %.0f/s", m.Rate)
	}
	if m.Left > 0 {
		text += fmt.Sprintf(", %s left", m.Left.Round(time.Second))
	}
	return text
}

// meter sets Rate and Left for a migration that began at begun.
func (m *Migration) meter(begun time.Time) {
	took := time.Since(begun)
	if took <= 0 || m.Done == 0 {
		return
	}
	m.Total = max(m.Total, m.Done) // objects were created meanwhile
	m.Rate = float64(m.Done) / took.Seconds()
	m.Left = time.Duration(float64(m.Total-m.Done) / m.Rate * float64(time.Second))
}

// migrationPage is how many objects are looked at between two words about it.
const migrationPage = 500

// Migrate stores every object of a type as writes store them now, in today's version and shape,
// unless it is stored so already; so it goes on where another one ended. Nobody
// is asked about it, and no object says anything else afterwards. What others write
// meanwhile, they store in their own way: Migrate is for when no other release writes any
// more.
func (s *Store) Migrate(ctx context.Context, t *resource.Type, tell func(Migration)) (Migration, error) {
	m := Migration{Resource: t.GroupResource()}
	if t.Virtual {
		return m, nil
	}
	ctx = consistency.WithoutReadIndex(ctx) // a migration outlasts the request that starts it
	if err := s.CatchUp(ctx); err != nil {
		return m, err
	}
	begun := time.Now()
	cache := s.o.Hub.Cache(t.GroupResource())
	m.Kept = len(cache.Damaged(""))
	m.Total = cache.Len() + m.Kept
	m.Done = m.Kept
	for start, more := "", true; more; {
		page := cache.List(objectcache.Query{}, start, migrationPage)
		if _, err := InVersion(ctx, page.Entries, t.Hub); err != nil { // which the entries keep
			return m, err
		}
		for _, e := range page.Entries {
			rewritten, kept, err := s.storeAnew(ctx, t, e)
			if err != nil {
				return m, err
			}
			m.Done++
			m.Rewritten += count(rewritten)
			m.Kept += count(kept)
		}
		start, more = page.Next, page.Next != ""
		m.meter(begun)
		tell(m)
	}
	return m, nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// storeAnew stores an object as the type stores objects now, unless it is, however it
// or its definition changes meanwhile. kept is whether its record holds more than the type
// shows.
func (s *Store) storeAnew(ctx context.Context, t *resource.Type, e *objectcache.Entry) (rewritten, kept bool, err error) {
	for tries := 1; e != nil; tries++ {
		rewritten, kept, err = s.tryStoreAnew(ctx, t, e)
		var conflict *storage.ConflictError
		switch now := s.current(t); {
		case errors.As(err, &conflict) || errors.Is(err, storage.ErrNotFound):
			err = pause(ctx, tries)
		case err != nil || now.Storage.Name == t.Storage.Name:
			return rewritten, kept, err
		default:
			t = now
		}
		if err != nil {
			return false, false, err
		}
		e, err = s.Live(ctx, t, e.Key())
		if unreadable := (*client.UnreadableError)(nil); errors.As(err, &unreadable) {
			return false, true, nil
		}
		if err != nil {
			return false, false, err
		}
	}
	return false, false, nil
}

func (s *Store) tryStoreAnew(ctx context.Context, t *resource.Type, e *objectcache.Entry) (rewritten, kept bool, err error) {
	obj, err := Object(ctx, e, t.Hub)
	if err != nil {
		return false, false, err
	}
	key, value := t.StorageKey(e.Key()), s.encodeStored(obj)
	var old bool
	if t.ConformOnRead {
		old = !bytes.Equal(value, s.encodeStored(e.Object()))
	} else if old, kept, err = s.o.Records.outdated(ctx, key, e.Revision(), value); err != nil {
		return false, false, err
	}
	if !old {
		return false, kept, nil
	}
	_, err = s.commit(ctx, storage.Write{Key: key, Value: value, Expect: e.Revision()}, nil, nil)
	if errors.Is(err, storage.ErrTooLarge) {
		s.o.Log.Warn("an object stays stored as it is, since it would be too large as objects are stored now", "key", key)
		return false, true, nil
	}
	return err == nil, kept, err
}

// outdated reports whether the record of an object, which has a revision, would be another
// if it was written now, and whether that keeps something that is not shown. That there is
// none of that revision any more is a *storage.ConflictError, or storage.ErrNotFound.
func (r *Records) outdated(ctx context.Context, key string, rev storage.Revision, object []byte) (old, kept bool, err error) {
	k := r.kindOf(key)
	if k == nil {
		return false, false, nil
	}
	rec, err := r.Backend.Get(ctx, key, 0)
	if err == nil {
		err = storage.Write{Key: key, Expect: rev}.Check(rec)
	}
	if err != nil {
		return false, false, err
	}
	stored, shape := unsign(rec.Value)
	read, err := k.read(ctx, stored, string(shape) == k.shape)
	if err != nil {
		return false, true, nil // it cannot be read by now
	}
	record, err := r.record(ctx, k, key, object, rec.Value)
	if anew, signed := unsign(record); signed == nil { // what it holds more was signed by another release
		return !bytes.Equal(stored, anew), read.more, err
	}
	return !bytes.Equal(rec.Value, record), read.more, err
}
