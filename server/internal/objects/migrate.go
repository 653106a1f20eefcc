package objects

import (
	"bytes"
	"context"
	"errors"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// Migration is how far the migration of a type is.
type Migration struct {
	Resource  meta.GroupResource
	Done      int // objects that were looked at
	Total     int // objects there were when it began
	Rewritten int // of Done, stored anew
	Kept      int // of Done, that hold what the kind cannot show, or cannot be read
}

// migrationPage is how many objects are looked at between two words about it.
const migrationPage = 500

// Migrate stores every object of a type as writes store them now, in today's version and shape,
// unless it is stored so already; so it goes on where another one ended. Nobody
// is asked about it, and no object says anything else afterwards. When all is done and
// nothing was kept, the store is told. What others write meanwhile, they store
// in their own way: Migrate is for when no other release writes any more.
func (s *Store) Migrate(ctx context.Context, t *resource.Type, tell func(Migration)) (Migration, error) {
	m := Migration{Resource: t.GroupResource()}
	if t.Virtual {
		return m, nil
	}
	said, _, err := readWords(ctx, s.o.Records.Backend, 0)
	if err != nil {
		return m, err
	}
	if err := s.CatchUp(ctx); err != nil {
		return m, err
	}
	cache := s.o.Hub.Cache(t.GroupResource())
	m.Kept = len(cache.Damaged(""))
	m.Total = cache.Len() + m.Kept
	m.Done = m.Kept
	for start, more := "", true; more; {
		page := cache.List(watch.Query{}, start, migrationPage)
		entries, err := InVersion(ctx, page.Entries, t.Hub)
		if err != nil {
			return m, err
		}
		for i, e := range entries {
			if err := s.migrate(ctx, t, e, page.Entries[i], &m); err != nil {
				return m, err
			}
		}
		start, more = page.Next, page.Next != ""
		tell(m)
	}
	if m.Kept > 0 {
		return m, nil
	}
	return m, s.o.Records.migrated(ctx, t, said)
}

// migrate stores one object anew if it has to be. now is how the hub shows it.
func (s *Store) migrate(ctx context.Context, t *resource.Type, now, e *watch.Entry, m *Migration) error {
	m.Done++
	obj, err := Object(ctx, now, t.Hub)
	if err != nil {
		return err
	}
	key, value := t.StorageKey(e.Key()), s.encodeStored(obj)
	var old, kept bool
	if t.ConformOnRead {
		old = !bytes.Equal(value, s.encodeStored(e.Object()))
	} else if old, kept, err = s.o.Records.outdated(ctx, key, e.Revision(), value); err != nil {
		return err
	}
	if kept {
		m.Kept++
	}
	if !old {
		return nil
	}
	_, err = s.commit(ctx, storage.Write{Key: key, Value: value, Expect: e.Revision()})
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) || errors.Is(err, storage.ErrNotFound) {
		return nil // it was written, or is gone
	}
	if err == nil {
		m.Rewritten++
	}
	return err
}

// outdated reports whether the record of an object, which has a revision, would be another
// if it was written now, and whether that keeps something that is not shown.
func (r *Records) outdated(ctx context.Context, key string, rev storage.Revision, value []byte) (old, kept bool, err error) {
	k := r.kindOf(key)
	if k == nil || !k.looks() {
		return false, false, nil
	}
	rec, err := r.Backend.Get(ctx, key, 0)
	if errors.Is(err, storage.ErrNotFound) || err == nil && rec.Revision != rev {
		return false, false, nil // it was written, or is gone
	}
	if err != nil {
		return false, false, err
	}
	if k.mixed.Load() {
		_, unshown, err := k.inHub(ctx, rec.Value, true)
		if err != nil {
			return false, true, nil // it cannot be read by now
		}
		kept = unshown.Any()
	}
	return !bytes.Equal(rec.Value, r.stored(ctx, k, key, value, rec.Value)), kept, nil
}

// migrated says that all records of a type are of its shape, unless another release came
// since the store said what it did.
func (r *Records) migrated(ctx context.Context, t *resource.Type, then words) error {
	one := r.by[t.GroupResource()]
	if one == nil {
		return nil
	}
	return r.kinds.say(ctx, r.Backend, func(k *kind, w word) word {
		if k == one {
			return wholeSince(k, w, then[k.String()])
		}
		return claims(k, w)
	})
}
