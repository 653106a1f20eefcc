package objects

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/controller"
)

var namespacesResource = meta.GroupResource{Resource: "namespaces"}

// Bootstrap makes the namespaces that exist from the start. One that is there and
// cannot be read keeps nobody from the others.
func (s *Store) Bootstrap(ctx context.Context, client controller.Client) error {
	if s.o.Types().Type(namespacesResource) == nil {
		return nil
	}
	for _, name := range s.systemNamespaces() {
		obj := &meta.Object{}
		obj.SetGVK(meta.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		obj.SetName(name)
		_, err := client.Create(ctx, namespacesResource, obj)
		switch unreadable := (*controller.UnreadableError)(nil); {
		case err == nil, meta.IsAlreadyExists(err):
		case errors.As(err, &unreadable):
			s.o.Log.Error("a namespace that exists from the start cannot be read", "name", name, "error", err)
		default:
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}

// systemNamespaces are made at start.
func (s *Store) systemNamespaces() []string {
	return []string{"default", s.o.Names.SystemNamespace("system"), s.o.Names.SystemNamespace("public"), s.o.Names.SystemNamespace("node-lease")}
}
