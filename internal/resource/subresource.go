package resource

import (
	"context"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Subresource is a compiled subresource.
type Subresource struct {
	registry.Subresource
	Body *Version // version of the body that discovery lists; nil: the body is the object itself

	// Readable returns the error that answers a GET if the object has no value to show at the
	// subresource. If it is nil, every object can be read.
	Readable func(obj *meta.Object) error
}

// BodyIn returns the version of the body that a request with apiVersion uses. Acting subresources
// accept every served version of the body; the others always use Body.
func (s *Subresource) BodyIn(apiVersion string) *Version {
	if s.Act != nil {
		return s.bodyIn(apiVersion)
	}
	return s.Body
}

func (s *Subresource) bodyIn(apiVersion string) *Version {
	if v := s.Body.ByAPIVersion(apiVersion); v != nil && v.Served {
		return v
	}
	return s.Body
}

// Subresource returns the subresource with the given name, including status and scale, or nil if
// this version does not serve it.
func (v *Version) Subresource(name string) *Subresource { return findSubresource(v.Subresources, name) }

// Subresource returns the subresource with the given name, including status and scale, or nil. Not
// all versions need to serve it.
func (t *Type) Subresource(name string) *Subresource { return findSubresource(t.Subresources, name) }

func findSubresource(list []Subresource, name string) *Subresource {
	i := slices.IndexFunc(list, func(s Subresource) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// Verbs returns the verbs of the subresource.
func (s *Subresource) Verbs() []string {
	switch {
	case s.Connect != nil:
		return connectVerbs(s.Connect.Style)
	case s.Act != nil:
		return []string{"create"}
	case s.WriteOnly:
		return []string{"update"}
	}
	return []string{"get", "patch", "update"}
}

func connectVerbs(style registry.ConnectStyle) []string {
	switch style {
	case registry.Streams:
		return []string{"create", "get"}
	case registry.Proxies:
		return []string{"create", "delete", "get", "patch", "update"}
	}
	return []string{"get"}
}

// WireKind returns the kind of the subresource that discovery lists for version v of the item: the
// kind of the body, or the item's kind if the subresource has no body or shows a part of the item.
func (s *Subresource) WireKind(v *Version) meta.GroupVersionKind {
	if s.Body == nil || s.Connect != nil && s.Connect.Style == registry.Reads {
		return v.GVK()
	}
	return s.Body.GVK()
}

// Shown returns the body that clients see of obj at the subresource. s may be nil; the result is
// then obj.
func (s *Subresource) Shown(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	if s == nil || s.Show == nil {
		return obj, nil
	}
	obj = s.Show(obj)
	if s.Body == nil || s.Body == s.Body.Hub {
		return obj, nil
	}
	return s.Body.Convert(ctx, obj)
}

// Take copies the fields that clients may change through the subresource, except metadata, from the
// body in to obj.
func (s *Subresource) Take(ctx context.Context, obj, in *meta.Object) (err error) {
	if s.Body != nil && s.Body != s.Body.Hub {
		if in, err = s.Body.Hub.Convert(ctx, in); err != nil {
			return err
		}
	}
	s.Merge(obj, in)
	return nil
}

// Accept copies the fields that clients may change through the subresource, including metadata,
// from the body in to obj, a copy of the stored object.
func (s *Subresource) Accept(ctx context.Context, obj, in *meta.Object) error {
	if err := s.Take(ctx, obj, in); err != nil {
		return err
	}
	for _, field := range s.Metadata {
		obj.CopyField(in, "metadata", field)
	}
	return nil
}
