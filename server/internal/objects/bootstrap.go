package objects

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
)

// Bootstrap creates the initial objects of all types, if they do not exist. Types of the core group, such as
// namespaces, come first. An existing object that cannot be read is logged and skipped.
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
		s.o.Log.Error("existing initial object cannot be read", "resource", t.GroupResource(), "name", obj.Name(), "error", err)
	default:
		return fmt.Errorf("creating %s %s: %w", t.Kind, obj.Name(), err)
	}
	return nil
}
