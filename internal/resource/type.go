// Package resource compiles kinds into the resource types that a server serves.
//
// Compile turns a registry.Kind into a [Type] with one [Version] per API version, for one naming
// profile. Types and versions then do the work between the wire and the store: they normalize
// objects to their schema, fill in defaults, prepare and validate writes, convert between versions,
// and merge a write in an older version with the fields that only the stored version has. A
// [Catalog] holds the types that a server currently has.
package resource

import (
	"context"
	"slices"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// Type is a compiled kind: one resource type as the server serves it. A Type is immutable after the
// server publishes it; a changed definition is compiled into a new Type.
type Type struct {
	registry.Type
	registry.Behavior
	compat.Reference

	Versions []*Version // in order of priority, see CompareVersions
	Storage  *Version   // the version in which objects are stored
	Hub      *Version   // the version in which caches hold objects and hooks see them; Storage if the kind has no conversions

	Unserved     bool                                    // the kind is registered but not served; its names stay reserved and its objects stay stored
	Status       bool                                    // the status subresource exists; spec and status are written separately
	Subresources []Subresource                           // the subresources of all versions; each Version has its own subset
	Fields       []registry.SelectableField              // the selectable fields of the hub
	ValidateName func(name string, prefix bool) []string // nil: names are DNS subdomains
	Pool         *registry.Allocator
	Names        names.Profile
	Features     *features.Set // the server's feature gates, set by Enable
	Rules        compat.Rules  // the server's compatibility rules

	Strategic     bool // strategic merge patch is accepted
	ConformOnRead bool // stored objects are pruned to the current schema and defaulted on each read; true for custom kinds, whose schema may change

	Origin Origin       // the definition that the type was made from; zero for registered kinds
	Docs   *schema.Docs // field documentation that the schemas do not contain, or nil

	// Source rereads the schema of a version from the definition, including the documentation that
	// Version.Schema leaves out. If it is nil, Version.Schema is complete.
	Source func(*Version) *schema.Schema

	// Webhook is spec.conversion.webhook of the definition; Converter calls this webhook. If it is
	// nil, the versions of the definition differ only in their schemas.
	Webhook   map[string]any
	Converter Converter

	withAllVersions func() (*Type, error)   // compiles the kind with the versions of all releases, see Reading; nil: this type has all of them
	schemas         func() []*schema.Schema // returns the schemas of the versions, read from the definition on first use; nil: each Version has its own
	converts        bool                    // see Converts
	fieldManager    fieldManager
}

// WithStoredVersions returns the type for reading a stored object of apiVersion. This is t, unless t lacks the
// version and the kind has it in another release, which may have written the object; then it is a
// type with the versions of all releases. Both types have the same hub.
func (t *Type) WithStoredVersions(apiVersion string) (*Type, error) {
	if t.withAllVersions == nil || t.ByAPIVersion(apiVersion) != nil {
		return t, nil
	}
	return t.withAllVersions()
}

// HasOtherReleases reports whether the kind has versions that the release of the server does not have.
func (t *Type) HasOtherReleases() bool { return t.withAllVersions != nil }

// Converter converts objects by calling a conversion webhook.
type Converter interface {
	// Convert returns objs converted to a version, in the same order. It does not modify objs, and
	// the results share their metadata. The error is a *meta.Status or the error of ctx.
	Convert(ctx context.Context, objs []*meta.Object, to *Version) ([]*meta.Object, error)
}

// Origin identifies one state of a CustomResourceDefinition, so that types that replace each other
// under the same name can be distinguished.
type Origin struct {
	UID        string
	Generation int64
}

// Defined reports whether the type comes from a CustomResourceDefinition. Such a type is removed
// with its definition.
func (t *Type) Defined() bool { return t.Origin != Origin{} }

// Version returns the version with the given name in the type's own group, or nil.
func (t *Type) Version(name string) *Version {
	return t.VersionIn(meta.GroupVersion{Group: t.Group, Version: name})
}

// VersionIn returns the version with the given group and name, or nil.
func (t *Type) VersionIn(gv meta.GroupVersion) *Version {
	i := slices.IndexFunc(t.Versions, func(v *Version) bool { return v.GroupVersion() == gv })
	if i < 0 {
		return nil
	}
	return t.Versions[i]
}

// ByAPIVersion returns the version that apiVersion ("group/version") names, or nil.
func (t *Type) ByAPIVersion(apiVersion string) *Version {
	for _, v := range t.Versions {
		if v.GVK().APIVersion() == apiVersion {
			return v
		}
	}
	return nil
}

// Serve restricts the served versions to those for which keep returns true, and reports whether the
// type still serves objects in any version. Call it only before the type is published.
func (t *Type) Serve(keep func(*Version) bool) bool {
	t.ServedVersions = nil
	for _, v := range t.Versions {
		if v.Served = v.Served && keep(v); v.Served && v.DiscoveryKind == "" {
			t.ServedVersions = append(t.ServedVersions, v.GroupVersion())
		}
	}
	return len(t.ServedVersions) > 0
}

// Verbs returns the verbs of the type as discovery lists them.
func (t *Type) Verbs() []string {
	switch {
	case t.Read != nil:
		return []string{"get", "list"}
	case t.Virtual:
		return []string{"create"}
	}
	verbs := append(make([]string, 0, 8), "create", "delete")
	if !t.NoDeleteCollection {
		verbs = append(verbs, "deletecollection")
	}
	return append(verbs, "get", "list", "patch", "update", "watch")
}
