package sqlstore

import (
	"context"

	"orch.io/controlplane/storage"
)

// Listen calls heard with what a database tells of commits, and never looks by itself.
func Listen(ctx context.Context, o Options, heard func(storage.Revision)) error {
	d, err := o.dialect()
	if err != nil {
		return err
	}
	return d.listen(ctx, heard)
}

// Passing reports whether a store tries again what failed with an error.
func Passing(o Options, err error) bool {
	d, bad := o.dialect()
	return bad == nil && d.passing(err)
}

// ImportOutcome is what is told of an import whose commit the database did not answer.
func ImportOutcome(ctx context.Context, s *Store, oldest, newest storage.Revision) error {
	in := &importing{store: s, oldest: oldest, newest: newest}
	return in.outcome(ctx, errUnknown)
}
