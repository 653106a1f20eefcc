// Package registry says what a kind is.
//
// Built-in kinds, kinds from Go structs (Of) and kinds from custom resource
// definitions (FromCRD) are all a Kind. A server makes its resource types of them
// when it is built; a Type tells of one.
package registry

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
)

// Kind is a kind as a program declares it, before a server is built: names are
// spec names. Make one with Of or FromCRD.
type Kind struct {
	Group                            string
	Kind, ListKind, Plural, Singular string
	ShortNames, Categories           []string
	Scope                            Scope
	Versions                         []KindVersion
	Features
	Behavior
	Docs *schema.Docs // the comments of its Go types, or nil

	// Reference is what a built-in kind imitates.
	Reference *compat.Reference

	custom  bool           // from a CustomResourceDefinition
	webhook map[string]any // see ConversionWebhook
	goType  reflect.Type   // of a kind from a Go struct, else nil
	err     error          // of the definition

	// hooks adds the typed hooks to the behavior.
	hooks func(b *Behavior, s *schema.Schema, p names.Profile)
}

// String names the kind by kind and group, and by its Go type.
func (k *Kind) String() string {
	name := "kind " + meta.GroupKind{Group: k.Group, Kind: cmp.Or(k.Kind, "(no name)")}.String()
	if k.goType != nil {
		name += fmt.Sprintf(" (Go type %s)", k.goType)
	}
	return name
}

// Err returns what was found wrong with the definition when the kind was made of it.
// The Build of a server reports it, with all that it finds itself.
func (k *Kind) Err() error { return k.err }

// Custom reports whether a CustomResourceDefinition defines the kind: its group is a
// wire name.
func (k *Kind) Custom() bool { return k.custom }

// ConversionWebhook returns what a definition says of the webhook that converts the
// objects of the kind, its spec.conversion.webhook; nil: there is none.
func (k *Kind) ConversionWebhook() map[string]any { return k.webhook }

// Hooks returns what the kind does with trees of the schema that it has under these
// names: its Behavior, and its typed hooks after that.
func (k *Kind) Hooks(s *schema.Schema, p names.Profile) Behavior {
	b := k.Behavior
	if k.hooks != nil {
		k.hooks(&b, s, p)
	}
	return b
}

// VersionFor returns the version that a Go struct is: of a kind from Go structs the one
// that was declared with it, of any other kind, whose versions have no structs, the
// stored one. nil: the struct is that of no version.
func (k *Kind) VersionFor(t reflect.Type) *KindVersion {
	for i := range k.Versions {
		v := &k.Versions[i]
		if v.goType == t || v.goType == nil && v.Storage {
			return v
		}
	}
	return nil
}

// Scope says where the objects of a kind live.
type Scope int

// The scopes.
const (
	Namespaced Scope = iota
	Cluster
)

// KindVersion is one version of a Kind.
type KindVersion struct {
	Group               string // spec name, if it is another than the kind's
	Name                string
	Schema              func(p names.Profile) (*schema.Schema, error) // nil result: any object
	Storage             bool                                          // the version that is stored; exactly one
	Served              bool
	Lifetime            Lifetime              // the releases that serve it
	Deprecated          string                // warning text for callers; empty: not deprecated, or as Lifetime says
	Replacement         meta.GroupVersionKind // what they should use instead, as the warning says; spec names
	MissingSubresources []string              // sub-resources of the kind that this version does not serve; a status without one is written with the rest
	Columns             []Column
	Scale               *Scale            // where the size is in this version; nil: as the kind says
	Fields              map[string]string // as those of a Spoke
	OwnFields           []SelectableField // as those of a Spoke

	// Conversion is between the version and the hub, the one version without. nil
	// in all versions: nothing converts, versions have one shape.
	Conversion func(s *schema.Schema, p names.Profile) (*Conversion, error)

	goType reflect.Type // of a version from a Go struct, else nil
}

// String names the version as apiVersions do, without the group that is the kind's.
func (v *KindVersion) String() string {
	return meta.GroupVersion{Group: v.Group, Version: v.Name}.String()
}

