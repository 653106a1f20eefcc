// Package resource holds the kinds of a server as it serves them, compiled for its
// names: a [Type] for each, with a [Version] for each form of its objects. It is what
// is done with an object between the wire and the store: a version makes one conform
// to its schema, fills in defaults, prepares and validates a write, converts from and
// to other versions and merges what an older one cannot say.
package resource

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// Type is a Kind compiled for a naming profile: one resource type as it is
// served. A Type never changes; a changed definition makes a new one.
type Type struct {
	registry.Type
	registry.Behavior
	compat.Reference

	Versions []*Version // by priority, the most stable first
	Storage  *Version   // that objects are stored in
	Hub      *Version   // that caches hold objects in, and hooks see: Storage, if nothing converts

	Withheld     bool                                    // the server has the kind and does not serve it: its names and its objects are still its own
	Status       bool                                    // the sub-resource status exists; spec and status are written apart
	Subresources []Subresource                           // of all versions, see those of a Version
	Fields       []registry.SelectableField              // of the hub
	ValidateName func(name string, prefix bool) []string // nil: a DNS subdomain
	Pool         *registry.Allocator
	Names        names.Profile
	Features     *features.Set // of the server, see Enable
	Rules        compat.Rules  // of the server

	Strategic     bool // strategic merge patch is offered
	ConformOnRead bool // stored objects may be of an older schema: what the present one does not know is dropped, its defaults filled in

	Origin Origin       // the definition that made it; zero: it is registered
	Docs   *schema.Docs // field documentation that is not in the schemas, or nil

	// Source reads the schema of a version again, as the definition has it: with what
	// people read of it, which Version.Schema leaves out. nil: that is all.
	Source func(*Version) *schema.Schema

	// Webhook is what the definition says of the webhook that converts objects, which
	// Converter asks. nil: versions of a definition differ in nothing but their schemas.
	Webhook   map[string]any
	Converter Converter

	whole        func() (*Type, error)   // the kind with all its versions, see Reading; nil: this is it
	schemas      func() []*schema.Schema // of the versions, as the definition has them; nil: each has its own
	converts     bool                    // see Converts
	fieldManager fieldManager
}

// Reading returns the type with all versions that objects of it were ever stored in, if
// this one does not have the version that an apiVersion names: another release may have
// written it. Both have the same hub.
func (t *Type) Reading(apiVersion string) (*Type, error) {
	if t.whole == nil || t.ByAPIVersion(apiVersion) != nil {
		return t, nil
	}
	return t.whole()
}

// Releases reports whether there are versions that this release does not have.
func (t *Type) Releases() bool { return t.whole != nil }

// Converter asks somebody else to convert objects.
type Converter interface {
	// Convert returns objects in a version, in the same order. What goes in stays as it
	// is, and shares its metadata with what comes out. The error is a *meta.Status, or
	// that of ctx.
	Convert(ctx context.Context, objs []*meta.Object, to *Version) ([]*meta.Object, error)
}

// Origin is one state of a definition. It tells the types that follow each other under
// one name apart.
type Origin struct {
	UID        string
	Generation int64
}

// Defined reports whether a definition made the type, which goes with it.
func (t *Type) Defined() bool { return t.Origin != Origin{} }

// Version is one served version of a Type.
type Version struct {
	*Type
	Group      string // which may be another than the type's
	Name       string
	Columns    []registry.Column
	Deprecated string // the warning for who asks for it; empty: none
	Removed    string // the release that does not serve a deprecated version any more; empty: none is known
	Served     bool
	Dummy      string // the kind that discovery tells of a version that serves sub-resources of the objects alone; empty: it serves these, too

	Subresources []Subresource // those of the type that are served in this version, as its callers know them
	Selectables  []Selectable  // the fields that its callers select by

	lacks      []string             // sub-resources of the type that are not served in this version
	schema     *schema.Schema       // see Schema
	gated      bool                 // it has fields of features that are off
	at         int                  // of it in Type.schemas
	conversion *registry.Conversion // with the hub; nil: of the hub, or nothing converts
	columns    *Version             // see ColumnsVersion
	rules      func() ruled         // of the schema; compiled when first needed

	proto proto
	mark  mark
}

// Subresource is a sub-resource as it is served.
type Subresource struct {
	registry.Subresource
	Body *Version // of the body, if that is not the item: the one that discovery tells

	// Readable returns the error for a GET of an item that has nothing to show at the
	// sub-resource; nil: all items have something.
	Readable func(obj *meta.Object) error
}

// BodyIn returns the version of the body that an apiVersion names: Body, unless it is one
// of an acting sub-resource, which takes all that are served.
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

// Version returns the version of that name in the type's own group, or nil.
func (t *Type) Version(name string) *Version {
	return t.VersionIn(meta.GroupVersion{Group: t.Group, Version: name})
}

