package server

import (
	"context"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/objects"
)

// Migration is the progress of Server.Migrate with one resource.
type Migration struct {
	Resource  meta.GroupResource
	Done      int           // objects examined so far
	Total     int           // objects that existed at the start
	Rewritten int           // of Done, stored anew
	Kept      int           // of Done, not rewritten: they hold fields that the kind does not have, cannot be read, or would be too large
	Rate      float64       // objects per second; 0 until it is known
	Left      time.Duration // estimated time to the end of this resource; 0 if it is not known
}

// String returns the progress in one line, in the form of the backup commands.
func (m Migration) String() string { return objects.Migration(m).String() }

// Migrate rewrites every object of the served kinds as a write would store it now: in the storage
// version and the current schema of its kind. It skips objects that are stored so already, so an
// interrupted Migrate continues when it is called again. The content of the objects stays the same,
// and admission is not called. Migrate calls progress, if it is not nil, every few hundred objects
// and at the end of each resource.
//
// When all objects of a definition are rewritten, its status.storedVersions is set to its storage
// version alone. Call Migrate when all servers over the store have this release and you no longer
// want to go back to an earlier release, which may not know the storage version.
//
// Only one migration runs at a time; further calls wait for it. If a resource fails, Migrate
// continues with the others and returns the joined errors.
func (s *Server) Migrate(ctx context.Context, progress func(Migration)) error {
	return s.migrator.Migrate(ctx, func(m objects.Migration) {
		if progress != nil {
			progress(Migration(m))
		}
	})
}
