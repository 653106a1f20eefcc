package objects

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
)

// Bootstrap makes the objects that exist from the start, those of the core group, such as
// namespaces, first. One that is there and cannot be read keeps nobody from the others.
func (s *Store) Bootstrap(ctx context.Context, client client.Client) error {
	for _, t := range s.o.Types().Types() {
		if t.Initial == nil {
			continue
		}
		for _, obj := range t.Initial(s.o.Names) {
			if err := s.bootstrap(ctx, client, t, obj); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) bootstrap(ctx context.Context, c client.Client, t *resource.Type, obj *meta.Object) error {
	obj.SetGVK(t.Hub.GVK())
	_, err := c.Create(ctx, t.GroupResource(), obj)
	switch unreadable := (*client.UnreadableError)(nil); {
	case err == nil, meta.IsAlreadyExists(err):
	case errors.As(err, &unreadable):
		s.o.Log.Error("an object that exists from the start cannot be read", "resource", t.GroupResource(), "name", obj.Name(), "error", err)
	default:
		return fmt.Errorf("creating %s %s: %w", t.Kind, obj.Name(), err)
	}
	return nil
}
