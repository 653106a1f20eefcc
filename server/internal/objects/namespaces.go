package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/registry/meta"
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

// systemNamespaces are made at start; all but the last cannot be deleted.
func (s *Store) systemNamespaces() []string {
	return []string{"default", s.o.Names.SystemNamespace("system"), s.o.Names.SystemNamespace("public"), s.o.Names.SystemNamespace("node-lease")}
}

// namespaceLifecycle keeps objects out of namespaces that are missing or going,
// and the namespaces that every server has from being deleted (access control,
// NamespaceLifecycle).
func (s *Store) namespaceLifecycle() admission.Plugin {
	return admission.Plugin{Name: "NamespaceLifecycle", Mutate: func(ctx context.Context, r *admission.Request) error {
		t := s.o.Types().Type(namespacesResource)
		if t == nil {
			return nil
		}
		if r.Operation == admission.Delete && r.Resource.GroupResource() == namespacesResource {
			if fixed := s.systemNamespaces()[:3]; slices.Contains(fixed, r.Name) {
				return meta.Forbidden(namespacesResource, r.Name, "this namespace may not be deleted")
			}
			return nil
		}
		if r.Operation != admission.Create || r.Namespace == "" || r.Subresource != "" && r.Old != nil {
			return nil
		}
		if t := s.o.Types().Type(r.Resource.GroupResource()); t != nil && t.Virtual() {
			return nil // a question makes nothing in the namespace; whether that exists is not for all to know
		}
		return s.openNamespace(ctx, r)
	}}
}

// openNamespace checks that the namespace of a new object exists and stays.
func (s *Store) openNamespace(ctx context.Context, r *admission.Request) error {
	entry, err := s.Entry(s.o.Types().Type(namespacesResource), meta.Key{Name: r.Namespace})
	if err != nil {
		return err
	}
	if entry == nil {
		return meta.NotFound(namespacesResource, r.Namespace)
	}
	if !entry.Object().Terminating() {
		return nil
	}
	name := r.Name
	if name == "" && r.Object != nil {
		name = r.Object.GenerateName()
	}
	why := fmt.Sprintf("unable to create new content in namespace %s because it is being terminated", r.Namespace)
	st := meta.Forbidden(r.Resource.GroupResource(), name, why)
	st.Details.Causes = []meta.Cause{{
		Reason: meta.CauseNSTerminating, Field: "metadata.namespace", Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace),
	}}
	return st
}
