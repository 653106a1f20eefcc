// Package migration rewrites stored objects in the storage version of their kind.
package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/definitions"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
)

// Options configure a Migrator.
type Options struct {
	Names   names.Profile
	Catalog *definitions.Catalog
	Objects *objects.Store
	Hub     *objectcache.Set // its revision is recorded in the status of a migration
	Client  *objects.Client
	Log     *slog.Logger
}

// Migrator runs migrations, of which only one runs at a time. Its methods may be called
// concurrently.
type Migrator struct {
	o       Options
	running chan struct{} // holds an element while a migration runs
}

// New returns a Migrator.
func New(o Options) *Migrator { return &Migrator{o, make(chan struct{}, 1)} }

// Migrate rewrites the objects of all served types. It calls progress, if it is not nil, every few
// hundred objects and at the end of each type. If a type fails, Migrate continues with the others
// and returns the joined errors.
func (m *Migrator) Migrate(ctx context.Context, progress func(objects.Migration)) error {
	end, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	var errs []error
	for _, t := range m.o.Catalog.Types().Types() {
		if err := m.migrate(ctx, t, progress); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.GroupResource(), err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// begin waits until no other migration runs. The caller must call end after its migration.
func (m *Migrator) begin(ctx context.Context) (end func(), err error) {
	select {
	case m.running <- struct{}{}:
		return func() { <-m.running }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// migrate rewrites the objects of a type.
func (m *Migrator) migrate(ctx context.Context, t *resource.Type, progress func(objects.Migration)) error {
	done, err := m.o.Objects.Migrate(ctx, t, func(p objects.Migration) {
		if progress != nil {
			progress(p)
		}
	})
	if done.Rewritten+done.Kept > 0 {
		m.o.Log.Info("migrated stored objects", "resource", done.Resource, "objects", done.Total, "rewritten", done.Rewritten, "kept", done.Kept)
	}
	if err != nil || done.Kept > 0 || !t.Defined() {
		return err
	}
	return m.setStoredVersion(ctx, t)
}

// setStoredVersion records in the definition of a type that its objects are stored in the storage
// version only. A server that has an older state of the definition stores them in this version,
// too, see objects.Store. The server makes the write itself because the role of the migration
// controller only permits patches of definitions.
func (m *Migrator) setStoredVersion(ctx context.Context, t *resource.Type) error {
	ctx = actor.AsServer(ctx)
	changed := errors.New("the definition changed meanwhile, so objects may be stored in several versions again")
	_, err := m.o.Client.Update(ctx, m.o.Catalog.Resource(), meta.Key{Name: t.GroupResource().String()}, "status", func(o *meta.Object) error {
		if o.UID() != t.Origin.UID || o.Generation() != t.Origin.Generation {
			return changed
		}
		o.Set([]any{t.Storage.Name}, "status", "storedVersions")
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}
