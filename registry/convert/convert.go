// Package convert rewrites objects and manifests to another version of their kinds without a
// server. It uses the conversions of the kinds themselves, so files that were written for an older
// version of an API can be updated to a newer version.
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

// Converter converts objects of a set of kinds. It is safe for concurrent use as long as Form is
// not changed.
type Converter struct {
	// Form is the format of the documents that Manifests returns: "yaml", "json", or "" to keep the
	// format of each document.
	Form string

	versions map[meta.GroupVersionKind]*resource.Version
	lists    map[meta.GroupVersionKind]*resource.Version // by the kinds of lists
}

// New returns a converter for kinds under a naming profile. The error joins all errors of the
// kinds; the returned Converter then knows only the other kinds.
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
			if v.DiscoveryKind != "" {
				continue
			}
			c.versions[v.GVK()], c.lists[v.ListGVK()] = v, v
		}
	}
	return c, errors.Join(faults...)
}

// ErrVersion reports that a kind does not have the requested version.
var ErrVersion = errors.New("unknown version")

// Object returns obj converted to apiVersion ("group/version"). If apiVersion is empty, obj is
// converted to the preferred version of its kind: the most stable served version that is not
// deprecated. A field that obj leaves to the server's defaults is set in the result only if the
// defaults of the two versions differ.
//
// The items of a list are converted separately. Objects of kinds that the converter does not have
// are returned unchanged. obj is not modified; it is returned itself if nothing needs conversion.
// The error wraps ErrVersion, or names the field that the version of obj does not have, or says why
// the conversion failed.
func (c *Converter) Object(ctx context.Context, obj *meta.Object, apiVersion string) (*meta.Object, error) {
	if err := c.checkVersion(apiVersion); err != nil {
		return nil, err
	}
	return (&conversion{Converter: c, ctx: ctx, apiVersion: apiVersion}).object(obj)
}

// checkVersion returns ErrVersion if no kind has the version.
func (c *Converter) checkVersion(apiVersion string) error {
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
	return fmt.Errorf("%w: no kind has the version %s%s", ErrVersion, apiVersion, suggest.Near(apiVersion, slices.Sorted(maps.Keys(all))...))
}

// conversion converts one object or the documents of one file.
type conversion struct {
	*Converter
	ctx        context.Context
	apiVersion string   // the requested version; empty: the preferred version of each kind
	place      string   // prefix of warnings that locates the object, such as "items[3]: "
	warnings   []string // reasons why a server would reject converted objects
}

// object converts an object or a list.
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
		c.warnUnknownVersion(obj, gvk)
		return obj, nil
	}
	to, err := c.target(from)
	if err != nil || to == from {
		return obj, err
	}
	given := obj.Clone()
	unknown, faults := from.Normalize(given)
	if len(faults) > 0 {
		return nil, from.DecodeError(faults)
	}
	if len(unknown) > 0 {
		return nil, from.CannotHandle(fmt.Sprintf("unknown field %q", unknown[0]))
	}
	out, err := rewrite(c.ctx, obj, given, from, to)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.Get("status"); !ok {
		out.Delete("status") // added by the conversion; only the server sets it
	}
	c.warnRejection(out, to)
	return out, nil
}

// target returns the version to which objects of version from are converted.
func (c *conversion) target(from *resource.Version) (*resource.Version, error) {
	if c.apiVersion == "" {
		return preferred(from.Type), nil
	}
	if to := from.Type.ByAPIVersion(c.apiVersion); to != nil && to.DiscoveryKind == "" {
		return to, nil
	}
	return nil, fmt.Errorf("%w: %s of %s has no version %s", ErrVersion, from.Kind, from.GVK().APIVersion(), c.apiVersion)
}

// listOf converts a list of a kind, such as a PodList. Its items may omit apiVersion and kind.
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