// Features are what callers can do with the objects of a kind beyond reading and
// writing them.
type Features struct {
	Status       bool   // the sub-resource status exists; spec and status are written apart
	Scale        *Scale // the sub-resource scale, or nil
	Subresources []Subresource
	Fields       []SelectableField

	// ValidateName returns what is wrong with a name (or, with prefix, a
	// generateName). nil: a DNS subdomain.
	ValidateName func(name string, prefix bool) []string

	// Allocator gives objects values that no other object of the kind may hold, such
	// as addresses; nil: none.
	Allocator *Allocator
}

// Behavior is what a kind does with the trees of its objects beyond their schema.
// The zero value is a plain stored object.
type Behavior struct {
	// Upgrade fits a stored object, in place, that a release of the program wrote whose
	// types had another shape: it moves what a field held that has another name or type
	// now, deletes what nobody needs, and may give it another of the kind's versions. It
	// sees the objects as they are stored, of any shape and version, also of today's, which it
	// leaves as they are. With an error the object cannot be read. Upgrade is for kinds of
	// Go structs; it is not asked as long as the store holds nothing of another shape.
	Upgrade func(stored *meta.Object) error

	// Default fills in what the schema's defaults cannot say. It runs on every
	// write, after them.
	Default func(w *Change[meta.Object])

	// Prepare fits an object to be written: clears what callers may not set,
	// merges convenience fields. It does not run for sub-resources, whose Merge
	// takes only what callers may set.
	Prepare func(w *Change[meta.Object])

	// Validate adds the faults of the object beyond the schema's to w.
	Validate func(w *Change[meta.Object])

	// Changed reports whether a write raises metadata.generation. nil: anything
	// but metadata and status changed.
	Changed func(w *Change[meta.Object]) bool

	// GracePeriod returns how a delete goes on: the grace period in seconds that the
	// object gets. nil: none, deleted at once.
	GracePeriod func(obj *meta.Object, asked *int64) int64

	// BeginDelete fits an object when its deletion begins and it stays for now.
	BeginDelete func(w *Change[meta.Object])

	// RetainOnDelete reports whether a deleted object stays even without finalizers in
	// its metadata.
	RetainOnDelete func(obj *meta.Object) bool

	// Initial returns the objects that exist from the start of every server. One that
	// is there already stays as it is.
	Initial func(p names.Profile) []*meta.Object

	// Act makes the type virtual: nothing is stored, a POST calls Act and
	// answers what it returns.
	Act Act

	// Read makes the type virtual: nothing is stored, a get or a list shows of the
	// objects that it returns those that are asked for. They are the caller's own.
	Read func(ctx context.Context) ([]*meta.Object, error)

	// Warn returns warnings for the caller who wrote a valid object.
	Warn func(w *Change[meta.Object]) []string
}

// Allocator hands out values of which each belongs to one object of a kind at a time.
// Values are the kind's own words. Who holds one is a record in the store, written
// in one commit with the object, so that of all servers over a store one gives it.
// An object that loses a value to another one meanwhile is made anew.
type Allocator struct {
	// Values returns the values that an object holds.
	Values func(obj *meta.Object) []string

	// Allocate runs after Prepare, not for sub-resources. It gives an object what it
	// lacks and returns faults for what it cannot have. An error says that nothing
	// is left.
	Allocate func(a *Allocation) ([]meta.StatusCause, error)

	// Source is the type, by its spec name, of objects that say what else there is to
	// give; zero: none do.
	Source meta.GroupResource

	// Initial returns, for the pool of services, the objects of Source that say what
	// Allocate gives without any: the server makes them, and makes them again if they go.
	Initial func(p names.Profile) []*meta.Object
}

// Allocation is an object that a pool is to give values to.
type Allocation struct {
	Object, Old *meta.Object // Old is nil on create

	// Free reports whether nobody but Old holds a value.
	Free func(value string) bool

	// Sources are the objects of the pool's Source, if that is served, as this server
	// sees them. They are shared: nobody changes them.
	Sources []*meta.Object
}

