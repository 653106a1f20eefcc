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

// Migration is the progress of the migration of a type.
type Migration struct {
	Resource  meta.GroupResource
	Done      int           // objects that were processed
	Total     int           // objects that existed when the migration began, or Done if that is larger
	Rewritten int           // objects of Done that were stored again
	Kept      int           // objects of Done with unshown data, that cannot be read, or that would be too large
	Rate      float64       // objects per second; 0: not known yet
	Left      time.Duration // time until the end at that rate; 0: not known
}

// String returns the progress in one line, in the format of the backup commands.
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

// meter updates Rate and Left of a migration that began at begun.
func (m *Migration) meter(begun time.Time) {
	took := time.Since(begun)
	if took <= 0 || m.Done == 0 {
		return
	}
	m.Total = max(m.Total, m.Done) // objects were created meanwhile
	m.Rate = float64(m.Done) / took.Seconds()
	m.Left = time.Duration(float64(m.Total-m.Done) / m.Rate * float64(time.Second))
}

// migrationPage is the number of objects between two progress reports.
const migrationPage = 500

// Migrate rewrites every object of a type that is not stored in the current storage version and shape. It can be
// repeated: a second call skips the objects that are up to date. Objects do not change otherwise, and admission does
// not run. Other writers may store objects during the migration, each as its own release does, so run Migrate when no
// other release writes to the store. progress is called after each page.
func (s *Store) Migrate(ctx context.Context, t *resource.Type, progress func(Migration)) (Migration, error) {
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
		if _, err := InVersion(ctx, page.Entries, t.Hub); err != nil { // in batches; the entries keep the result
			return m, err
		}
		for _, e := range page.Entries {
			rewritten, kept, err := s.rewrite(ctx, t, e)
			if err != nil {
				return m, err
			}
			m.Done++
			m.Rewritten += boolToInt(rewritten)
			m.Kept += boolToInt(kept)
		}
		start, more = page.Next, page.Next != ""
		m.meter(begun)
		progress(m)
	}
	return m, nil
}

func boolToInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// rewrite stores an object in the current version and shape, unless it is already stored so. It retries if the object
// or its definition changes meanwhile. kept reports whether the record keeps unshown data, or could not be rewritten.
func (s *Store) rewrite(ctx context.Context, t *resource.Type, e *objectcache.Entry) (rewritten, kept bool, err error) {
	for tries := 1; e != nil; tries++ {
		rewritten, kept, err = s.tryRewrite(ctx, t, e)
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

// tryRewrite is one attempt of rewrite.
func (s *Store) tryRewrite(ctx context.Context, t *resource.Type, e *objectcache.Entry) (rewritten, kept bool, err error) {
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
		s.o.Log.Warn("object not migrated: it would be too large in the current storage version", "key", key)
		return false, true, nil
	}
	return err == nil, kept, err
}

// outdated reports whether a write of object, which is in the hub version, would change its record, and whether the
// record has unshown data. If the record is not at revision rev any more, the error is a *storage.ConflictError or
// storage.ErrNotFound.
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
		return false, true, nil // it cannot be read any more
	}
	record, err := r.record(ctx, k, key, object, rec.Value)
	if anew, signed := unsign(record); signed == nil { // a record with unshown data is not signed again, so the old signature does not matter
		return !bytes.Equal(stored, anew), read.hasUnshown, err
	}
	return !bytes.Equal(rec.Value, record), read.hasUnshown, err
}
