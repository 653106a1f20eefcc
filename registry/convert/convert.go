// Package convert rewrites objects and manifests to another version of their kinds, with the
// conversions of the kinds themselves and without a server: what an API that lives longer than
// one release asks of the files that were written for an older one.
//
//	c, err := convert.New(names.Kubernetes, builtin.Kinds()...)
//	...
//	newer, warnings, err := c.Manifests(ctx, older, "apps/v1")
package convert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/registry"
)

// Converter knows the versions of kinds. It may be used by any number of goroutines.
type Converter struct {
	// Form of the documents that Manifests returns, "yaml" or "json"; empty: each as it came.
	Form string

	versions map[meta.GroupVersionKind]*resource.Version
	lists    map[meta.GroupVersionKind]*resource.Version // by the kinds of their lists
}

// New returns a converter for kinds under the names of a profile. The error joins all that
// is wrong with the kinds.
func New(p names.Profile, kinds ...*registry.Kind) (*Converter, error) {
	c := &Converter{versions: map[meta.GroupVersionKind]*resource.Version{}, lists: map[meta.GroupVersionKind]*resource.Version{}}
	var faults []error
	for _, k := range kinds {
		t, err := resource.Compile(k, p)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, v := range t.Versions {
			if v.Dummy != "" {
				continue
			}
			c.versions[v.GVK()], c.lists[v.ListGVK()] = v, v
		}
	}
	return c, errors.Join(faults...)
}

// ErrVersion says that a kind has no such version.
var ErrVersion = errors.New("there is no such version")

// Object returns an object in a version of its kind, group/version as in apiVersion; an
// empty one is the version that clients of today prefer. Defaults in which the two versions differ
// are written out, others are left to the server, as they were. Objects of kinds that
// the converter does not know come back as they are, and the items of a list each in the version.
// The object itself stays as it is, and is what comes back if nothing is to be converted.
// The error is ErrVersion, or tells what the object has that its own version does not know,
// or why it cannot be converted.
func (c *Converter) Object(ctx context.Context, obj *meta.Object, apiVersion string) (*meta.Object, error) {
	if err := c.known(apiVersion); err != nil {
		return nil, err
	}
	return (&conversion{Converter: c, ctx: ctx, apiVersion: apiVersion}).object(obj)
}

// known is ErrVersion for a version that no kind has.
func (c *Converter) known(apiVersion string) error {
	if apiVersion == "" {
		return nil
	}
	all := map[string]bool{}
	for gvk := range c.versions {
		all[gvk.APIVersion()] = true
	}
	if all[apiVersion] {
		return nil
	}
	return fmt.Errorf("%w: no kind has %s%s", ErrVersion, apiVersion, suggest.Near(apiVersion, slices.Sorted(maps.Keys(all))...))
}

// conversion is that of one object or one file.
type conversion struct {
	*Converter
	ctx        context.Context
	apiVersion string   // that objects shall have; empty: the preferred one of each
	place      string   // of the object, such as "items[3]: "; what warnings begin with
	warnings   []string // of objects that servers would refuse
}

func (c *conversion) object(obj *meta.Object) (*meta.Object, error) {
	gvk := kindOf(obj)
	if gvk == (meta.GroupVersionKind{Version: "v1", Kind: "List"}) {
		return c.list(obj, nil)
	}
	if v := c.lists[gvk]; v != nil {
		return c.listOf(obj, v)
	}
	from := c.versions[gvk]
	if from == nil {
		c.warnOfVersion(obj, gvk)
		return obj, nil
	}
	to, err := c.target(from)
	if err != nil || to == from {
		return obj, err
	}
	said := obj.Clone()
	unknown, faults := from.Normalize(said)
	if len(faults) > 0 {
		return nil, from.DecodeError(faults)
	}
	if len(unknown) > 0 {
		return nil, from.CannotHandle(fmt.Sprintf("unknown field %q", unknown[0]))
	}
	out, err := rewrite(c.ctx, obj, said, from, to)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.Get("status"); !ok {
		out.Delete("status") // the server's
	}
	c.warnOfRefusal(out, to)
	return out, nil
}

// target returns the version that objects of another are converted to.
func (c *conversion) target(from *resource.Version) (*resource.Version, error) {
	if c.apiVersion == "" {
		return preferred(from.Type), nil
	}
	if to := from.Type.ByAPIVersion(c.apiVersion); to != nil && to.Dummy == "" {
		return to, nil
	}
	return nil, fmt.Errorf("%w: %s of %s in %s", ErrVersion, from.Kind, from.GVK().APIVersion(), c.apiVersion)
}

// listOf converts the list of a kind, whose items need not say what they are.
func (c *conversion) listOf(obj *meta.Object, from *resource.Version) (*meta.Object, error) {
	to, err := c.target(from)
	if err != nil {
		return nil, err
	}
	out, err := c.list(obj, from)
	if err != nil || to == from {
		return out, err
	}
	if out == obj {
		out = obj.Clone()
	}
	out.SetGVK(to.ListGVK())
	return out, nil
}

// list converts the items of a list; those that do not say what they are are of a version.
func (c *conversion) list(obj *meta.Object, of *resource.Version) (*meta.Object, error) {
	out := obj
	place := c.place
	defer func() { c.place = place }()
	for i, item := range obj.List("items") {
		tree, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is no object", i)
		}
		c.place = fmt.Sprintf("%sitems[%d]: ", place, i)
		converted, err := c.item(tree, of)
		switch {
		case errors.Is(err, ErrVersion) || err == nil && converted == nil:
			continue
		case err != nil:
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		case out == obj:
			out = obj.Clone()
		}
		out.List("items")[i] = converted
	}
	return out, nil
}