// VersionIn returns the version of a group, or nil.
func (t *Type) VersionIn(gv meta.GroupVersion) *Version {
	i := slices.IndexFunc(t.Versions, func(v *Version) bool { return v.GroupVersion() == gv })
	if i < 0 {
		return nil
	}
	return t.Versions[i]
}

// ByAPIVersion returns the version of the type that an apiVersion, group/version, names, or nil.
func (t *Type) ByAPIVersion(apiVersion string) *Version {
	for _, v := range t.Versions {
		if v.GVK().APIVersion() == apiVersion {
			return v
		}
	}
	return nil
}

// Serve leaves served what keep says of the versions that are, and reports whether any
// is that has the objects. It is for who makes the type, before others see it.
func (t *Type) Serve(keep func(*Version) bool) bool {
	t.ServedVersions = nil
	for _, v := range t.Versions {
		if v.Served = v.Served && keep(v); v.Served && v.Dummy == "" {
			t.ServedVersions = append(t.ServedVersions, v.GroupVersion())
		}
	}
	return len(t.ServedVersions) > 0
}

// Subresource returns the sub-resource of that name, or nil, and nil if the
// version does not serve it. Status and scale are found here too.
func (v *Version) Subresource(name string) *Subresource { return named(v.Subresources, name) }

// Subresource returns the sub-resource of that name, or nil, whichever versions serve it.
// Status and scale are found here too.
func (t *Type) Subresource(name string) *Subresource { return named(t.Subresources, name) }

func named(list []Subresource, name string) *Subresource {
	i := slices.IndexFunc(list, func(s Subresource) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// StorageKey returns the storage key of one object.
func (t *Type) StorageKey(k meta.Key) string {
	return StorageKey(t.GroupResource(), k)
}

// StorageKey returns the storage key of one object of a type, served or not.
func StorageKey(r meta.GroupResource, k meta.Key) string {
	return r.String() + "/" + k.Namespace + "/" + k.Name
}

// ParseStorageKey returns the parts of a storage key: "resource.group/namespace/name".
func ParseStorageKey(key string) (r meta.GroupResource, k meta.Key, ok bool) {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) != 3 {
		return r, k, false
	}
	r.Resource, r.Group, _ = strings.Cut(parts[0], ".")
	return r, meta.Key{Namespace: parts[1], Name: parts[2]}, true
}

// ReservationPrefix begins the storage keys of records that are no objects: each
// reserves a value for the object that it names, see Pool and the tag word unique.
// No resource is named so.
const ReservationPrefix = "~reserved/"

// KindsKey is that of the record that says with which shapes of its kinds a store was
// served. A store begins with it. No resource is named so.
const KindsKey = "~kinds"

// SerialKey returns where the store keeps the last of the writes that are made one after the
// other, whatever object each is of, see objects.Write.Sequence. No resource is named so.
func SerialKey(serial string) string { return "~serial/" + serial }

// SequencePrefix begins the storage keys of records that are no objects: each names the last
// write of a sequence that admission plugins serialize, see admission.Request. No resource is
// named so.
const SequencePrefix = "~sequence/"

// SequenceKey returns the storage key of a sequence of a namespace, or of the cluster. It has one
// slash: keys with two are those of objects.
func SequenceKey(sequence meta.Key) string {
	return SequencePrefix + sequence.Namespace + ":" + url.PathEscape(sequence.Name)
}

// TermPrefix begins the storage keys of records that are no objects: each stands for the
// term of who leads by a Lease, and is another one in the next. No resource is named so.
const TermPrefix = "~term/"

// FencePrefix begins the storage keys of records that are no objects: each is the fence of a
// namespace, see admission.PluginContext. No resource is named so.
const FencePrefix = "~fence/"

// ReservationKey returns where the store keeps who of a type has a claim, such as a
// PoolClaim.
func ReservationKey(r meta.GroupResource, claim string) string {
	return ReservationPrefix + r.String() + "/" + claim
}

// PoolClaim returns the claim to a value of a pool.
func PoolClaim(value string) string { return "pool/" + value }

// GroupVersion returns the wire group and version.
func (v *Version) GroupVersion() meta.GroupVersion {
	return meta.GroupVersion{Group: v.Group, Version: v.Name}
}

// GVK returns the wire group, version and kind.
func (v *Version) GVK() meta.GroupVersionKind {
	return meta.GroupVersionKind{Group: v.Group, Version: v.Name, Kind: v.Kind}
}

// ListGVK returns the group, version and kind of lists.
func (v *Version) ListGVK() meta.GroupVersionKind {
	return meta.GroupVersionKind{Group: v.Group, Version: v.Name, Kind: v.ListKind}
}

// Resource returns the wire group, version and plural. It is what callers of the
// version know; what is kept of the type has its GroupResource.
func (v *Version) Resource() meta.GroupVersionResource {
	return meta.GroupVersionResource{Group: v.Group, Version: v.Name, Resource: v.Plural}
}
