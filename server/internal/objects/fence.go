package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// Fence returns the revision at which the fence of a namespace was raised last, 0 if it never
// was. The caches show what was stored before that.
func (s *Store) Fence(ctx context.Context, namespace string) (storage.Revision, error) {
	rec, err := s.mark(ctx, resource.FencePrefix+namespace)
	if err != nil {
		return 0, err
	}
	return rec.Revision, s.wait(ctx, rec.Revision)
}

// RaiseFence raises the fence of a namespace. When it returns no write is stored any more that
// rests on the fence as it was, and the caches show those that were. It does not depend on the
// term of who asks for it, since it may be for several writers at once.
func (s *Store) RaiseFence(ctx context.Context, namespace string) (storage.Revision, error) {
	return s.commit(WithTerm(ctx, nil), storage.Write{Key: resource.FencePrefix + namespace, Value: []byte("raised"), Expect: storage.AnyRevision})
}

// fence returns the comparison with the fence that admission's word rests on.
func (a *attempt) fence() []storage.Write {
	if a.request == nil || a.request.Fence == nil {
		return nil
	}
	return []storage.Write{{Key: resource.FencePrefix + a.request.Namespace, Expect: *a.request.Fence, Guard: true}}
}

// sweepFences removes the fences of namespaces in which nothing is stored any more. Who counts
// something there later raises the fence before: for him, too, nothing comes that was decided
// before he counted.
func (s *Store) sweepFences(ctx context.Context) error {
	return s.sweepEmptied(ctx, resource.FencePrefix, func(rest string) string { return rest })
}

// sweepEmptied removes the records below a prefix that belong to namespaces in which nothing is
// stored any more. of returns the namespace by the rest of a key, "" if there is none.
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
			return fmt.Errorf("deleting the records below %s of namespaces that are gone: %w", prefix, err)
		}
	}
	return nil
}
