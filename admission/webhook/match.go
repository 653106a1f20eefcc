package webhook

import (
	"context"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// request is one write, with what webhooks need to know of it.
type request struct {
	*admission.Request
	w     *webhooks
	views map[meta.GroupVersion]*view // of the versions that webhooks asked for
}

// view is what callers of a version see.
type view struct {
	kind     meta.GroupVersionKind
	resource meta.Resource
	obj, old *meta.Object // nil: there is none
	json     [2]any       // of both, for reviews
}

// registered are the resources of the registration group that no webhook is asked about:
// a webhook that refuses them could not be taken away any more.
var registered = []string{
	"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
	"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	"validatingadmissionpolicies", "validatingadmissionpolicybindings",
}

func (w *webhooks) exempt(r *admission.Request) bool {
	return r.Resource.Group == w.source.Group && slices.Contains(registered, r.Resource.Resource)
}

// match reports whether a webhook is to be asked about a request, and the version in
// which: that of the caller if a rule covers it, else one that the rules do cover. The
// error ends the request.
func (h *hook) match(ctx context.Context, r *request) (version meta.GroupVersion, ok bool, err error) {
	if version, ok = h.covered(r); !ok || !h.selects(r) {
		return version, false, nil
	}
	if ok, err = h.selectsNamespace(ctx, r); !ok || err != nil {
		return version, false, err
	}
	return version, true, nil
}

// covered returns the version of the resource that the rules mean.
func (h *hook) covered(r *request) (meta.GroupVersion, bool) {
	own := meta.GroupVersion{Group: r.RequestResource.Group, Version: r.RequestResource.Version}
	if h.covers(r, own) {
		return own, true
	}
	if !h.equivalent || r.Type == nil {
		return own, false
	}
	for _, version := range r.Type.ServedVersions {
		if version != own && h.covers(r, version) {
			return version, true
		}
	}
	return own, false
}

func (h *hook) covers(r *request, version meta.GroupVersion) bool {
	probe := admission.Request{
		Operation: r.Operation, Subresource: r.Subresource, Namespace: r.Namespace,
		Resource: meta.Resource{Group: version.Group, Version: version.Version, Resource: r.RequestResource.Resource},
	}
	for i := range h.rules {
		if h.rules[i].Matches(&probe) {
			return true
		}
	}
	return false
}

// selects reports whether the labels of the object, before or after, are selected.
func (h *hook) selects(r *request) bool {
	return h.objects.Empty() || selects(h.objects, r.Object) || selects(h.objects, r.Old)
}

func selects(s meta.LabelSelector, obj *meta.Object) bool {
	if obj == nil {
		return false
	}
	if _, ok := obj.Get("metadata"); !ok { // of what cannot have labels
		return false
	}
	labels := obj.Map("metadata", "labels")
	return s.Matches(func(key string) (string, bool) {
		value, ok := labels[key].(string)
		return value, ok
	})
}

// selectsNamespace reports whether the labels of the namespace are selected in which the
// object is, or which it is. For other objects of the cluster that says nothing.
func (h *hook) selectsNamespace(ctx context.Context, r *request) (bool, error) {
	if h.namespaces.Empty() {
		return true, nil
	}
	name := r.namespace()
	switch {
	case name == "":
		return true, nil
	case r.isNamespace() && r.Subresource == "" && r.Object != nil:
		return selects(h.namespaces, r.Object), nil
	case r.w.has(namespaces) == nil:
		return selects(h.namespaces, meta.NewObject(map[string]any{"metadata": map[string]any{}})), nil
	}
	obj, err := r.w.client.Get(ctx, namespaces, meta.Key{Name: name})
	if err != nil {
		return false, err
	}
	return selects(h.namespaces, obj), nil
}

var namespaces = meta.GroupResource{Resource: "namespaces"}

func (r *request) isNamespace() bool { return r.Resource.GroupResource() == namespaces }

// namespace returns the namespace of the object; that of a namespace is itself.
func (r *request) namespace() string {
	if r.isNamespace() {
		return r.Name
	}
	return r.Namespace
}

// see makes the view of a version, if it is not there.
func (r *request) see(ctx context.Context, version meta.GroupVersion) (*view, error) {
	if v := r.views[version]; v != nil {
		return v, nil
	}
	v := &view{kind: r.Kind, obj: r.Object, old: r.Old, resource: r.RequestResource}
	v.resource.Group, v.resource.Version = version.Group, version.Version
	if r.Forms != nil {
		v.kind, _ = r.Forms.Kind(version)
		for _, obj := range []**meta.Object{&v.obj, &v.old} {
			if *obj == nil {
				continue
			}
			var err error
			if *obj, err = r.Forms.Show(ctx, *obj, version); err != nil {
				return nil, meta.Internal(err)
			}
		}
	}
	for i, obj := range []*meta.Object{v.obj, v.old} {
		v.json[i] = raw(obj)
	}
	if r.views == nil {
		r.views = map[meta.GroupVersion]*view{}
	}
	r.views[version] = v
	return v, nil
}