// SelectableField is a field that field selectors know beside metadata.name and
// metadata.namespace. Path leads to a scalar; a missing or empty one reads as what Else
// leads to, and without that as Absent.
type SelectableField struct {
	Name     string
	Path     []string // nil: Name split at dots
	Fallback []string // nil: there is none
	Absent   string
}

// Subresource is an endpoint below an item. Update kinds (Merge) read and write
// the item, acting ones (Act) answer a POST, and connecting ones (Connect) hand
// requests on to another server.
type Subresource struct {
	Name string

	// Merge takes what a caller may change through this endpoint from in into
	// obj, a copy of the stored object, but for Metadata. The result goes through
	// the same write function as any update.
	Merge func(obj, in *meta.Object)

	// Metadata are the fields of the item's metadata that callers may change
	// through this endpoint, too: some of labels, annotations, finalizers and
	// ownerReferences.
	Metadata []string

	// Validate adds the faults of a write through this endpoint to w, beyond
	// those that the kind's own Validate finds.
	Validate func(w *Change[meta.Object])

	// Body is the kind of the body, if that is not the item. Callers of a version of the
	// item's kind have the version of the body that is in the same group and has the same
	// name, if there is one, and else the hub, which Show makes and Merge takes. To an Act
	// they may send any version, and it is checked by the rules of the kind, but for the
	// metadata.
	Body *Kind

	// WriteOnly leaves only PUT.
	WriteOnly bool

	// Show makes the body that callers see from the item; nil: the item itself.
	Show func(obj *meta.Object) *meta.Object

	// Act answers a POST, whose body is created as admission sees it.
	Act Act

	// Connect hands requests on. The object of the call is of the kind of Body, made of
	// the query.
	Connect *Connection
}

// Column is one column of the Table representation, behind that of the name. Type is
// string, integer, number, boolean or date; columns with a Priority above 0 are shown
// on demand (kubectl get -o wide).
type Column struct {
	Name, Type, Format, Doc string
	Priority                int
	JSONPath                string                     // simple path, such as .spec.size, into what the version has
	Cell                    func(obj *meta.Object) any // a value of the column's type; nil: what JSONPath leads to
}

// Act answers a request to a virtual type or an acting sub-resource. Of a review
// it returns the object of the call with its status; nil is answered as a Status that
// says Success.
type Act func(ctx context.Context, call *Call) (*meta.Object, error)

// Call is a request to a virtual type or to an acting sub-resource.
type Call struct {
	Resource    meta.GroupVersionResource
	Subresource string
	Key         meta.Key
	User        *meta.User
	Object      *meta.Object // the body
	DryRun      bool
	Manager     string // the field manager of the caller
	Names       names.Profile
	Warn        func(text string) // sends a warning to the caller
	Client      Client            // of the server that is called
}

// Client is what an Act reads and writes objects with, as the server itself: a part of
// client.Client, which says more. Update goes through an acting sub-resource, too,
// if that has a Merge; then nobody becomes the owner of what changes, and admission is not
// asked again, since it was about the body.
type Client interface {
	Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error)
	List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error)
	Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(obj *meta.Object) error) (*meta.Object, error)
	Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o DeleteOptions) error
}

// DeleteOptions are the options of a delete from inside.
type DeleteOptions struct {
	UID          string // precondition, if not empty
	Version      string // precondition on resourceVersion, if not empty
	Propagation  string // Background, Foreground, Orphan or empty for the default
	GraceSeconds *int64
}

// Scale is where a kind keeps what the sub-resource scale shows: paths such as
// .spec.replicas. Selector may be empty, or lead to a label selector as text or
// as an object.
type Scale struct {
	SpecReplicas, StatusReplicas, Selector string

	// Body is the kind that callers see, whose hub is autoscaling/v1 Scale: see
	// Subresource.Body. nil: that alone.
	Body *Kind
}
