package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// Fence returns the revision of the last RaiseFence of a namespace, 0 if there was none. When it returns, the caches
// show all writes that were stored before that revision.
func (s *Store) Fence(ctx context.Context, namespace string) (storage.Revision, error) {
	rec, err := s.currentRecord(ctx, resource.FencePrefix+namespace)
	if err != nil {
		return 0, err
	}
	return rec.Revision, s.wait(ctx, rec.Revision)
}

// RaiseFence raises the fence of a namespace and returns its revision. From then on, no write is stored that has an
// earlier fence as a precondition. When it returns, the caches show all writes that were stored before. RaiseFence
// does not depend on the LeaderFence of ctx, because it may serve several writes at once.
func (s *Store) RaiseFence(ctx context.Context, namespace string) (storage.Revision, error) {
	raised := storage.Write{Key: resource.FencePrefix + namespace, Value: []byte("raised"), Expect: storage.AnyRevision}
	return s.commit(consistency.WithLeaderFence(ctx, nil), raised, nil, nil)
}

// sweepFences removes the fences of namespaces without stored objects. A plugin that counts in such a namespace
// later raises the fence first, so that a write admitted before the removal is not stored unseen.
func (s *Store) sweepFences(ctx context.Context) error {
	return s.sweepEmptied(ctx, resource.FencePrefix, func(rest string) string { return rest })
}

// sweepEmptied deletes the records below a prefix that belong to namespaces without stored objects. of returns the
// namespace for the rest of a key, or "" if the record belongs to none.
func (s *Store) sweepEmptied(ctx context.Context, prefix string, of func(rest string) (namespace string)) error {
	at, records, err := s.backend.Scan(ctx, prefix, "", 0)
	if err != nil {
		return err
	}
	if err := s.o.Hub.Wait(ctx, at); err != nil {
		return err
	}
	var ws []storage.Write
	for rec, err := range records {
		if damaged := (*storage.DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return err
		}
		namespace := of(strings.TrimPrefix(rec.Key, prefix))
		if here, _ := s.o.Hub.StoredBytes(namespace); namespace != "" && here == 0 {
			ws = append(ws, storage.Write{Key: rec.Key, Expect: rec.Revision})
		}
	}
	for ws := range slices.Chunk(ws, reservationsAtOnce) {
		if err := s.commitEach(ctx, ws); err != nil {
			return fmt.Errorf("deleting records below %s of deleted namespaces: %w", prefix, err)
		}
	}
	return nil
}
