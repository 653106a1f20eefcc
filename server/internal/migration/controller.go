package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/objects"
)

// Controller returns the controller that carries out StorageVersionMigrations. Its keys are their
// names. ok is false if their kind is not registered.
func (m *Migrator) Controller() (c client.Controller, ok bool) {
	r := meta.GroupResource{Group: m.o.Names.Group(wellknown.GroupMigration), Resource: "storageversionmigrations"}
	if m.o.Catalog.Types().Type(r) == nil {
		return c, false
	}
	return client.Controller{
		Name: "storage-version-migrator", Types: []meta.GroupResource{r},
		MapEvent: func(e client.Event) []string {
			if e.Object == nil || hasEnded(e.Object) {
				return nil
			}
			return []string{e.Key.Name}
		},
		Reconcile: func(ctx context.Context, cl client.Client, name string) (time.Duration, error) {
			return m.reconcile(actor.Take(ctx), cl, r, meta.Key{Name: name})
		},
	}, true
}

// The conditions of a StorageVersionMigration.
const (
	running   = "Running"
	succeeded = "Succeeded"
	failed    = "Failed"
)

// statusInterval is the pause between two writes of a running migration's status.
const statusInterval = time.Second

// A StorageVersionMigration may be created together with the definition of its resource. It waits
// unknownWait for the resource to be served, and is reconciled again every unknownPause.
const (
	unknownWait  = time.Minute
	unknownPause = 10 * time.Second
)

// reconcile carries out a migration, or returns how long to wait for its resource.
func (m *Migrator) reconcile(ctx context.Context, cl client.Client, r meta.GroupResource, key meta.Key) (time.Duration, error) {
	end, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	request, err := cl.Get(ctx, r, key)
	if meta.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || hasEnded(request) {
		return 0, err
	}
	of := meta.GroupResource{Group: request.String("spec", "resource", "group"), Resource: request.String("spec", "resource", "resource")}
	if left := unknownWait - time.Since(request.CreationTimestamp()); left > 0 && m.o.Catalog.Types().Type(of) == nil {
		return min(left, unknownPause), nil
	}
	return 0, m.carryOut(ctx, cl, r, request, of)
}

// carryOut migrates a resource, and reports the progress and the result in the status of the request.
func (m *Migrator) carryOut(ctx context.Context, cl client.Client, r meta.GroupResource, request *meta.Object, of meta.GroupResource) error {
	key := meta.Key{Name: request.Name()}
	ended := errors.New("the migration was deleted, or another server completed it")
	setStatus := func(run string, end, message string) error {
		_, err := cl.Update(ctx, r, key, "status", func(o *meta.Object) error {
			if o.UID() != request.UID() || hasEnded(o) {
				return ended
			}
			if o.String("status", "resourceVersion") == "" {
				o.Set(objects.FormatRevision(m.o.Hub.Revision()), "status", "resourceVersion")
			}
			o.SetCondition(running, run, "StorageVersionMigration", message)
			if end != "" {
				o.SetCondition(end, "True", "StorageVersionMigration"+end, message)
			}
			return nil
		})
		if meta.IsNotFound(err) {
			return ended
		}
		return err
	}
	err := setStatus("True", "", "started")
	if err == nil {
		result, message := m.migrateResource(ctx, of, func(text string) { _ = setStatus("True", "", text) })
		if ctx.Err() != nil {
			return ctx.Err() // the next server continues
		}
		err = setStatus("False", result, message)
	}
	if errors.Is(err, ended) {
		return nil
	}
	return err
}

// hasEnded reports whether a StorageVersionMigration has a result.
func hasEnded(o *meta.Object) bool {
	return o.HasCondition(succeeded) || o.HasCondition(failed)
}

// migrateResource migrates a resource, and returns the condition and the message of the result.
func (m *Migrator) migrateResource(ctx context.Context, r meta.GroupResource, report func(string)) (condition, message string) {
	t := m.o.Catalog.Types().Type(r)
	if t == nil || t.Virtual {
		return failed, fmt.Sprintf("there are no objects of %s", r)
	}
	var last objects.Migration
	reported := time.Now()
	err := m.migrate(ctx, t, func(p objects.Migration) {
		if last = p; time.Since(reported) >= statusInterval {
			reported = time.Now()
			report(p.String())
		}
	})
	switch {
	case err != nil:
		return failed, err.Error()
	case last.Kept > 0:
		return failed, fmt.Sprintf("%d of %d objects were not rewritten: they hold fields that the kind does not have, cannot be read, or would be too large", last.Kept, last.Total)
	}
	return succeeded, fmt.Sprintf("%d of %d objects were stored anew", last.Rewritten, last.Total)
}
