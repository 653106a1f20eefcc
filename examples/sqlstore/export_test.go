package sqlstore

import (
	"context"

	"orch.io/controlplane/storage"
)

// Listen calls heard with the notifications of a database.
func Listen(ctx context.Context, o Options, heard func(storage.Revision)) error {
	d, err := o.dialect()
	if err != nil {
		return err
	}
	return d.listen(ctx, heard)
}

// Passing reports whether a store retries an operation that failed with err.
func Passing(o Options, err error) bool {
	d, bad := o.dialect()
	return bad == nil && d.retryable(err)
}

// ImportOutcome returns the error of an import whose commit the database did not answer.
func ImportOutcome(ctx context.Context, s *Store, oldest, newest storage.Revision) error {
	in := &importing{store: s, oldest: oldest, newest: newest}
	return in.outcome(ctx, errUnknown)
}

// Show makes a store expect the commits from 1 to last, with IDs equal to their revisions, as if that
// many statements had run concurrently.
func Show(s *Store, last storage.Revision) {
	var shown marks
	for n := storage.Revision(1); n <= last; n++ {
		shown = append(shown, mark{n, int64(n)})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = shown
}

// Shown returns the number of commits that the next statement of a store must find.
func Shown(s *Store) int { return len(s.seen()) }