// list converts the items of a list. Items without apiVersion and kind are of version of, if it is
// not nil.
func (c *conversion) list(obj *meta.Object, of *resource.Version) (*meta.Object, error) {
	out := obj
	place := c.place
	defer func() { c.place = place }()
	for i, item := range obj.List("items") {
		tree, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is not an object", i)
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

// item returns a converted item, or nil if the item needs no conversion.
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

// kindOf returns the group, version and kind that an object declares.
func kindOf(obj *meta.Object) meta.GroupVersionKind {
	group, version, ok := strings.Cut(obj.APIVersion(), "/")
	if !ok {
		group, version = "", group
	}
	return meta.GroupVersionKind{Group: group, Version: version, Kind: obj.Kind()}
}

// preferred returns the most stable served version in the group of the type that is not deprecated,
// or the hub if there is none.
func preferred(t *resource.Type) *resource.Version {
	i := slices.IndexFunc(t.Versions, func(v *resource.Version) bool { return v.Served && v.Deprecated == "" && v.Group == t.Group })
	if i < 0 {
		return t.Hub
	}
	return t.Versions[i]
}

// rewrite converts obj from one version to another. given is obj normalized to from. Fields that
// given leaves to the defaults of the server stay unset in the result if the defaults of to have
// the same effect.
func rewrite(ctx context.Context, obj, given *meta.Object, from, to *resource.Version) (*meta.Object, error) {
	whole := given.Clone()
	if err := fill(ctx, from, whole); err != nil {
		return nil, err
	}
	whole, err := to.Convert(ctx, whole)
	if err != nil {
		return nil, err
	}
	whole = whole.Clone()
	dropEmpty(to.Schema(), whole.Tree(), obj.Tree())
	short, err := to.Convert(ctx, given)
	if err != nil {
		return whole, nil // the conversion needs the defaults
	}
	filled := short.Clone()
	if err := fill(ctx, to, filled); err != nil {
		return nil, err
	}
	out := meta.NewObject(dropDefaults(whole.Tree(), short.Tree(), filled.Tree()).(map[string]any)).Clone()
	dropEmpty(to.Schema(), out.Tree(), obj.Tree())
	if same, err := equivalent(ctx, to, out, whole); !same {
		return whole, err
	}
	return out, nil
}

// equivalent reports whether a server would store the same for the new objects a and b.
func equivalent(ctx context.Context, v *resource.Version, a, b *meta.Object) (bool, error) {
	a, b = a.Clone(), b.Clone()
	for _, obj := range []*meta.Object{a, b} {
		v.Normalize(obj)
		if err := fill(ctx, v, obj); err != nil {
			return false, err
		}
	}
	return meta.Equal(a.Tree(), b.Tree()), nil
}

// fill sets the defaults that the server sets in a new object of the version.
func fill(ctx context.Context, v *resource.Version, obj *meta.Object) error {
	return v.Defaults(v.NewChange(ctx, obj, nil, ""))
}

// dropDefaults returns whole without the fields that short does not have and that equal the
// default. whole is the object with the defaults of the old version, short the object without
// defaults, and filled is short with the defaults of the new version. Items of lists correspond by
// index if the lists have the same length.
func dropDefaults(whole, short, filled any) any {
	if meta.Equal(whole, filled) {
		return short
	}
	switch whole := whole.(type) {
	case map[string]any:
		set, ok := short.(map[string]any)
		with, ok2 := filled.(map[string]any)
		if !ok || !ok2 {
			return whole
		}
		out := map[string]any{}
		for field, value := range whole {
			below, ok := set[field]
			switch {
			case ok:
				out[field] = dropDefaults(value, below, with[field])
			case !meta.Equal(value, with[field]):
				out[field] = value
			}
		}
		return out
	case []any:
		set, _ := short.([]any)
		with, _ := filled.([]any)
		if len(set) != len(whole) || len(with) != len(whole) {
			return whole
		}
		out := make([]any, len(whole))
		for i, item := range whole {
			out[i] = dropDefaults(item, set[i], with[i])
		}
		return out
	}
	return whole
}

// dropEmpty removes empty structs and nulls, which the Go encoding always writes, unless given has
// the field at the same place.
func dropEmpty(s *schema.Schema, tree, given map[string]any) {
	if s == nil || s.Struct == nil {
		return
	}
	for name, value := range tree {
		f := s.Struct.Field(name)
		if f == nil || f.Schema == nil {
			continue
		}
		there, isSet := given[name]
		dropBelow(f.Schema, value, there)
		m, ok := value.(map[string]any)
		if empty := ok && len(m) == 0 && f.Schema.Struct != nil && !f.Pointer; !isSet && (empty || value == nil) {
			delete(tree, name)
		}
	}
}

// dropBelow is dropEmpty for the objects inside a value.
func dropBelow(s *schema.Schema, value, given any) {
	switch v := value.(type) {
	case map[string]any:
		there, _ := given.(map[string]any)
		dropEmpty(s, v, there)
		if s.Values != nil {
			for key, e := range v {
				dropBelow(s.Values, e, there[key])
			}
		}
	case []any:
		there, _ := given.([]any)
		for i, e := range v {
			if s.Items != nil && i < len(there) {
				dropBelow(s.Items, e, there[i])
			} else if s.Items != nil {
				dropBelow(s.Items, e, nil)
			}
		}
	}
}
