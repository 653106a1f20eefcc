package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objects"
)

// Migration is how far Server.Migrate is with one resource type.
type Migration struct {
	Resource  meta.GroupResource
	Done      int           // objects that were looked at
	Total     int           // objects there were when it began
	Rewritten int           // of Done, stored anew
	Kept      int           // of Done, that hold what the kind cannot show, cannot be read, or would be too large: they stay as they are
	Rate      float64       // objects a second, 0 until it is known
	Left      time.Duration // time until the end of this type at that rate, 0 if it is not known
}

// String returns the figures in one line, in the form that the commands for backups use.
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

// Migrate stores every object of the kinds that are served as a write would store it now: in the
// storage version of its kind, of today's shape. What is stored so already is left alone, so a Migrate that was
// broken off is simply called again. Objects say the same before and after; admission
// is not asked. progress, which may be nil, is told after some hundred objects and at
// the end of each type.
//
// When nothing was kept of a type its records are read as they are from then on, and
// a definition's status.storedVersions is its storage version alone. Call Migrate when all
// servers over the store are of this release and nobody wants to go back to an earlier one,
// which may not know the version that is stored then.
//
// One migration runs at a time; others wait for it. The error joins those of the types;
// others are migrated all the same.
func (s *Server) Migrate(ctx context.Context, progress func(Migration)) error {
	end, err := s.beginMigration(ctx)
	if err != nil {
		return err
	}
	defer end()
	var faults []error
	for _, t := range s.types().Types() {
		if err := s.migrate(ctx, t, progress); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", t.GroupResource(), err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(faults...)
}

// beginMigration waits until no other migration runs, and returns what ends this one.
func (s *Server) beginMigration(ctx context.Context) (end func(), err error) {
	select {
	case s.migrating <- struct{}{}:
		return func() { <-s.migrating }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) migrate(ctx context.Context, t *resource.Type, progress func(Migration)) error {
	m, err := s.objects.Migrate(ctx, t, func(m objects.Migration) {
		if progress != nil {
			progress(Migration(m))
		}
	})
	if m.Rewritten+m.Kept > 0 {
		s.log.Info("objects were stored anew", "resource", m.Resource, "objects", m.Total, "rewritten", m.Rewritten, "kept", m.Kept)
	}
	if err != nil || m.Kept > 0 || !t.Defined() {
		return err
	}
	return s.storedOnce(ctx, t)
}

// storedOnce writes to the definition of a type that its objects are stored in one version. A server that
// knows an older state of the definition stores them in this version, too, see objects.Store. The write is
// one of the server: the role of the migration controller permits only patches of definitions.
func (s *Server) storedOnce(ctx context.Context, t *resource.Type) error {
	ctx = actor.AsServer(ctx)
	changed := errors.New("the definition changed meanwhile; there may be objects in several versions again")
	_, err := s.client.Update(ctx, s.definitions.resource, meta.Key{Name: t.GroupResource().String()}, "status", func(o *meta.Object) error {
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

// migrator carries out the migrations that callers ask for, one at a time. Its keys are
// their names.
func (s *Server) migrator(r meta.GroupResource) client.Controller {
	return client.Controller{
		Name: "storage-version-migrator", Types: []meta.GroupResource{r},
		MapEvent: func(e client.Event) []string {
			if e.Object == nil || migrationEnded(e.Object) {
				return nil
			}
			return []string{e.Key.Name}
		},
		Reconcile: func(ctx context.Context, cl client.Client, name string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			return s.migrateAsAsked(ctx, cl, r, meta.Key{Name: name})
		},
	}
}

// The conditions of a migration that was asked for.
const (
	migrationRunning   = "Running"
	migrationSucceeded = "Succeeded"
	migrationFailed    = "Failed"
)

// saying is how often a migration that runs says how far it is.
const saying = time.Second

// A migration of what the server does not have may be asked for together with its
// definition: it waits, and is looked at again now and then.
const (
	definitionWait  = time.Minute
	definitionPause = 10 * time.Second
)

// migrateAsAsked carries out a migration, unless it has to wait: then it returns how long.
func (s *Server) migrateAsAsked(ctx context.Context, cl client.Client, r meta.GroupResource, key meta.Key) (time.Duration, error) {
	end, err := s.beginMigration(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	asked, err := cl.Get(ctx, r, key)
	if meta.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || migrationEnded(asked) {
		return 0, err
	}
	of := meta.GroupResource{Group: asked.String("spec", "resource", "group"), Resource: asked.String("spec", "resource", "resource")}
	if left := definitionWait - time.Since(asked.CreationTimestamp()); left > 0 && s.types().Type(of) == nil {
		return min(left, definitionPause), nil
	}
	return 0, s.carryOut(ctx, cl, r, asked, of)
}

// carryOut migrates a resource type, and says in the status of who asked how that goes.
func (s *Server) carryOut(ctx context.Context, cl client.Client, r meta.GroupResource, asked *meta.Object, of meta.GroupResource) error {
	key := meta.Key{Name: asked.Name()}
	over := errors.New("the migration is gone, or another server has ended it")
	say := func(running string, end, message string) error {
		_, err := cl.Update(ctx, r, key, "status", func(o *meta.Object) error {
			if o.UID() != asked.UID() || migrationEnded(o) {
				return over
			}
			if o.String("status", "resourceVersion") == "" {
				o.Set(objects.FormatRevision(s.hub.Revision()), "status", "resourceVersion")
			}
			o.SetCondition(migrationRunning, running, "StorageVersionMigration", message)
			if end != "" {
				o.SetCondition(end, "True", "StorageVersionMigration"+end, message)
			}
			return nil
		})
		if meta.IsNotFound(err) {
			return over
		}
		return err
	}
	err := say("True", "", "it begins")
	if err == nil {
		result, message := s.migrateOne(ctx, of, func(text string) { _ = say("True", "", text) })
		if ctx.Err() != nil {
			return ctx.Err() // the next server goes on
		}
		err = say("False", result, message)
	}
	if errors.Is(err, over) {
		return nil
	}
	return err
}

// migrationEnded reports whether it is said how a migration that was asked for ended.
func migrationEnded(o *meta.Object) bool {
	return o.HasCondition(migrationSucceeded) || o.HasCondition(migrationFailed)
}

// migrateOne migrates a resource type, and returns the condition that this ends with.
func (s *Server) migrateOne(ctx context.Context, r meta.GroupResource, say func(string)) (end, message string) {
	t := s.types().Type(r)
	if t == nil || t.Virtual {
		return migrationFailed, fmt.Sprintf("there are no objects of %s", r)
	}
	var last Migration
	said := time.Now()
	err := s.migrate(ctx, t, func(m Migration) {
		if last = m; time.Since(said) >= saying {
			said = time.Now()
			say(m.String())
		}
	})
	switch {
	case err != nil:
		return migrationFailed, err.Error()
	case last.Kept > 0:
		return migrationFailed, fmt.Sprintf("%d of %d objects stay as they are: they hold what the kind cannot show, cannot be read, or would be too large", last.Kept, last.Total)
	}
	return migrationSucceeded, fmt.Sprintf("%d of %d objects were stored anew", last.Rewritten, last.Total)
}

// migrationKind returns the kind by which callers ask for migrations, if it is registered.
func (s *Server) migrationKind() (r meta.GroupResource, ok bool) {
	r = meta.GroupResource{Group: s.names.Group(names.GroupMigration), Resource: "storageversionmigrations"}
	return r, s.catalog.Now().Type(r) != nil
}