// item returns an item converted, nil if it stays as it is.
func (c *conversion) item(tree map[string]any, of *resource.Version) (map[string]any, error) {
	item := meta.NewObject(tree)
	untyped := of != nil && item.APIVersion() == "" && item.Kind() == ""
	if untyped {
		item = item.Clone()
		item.SetGVK(of.GVK())
	}
	out, err := c.object(item)
	if err != nil || out == item {
		return nil, err
	}
	if untyped {
		out.Delete("apiVersion")
		out.Delete("kind")
	}
	return out.Tree(), nil
}

func kindOf(obj *meta.Object) meta.GroupVersionKind {
	group, version, ok := strings.Cut(obj.APIVersion(), "/")
	if !ok {
		group, version = "", group
	}
	return meta.GroupVersionKind{Group: group, Version: version, Kind: obj.Kind()}
}

// preferred is the most stable version that is not on its way out.
func preferred(t *resource.Type) *resource.Version {
	i := slices.IndexFunc(t.Versions, func(v *resource.Version) bool { return v.Served && v.Deprecated == "" && v.Group == t.Group })
	if i < 0 {
		return t.Hub
	}
	return t.Versions[i]
}

// rewrite converts an object: said is it as it conforms. What it leaves to the server is
// left to the server still, as far as that then makes the same of it.
func rewrite(ctx context.Context, obj, said *meta.Object, from, to *resource.Version) (*meta.Object, error) {
	whole := said.Clone()
	if err := fill(ctx, from, whole); err != nil {
		return nil, err
	}
	whole, err := to.Convert(ctx, whole)
	if err != nil {
		return nil, err
	}
	whole = whole.Clone()
	dropEmpty(to.Schema(), whole.Tree(), obj.Tree())
	short, err := to.Convert(ctx, said)
	if err != nil {
		return whole, nil // it needs the defaults
	}
	filled := short.Clone()
	if err := fill(ctx, to, filled); err != nil {
		return nil, err
	}
	out := meta.NewObject(unsaid(whole.Tree(), short.Tree(), filled.Tree()).(map[string]any)).Clone()
	dropEmpty(to.Schema(), out.Tree(), obj.Tree())
	if same, err := alike(ctx, to, out, whole); !same {
		return whole, err
	}
	return out, nil
}

// alike reports whether a server makes the same of two new objects.
func alike(ctx context.Context, v *resource.Version, a, b *meta.Object) (bool, error) {
	a, b = a.Clone(), b.Clone()
	for _, obj := range []*meta.Object{a, b} {
		v.Normalize(obj)
		if err := fill(ctx, v, obj); err != nil {
			return false, err
		}
	}
	return meta.Equal(a.Tree(), b.Tree()), nil
}

// fill fills in what the server does with a new object of the version.
func fill(ctx context.Context, v *resource.Version, obj *meta.Object) error {
	return v.Defaults(v.NewChange(ctx, obj, nil, ""))
}

// unsaid returns whole without what short does not say and filled, which is short with
// defaults, says alike. Items of lists of one length are those of one another.
func unsaid(whole, short, filled any) any {
	if meta.Equal(whole, filled) {
		return short
	}
	switch whole := whole.(type) {
	case map[string]any:
		said, ok := short.(map[string]any)
		with, ok2 := filled.(map[string]any)
		if !ok || !ok2 {
			return whole
		}
		out := map[string]any{}
		for field, value := range whole {
			below, ok := said[field]
			switch {
			case ok:
				out[field] = unsaid(value, below, with[field])
			case !meta.Equal(value, with[field]):
				out[field] = value
			}
		}
		return out
	case []any:
		said, _ := short.([]any)
		with, _ := filled.([]any)
		if len(said) != len(whole) || len(with) != len(whole) {
			return whole
		}
		out := make([]any, len(whole))
		for i, item := range whole {
			out[i] = unsaid(item, said[i], with[i])
		}
		return out
	}
	return whole
}

// dropEmpty drops the empty structs and the nulls that Go writes because it cannot leave them
// out, but for those that stand in said at the same place.
func dropEmpty(s *schema.Schema, tree, said map[string]any) {
	if s == nil || s.Struct == nil {
		return
	}
	for name, value := range tree {
		f := s.Struct.Field(name)
		if f == nil || f.Schema == nil {
			continue
		}
		there, is := said[name]
		dropBelow(f.Schema, value, there)
		m, ok := value.(map[string]any)
		if empty := ok && len(m) == 0 && f.Schema.Struct != nil && !f.Pointer; !is && (empty || value == nil) {
			delete(tree, name)
		}
	}
}

func dropBelow(s *schema.Schema, value, said any) {
	switch v := value.(type) {
	case map[string]any:
		there, _ := said.(map[string]any)
		dropEmpty(s, v, there)
		if s.Values != nil {
			for key, e := range v {
				dropBelow(s.Values, e, there[key])
			}
		}
	case []any:
		there, _ := said.([]any)
		for i, e := range v {
			if s.Items != nil && i < len(there) {
				dropBelow(s.Items, e, there[i])
			} else if s.Items != nil {
				dropBelow(s.Items, e, nil)
			}
		}
	}
}
