// Package convert rewrites objects and manifests to another version of their kinds, with the
// conversions of the kinds themselves and without a server: what an API that lives longer than
// one release asks of the files that were written for an older one.
//
//	c, err := convert.New(names.Kubernetes, builtin.Kinds()...)
//	...
//	newer, err := c.Manifests(ctx, older, "apps/v1")
package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/manifests"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// Converter knows the versions of kinds. It may be used by any number of goroutines.
type Converter struct {
	versions map[meta.GroupVersionKind]*resource.Version
}

// New returns a converter for kinds under the names of a profile. The error joins all that
// is wrong with the kinds.
func New(p names.Profile, kinds ...*registry.Kind) (*Converter, error) {
	c := &Converter{map[meta.GroupVersionKind]*resource.Version{}}
	var faults []error
	for _, k := range kinds {
		t, err := resource.Compile(k, p)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, v := range t.Versions {
			c.versions[v.GVK()] = v
		}
	}
	return c, errors.Join(faults...)
}

// ErrVersion says that a kind has no such version.
var ErrVersion = errors.New("the kind has no such version")

// Object returns an object in a version of its kind, group/version as in apiVersion; an
// empty one is the version that clients of today prefer. Defaults in which the two versions differ
// are written out, others are left to the server, as they were. Objects of kinds that
// the converter does not know come back as they are, and the items of a List each in the version.
// The object itself stays as it is. The error is ErrVersion, or tells what the object
// has that its own version does not know, or why it cannot be converted.
func (c *Converter) Object(ctx context.Context, obj *meta.Object, apiVersion string) (*meta.Object, error) {
	if obj.APIVersion() == "v1" && obj.Kind() == "List" {
		return c.list(ctx, obj, apiVersion)
	}
	from := c.version(obj.APIVersion(), obj.Kind())
	if from == nil {
		return obj, nil
	}
	to := from.Type.ByAPIVersion(apiVersion)
	if apiVersion == "" {
		to = preferred(from.Type)
	}
	if to == nil {
		return nil, fmt.Errorf("%w: %s of %s in %s", ErrVersion, obj.Kind(), obj.APIVersion(), apiVersion)
	}
	if to == from {
		return obj, nil
	}
	said := obj.Clone()
	unknown, faults := from.Conform(said)
	if len(faults) > 0 {
		return nil, from.DecodeError(faults)
	}
	if len(unknown) > 0 {
		return nil, from.CannotHandle(fmt.Sprintf("unknown field %q", unknown[0]))
	}
	out, err := rewrite(ctx, said, from, to)
	if _, ok := obj.Get("status"); !ok && err == nil {
		out.Delete("status") // the server's
	}
	return out, err
}

func (c *Converter) list(ctx context.Context, obj *meta.Object, apiVersion string) (*meta.Object, error) {
	out := obj.Clone()
	items := out.List("items")
	for i, item := range items {
		tree, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is no object", i)
		}
		converted, err := c.Object(ctx, meta.NewObject(tree), apiVersion)
		if err != nil && !errors.Is(err, ErrVersion) {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		if err == nil {
			items[i] = converted.Tree()
		}
	}
	return out, nil
}

func (c *Converter) version(apiVersion, kind string) *resource.Version {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	return c.versions[meta.GroupVersionKind{Group: group, Version: version, Kind: kind}]
}

// preferred is the most stable version that is not on its way out.
func preferred(t *resource.Type) *resource.Version {
	i := slices.IndexFunc(t.Versions, func(v *resource.Version) bool { return v.Served && v.Deprecated == "" && v.Group == t.Group })
	if i < 0 {
		return t.Hub
	}
	return t.Versions[i]
}

// rewrite converts an object that conforms.
func rewrite(ctx context.Context, said *meta.Object, from, to *resource.Version) (*meta.Object, error) {
	whole := said.Clone()
	if err := fill(ctx, from, whole); err != nil {
		return nil, err
	}
	whole, err := to.Convert(ctx, whole)
	if err != nil {
		return nil, err
	}
	out := whole.Clone()
	if short, err := to.Convert(ctx, said); err == nil { // it may need the defaults
		filled := short.Clone()
		if err := fill(ctx, to, filled); err != nil {
			return nil, err
		}
		out = meta.NewObject(unsaid(whole.Tree(), short.Tree(), filled.Tree()))
	}
	dropEmpty(to.Schema(), out.Tree())
	return out, nil
}

// fill fills in what the server does with a new object of the version.
func fill(ctx context.Context, v *resource.Version, obj *meta.Object) error {
	return v.Defaults(v.NewChange(ctx, obj, nil, ""))
}

// unsaid returns whole without what short does not say and filled, which is short with
// defaults, says alike.
func unsaid(whole, short, filled map[string]any) map[string]any {
	out := maps.Clone(whole)
	for field, value := range whole {
		said, ok := short[field]
		deep, isMap := value.(map[string]any)
		below, hasMap := said.(map[string]any)
		with, _ := filled[field].(map[string]any)
		switch {
		case !meta.Equal(value, filled[field]) && !(isMap && hasMap):
		case isMap && hasMap:
			out[field] = unsaid(deep, below, with)
		case ok:
			out[field] = said
		default:
			delete(out, field)
		}
	}
	return out
}

// dropEmpty drops the empty structs that Go writes because it cannot leave them out.
func dropEmpty(s *schema.Schema, tree map[string]any) {
	if s == nil || s.Struct == nil {
		return
	}
	for name, value := range tree {
		f := s.Struct.Field(name)
		if f == nil || f.Schema == nil {
			continue
		}
		dropBelow(f.Schema, value)
		if m, ok := value.(map[string]any); ok && len(m) == 0 && f.Schema.Struct != nil && !f.Pointer {
			delete(tree, name)
		}
	}
}

func dropBelow(s *schema.Schema, value any) {
	switch v := value.(type) {
	case map[string]any:
		dropEmpty(s, v)
		if s.Values != nil {
			for _, e := range v {
				dropBelow(s.Values, e)
			}
		}
	case []any:
		if s.Items != nil {
			for _, e := range v {
				dropBelow(s.Items, e)
			}
		}
	}
}

// Manifests is Object for the documents of a file, YAML or JSON. What comes out is YAML. A
// document whose kind has no such version stays as it is.
func (c *Converter) Manifests(ctx context.Context, data []byte, apiVersion string) ([]byte, error) {
	objects, err := manifests.Parse(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for i, obj := range objects {
		converted, err := c.Object(ctx, obj, apiVersion)
		switch {
		case errors.Is(err, ErrVersion):
			converted = obj
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		text, err := codec.EncodeYAML(codec.EncodeJSON(nil, converted.Tree()))
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
