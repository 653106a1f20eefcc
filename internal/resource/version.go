package resource

import (
	"strconv"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
)

// Version is one API version of a Type.
type Version struct {
	*Type
	Group         string // may differ from the type's group
	Name          string
	Columns       []registry.Column
	Deprecated    string // the warning that clients of the version get; empty: not deprecated
	Removed       string // the release that removes the deprecated version; empty: unknown
	Served        bool
	DiscoveryKind string // the kind that discovery lists for a version in which only subresources are served; empty: objects are served, too

	Subresources []Subresource // the subresources that this version serves, with bodies in the version that its clients use
	Selectables  []Selectable  // the fields by which clients of this version can select

	lacks      []string             // names of subresources that the type has and this version does not serve
	schema     *schema.Schema       // see Schema
	gated      bool                 // the schema has fields with a disabled feature gate
	at         int                  // index of the version in Type.schemas
	conversion *registry.Conversion // conversion to and from the hub; nil for the hub and for types without conversions
	columns    *Version             // see ColumnsVersion
	rules      func() compiledRules // the CEL rules of the schema, compiled on first use

	proto proto
	mark  mark
}

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

// Resource returns the wire group, version and plural. Clients know the version by it; stores and
// caches use the type's GroupResource instead.
func (v *Version) Resource() meta.GroupVersionResource {
	return meta.GroupVersionResource{Group: v.Group, Version: v.Name, Resource: v.Plural}
}

// Verbs returns the verbs that clients of the version can use on objects, as discovery lists them.
func (v *Version) Verbs() []string {
	if v.DiscoveryKind != "" {
		return nil
	}
	return v.Type.Verbs()
}

// AsStored reports whether v shows objects exactly as caches hold them.
func (v *Version) AsStored() bool { return v == v.Hub && !v.ConformOnRead }

// SchemaMark identifies a version together with its current schema, by its address.
type SchemaMark struct{ _ byte }

// SchemaMark returns the mark of v. Cache entries carry it if Convert to v leaves their object
// unchanged. When the type is compiled again, the new version has another mark.
func (v *Version) SchemaMark() *SchemaMark {
	v.mark.once.Do(func() { v.mark.value = new(SchemaMark) })
	return v.mark.value
}

// mark holds the lazily allocated SchemaMark. The mark is an allocation of its own, so that an
// entry that carries it does not keep the Version in memory.
type mark struct {
	once  sync.Once
	value *SchemaMark
}

// Proto returns the protobuf codec of the version, or nil if its objects have no protobuf encoding.
func (v *Version) Proto() *codec.Proto {
	v.proto.once.Do(func() {
		if v.NoProtobuf {
			return
		}
		// NewProto fails if the struct has no field numbers: the kind has no protobuf encoding.
		v.proto.value, _ = codec.NewProto(v.Schema())
	})
	return v.proto.value
}

// proto holds the protobuf codec, which is made on first use.
type proto struct {
	once  sync.Once
	value *codec.Proto
}

// FormName returns the name of the version in the keys of cached encodings. For a custom kind it
// includes the state of the definition, so that encodings of an older schema are not used.
func (v *Version) FormName() string {
	switch {
	case v.Group != v.Type.Group:
		return v.Group + "/" + v.Name
	case !v.Defined():
		return v.Name
	}
	return v.Name + "@" + v.Origin.UID + "/" + strconv.FormatInt(v.Origin.Generation, 10)
}
