// Package matcher selects the requests that match a webhook or a policy, and converts their objects to the
// version that it sees.
package matcher

import (
	"context"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// Request is an admission request with a cache of its views. It is not safe for concurrent use.
type Request struct {
	*admission.Request
	views map[meta.GroupVersion]*View // by version; filled by See
}

// View is a request in a version of its resource. It must not be changed.
type View struct {
	Kind        meta.GroupVersionKind
	Resource    meta.GroupVersionResource
	Object, Old *meta.Object // nil if the request has none
}

// Changed drops the cached views. Call it after each change of Object.
func (r *Request) Changed() { r.views = nil }

// See returns the request in a version of its resource.
func (r *Request) See(ctx context.Context, version meta.GroupVersion) (*View, error) {
	if v := r.views[version]; v != nil {
		return v, nil
	}
	v := &View{Kind: r.Kind, Object: r.Object, Old: r.Old, Resource: r.RequestResource}
	v.Resource.Group, v.Resource.Version = version.Group, version.Version
	if r.Representations != nil {
		v.Kind, _ = r.Representations.Kind(version)
		for _, obj := range []**meta.Object{&v.Object, &v.Old} {
			if *obj == nil {
				continue
			}
			var err error
			if *obj, err = r.Representations.Show(ctx, *obj, version); err != nil {
				return nil, meta.Internal(err)
			}
		}
	}
	if r.views == nil {
		r.views = map[meta.GroupVersion]*View{}
	}
	r.views[version] = v
	return v, nil
}

// About returns the fields of an AdmissionRequest, except uid, objects and options.
func (r *Request) About(v *View) map[string]any {
	kind := r.RequestKind
	if r.Representations != nil {
		if k, ok := r.Representations.Kind(meta.GroupVersion{Group: r.RequestResource.Group, Version: r.RequestResource.Version}); ok {
			kind = k
		}
	}
	tree := map[string]any{
		"operation": string(r.Operation), "userInfo": userTree(r.User), "dryRun": r.DryRun,
		"kind": kindTree(v.Kind), "resource": resourceTree(v.Resource),
		"requestKind": kindTree(kind), "requestResource": resourceTree(r.RequestResource),
	}
	for field, text := range map[string]string{
		"name": r.Name, "namespace": r.InNamespace(), "subResource": r.Subresource, "requestSubResource": r.Subresource,
	} {
		if text != "" {
			tree[field] = text
		}
	}
	return tree
}

func kindTree(k meta.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func resourceTree(r meta.GroupVersionResource) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
}

func userTree(u *meta.User) map[string]any {
	tree := map[string]any{}
	if u == nil {
		return tree
	}
	if u.Name != "" {
		tree["username"] = u.Name
	}
	if u.UID != "" {
		tree["uid"] = u.UID
	}
	if len(u.Groups) > 0 {
		tree["groups"] = meta.StringList(u.Groups)
	}
	if len(u.Extra) > 0 {
		extra := map[string]any{}
		for key, values := range u.Extra {
			extra[key] = meta.StringList(values)
		}
		tree["extra"] = extra
	}
	return tree
}

func (r *Request) isNamespace() bool {
	return r.Resource.GroupResource() == meta.GroupResource{Resource: "namespaces"}
}

// InNamespace returns the namespace of the object. For a Namespace it returns its name.
func (r *Request) InNamespace() string {
	if r.isNamespace() {
		return r.Name
	}
	return r.Namespace
}

// NamespaceObject returns the Namespace of the request, or nil for a cluster-scoped object. For a write of a Namespace
// it returns the object of the request, because a new Namespace is not stored yet.
func (r *Request) NamespaceObject(ctx context.Context) (*meta.Object, error) {
	name := r.InNamespace()
	switch {
	case name == "":
		return nil, nil
	case r.isNamespace() && r.Subresource == "" && r.Object != nil:
		return r.Object, nil
	case !r.Server.Serves("", "namespaces"):
		return meta.NewObject(map[string]any{"metadata": map[string]any{}}), nil
	}
	return r.Server.Client.Get(ctx, meta.GroupResource{Resource: "namespaces"}, meta.Key{Name: name})
}
