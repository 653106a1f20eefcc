// Package registry declares the kinds that a server serves.
//
// A [Kind] is made from Go structs ([Of]), from a CustomResourceDefinition ([FromCRD]), or is built
// in. A server compiles its kinds into resource types when it is built; a [Type] describes such a
// resource type.
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

// Kind is the declaration of a kind, independent of a server: its names are spec names, which a
// server maps to wire names by its naming profile. Make a Kind with Of or FromCRD.
type Kind struct {
	Group                            string
	Kind, ListKind, Plural, Singular string
	ShortNames, Categories           []string
	Scope                            Scope
	Versions                         []KindVersion
	Features
	Behavior
	Docs *schema.Docs // the comments of the Go types, or nil

	// Reference lists the exceptional behaviors of kube-apiserver that a built-in kind follows.
	Reference *compat.Reference

	custom  bool           // made from a CustomResourceDefinition
	webhook map[string]any // see ConversionWebhook
	goType  reflect.Type   // the Go struct of the hub; nil for custom kinds
	err     error          // the errors of the declaration

	// hooks appends the typed hooks to b.
	hooks func(b *Behavior, s *schema.Schema, p names.Profile)
}

// String returns the kind and group, and the Go type if there is one.
func (k *Kind) String() string {
	name := "kind " + meta.GroupKind{Group: k.Group, Kind: cmp.Or(k.Kind, "(no name)")}.String()
	if k.goType != nil {
		name += fmt.Sprintf(" (Go type %s)", k.goType)
	}
	return name
}

// Err returns the errors that were found when the kind was declared. Build of a server reports them
// together with the errors that it finds itself.
func (k *Kind) Err() error { return k.err }

// Custom reports whether the kind comes from a CustomResourceDefinition. The group of such a kind
// is a wire name.
func (k *Kind) Custom() bool { return k.custom }

// ConversionWebhook returns spec.conversion.webhook of the CustomResourceDefinition, or nil if no
// webhook converts the objects.
func (k *Kind) ConversionWebhook() map[string]any { return k.webhook }

// Hooks returns the hooks on untyped objects of schema s under the naming profile p: the hooks of
// Behavior, each followed by the typed hook of the same name.
func (k *Kind) Hooks(s *schema.Schema, p names.Profile) Behavior {
	b := k.Behavior
	if k.hooks != nil {
		k.hooks(&b, s, p)
	}
	return b
}

// VersionFor returns the version with the Go type t. For versions without Go types,
// any t matches the storage version. The result is nil if no version matches.
func (k *Kind) VersionFor(t reflect.Type) *KindVersion {
	for i := range k.Versions {
		v := &k.Versions[i]
		if v.goType == t || v.goType == nil && v.Storage {
			return v
		}
	}
	return nil
}

// Scope is the scope of a kind's objects. Namespaced objects belong to a namespace. The namespace must
// exist if the server has the admission plugin NamespaceLifecycle and the kind Namespace (builtin.Kinds);
// otherwise every name is accepted.
type Scope int

// The scopes.
const (
	Namespaced Scope = iota
	Cluster
)

// KindVersion is one version of a Kind.
type KindVersion struct {
	Group               string // spec name, if it differs from the kind's group
	Name                string
	Schema              func(p names.Profile) (*schema.Schema, error) // a nil schema accepts any object
	Storage             bool                                          // objects are stored in this version; set for exactly one version
	Served              bool
	Lifetime            Lifetime              // the releases that serve the version
	Deprecated          string                // warning for clients; empty: not deprecated, or derived from Lifetime
	Replacement         meta.GroupVersionKind // what clients should use instead, for the warning; spec names
	MissingSubresources []string              // subresources of the kind that the version does not serve; a status without its subresource is written with the object
	Columns             []Column
	Scale               *Scale            // paths of the scale subresource in this version; nil: those of the kind
	Fields              map[string]string // see Spoke
	OwnFields           []SelectableField // see Spoke

	// Conversion returns the conversion between the version and the hub; it is nil for the hub. If
	// it is nil for all versions, the kind has no conversions: the versions have the same
	// structure.
	Conversion func(s *schema.Schema, p names.Profile) (*Conversion, error)

	goType reflect.Type // the Go struct of the version; nil for custom kinds
}

// String returns the version as in an apiVersion. The group is left out if it is the kind's.
func (v *KindVersion) String() string {
	return meta.GroupVersion{Group: v.Group, Version: v.Name}.String()
}

// Features are the capabilities of a kind beyond reading and writing objects.
type Features struct {
	Status       bool   // the status subresource exists; spec and status are written separately
	Scale        *Scale // the scale subresource, or nil
	Subresources []Subresource
	Fields       []SelectableField

	// ValidateName returns the violations of a name, or with prefix of a generateName. If it is
	// nil, names must be DNS subdomains.
	ValidateName func(name string, prefix bool) []string

	// Allocator allocates values that are unique among the objects of the kind, such as addresses. It
	// may be nil.
	Allocator *Allocator
}

// Behavior holds the hooks of a kind that work on untyped objects. The zero value is a kind of
// plain stored objects. Hooks run concurrently for different requests.
type Behavior struct {
	// Upgrade modifies a stored object in place so that it fits the current Go types, if an earlier
	// release of the program with other types wrote it: it moves values of renamed or retyped
	// fields, deletes obsolete fields, and may change the apiVersion to another version of the
	// kind. It is called with objects of any shape and version, and must not change objects that
	// fit already. If it returns an error, the object cannot be read. Upgrade is only for kinds of
	// Go structs, and runs only if the store holds objects of another shape.
	Upgrade func(stored *meta.Object) error

	// Default sets defaults that the schema cannot express. It runs on every write, after the
	// defaults of the schema.
	Default func(w *Change[meta.Object])

	// Prepare readies an object for the write: it clears fields that clients may not set and merges
	// convenience fields. It does not run for subresources, whose Merge copies only fields that
	// clients may set.
	Prepare func(w *Change[meta.Object])

	// Validate adds the violations that the schema does not find to w.
	Validate func(w *Change[meta.Object])

	// Changed reports whether a write increments metadata.generation. If it is nil, each change
	// outside metadata and status does.
	Changed func(w *Change[meta.Object]) bool

	// GracePeriod returns the grace period of a deletion, in seconds. asked is the period that the client
	// requested, or nil. If GracePeriod is nil, objects have no grace period.
	GracePeriod func(obj *meta.Object, asked *int64) int64

	// BeginDelete modifies an object whose deletion begins but which stays for now, for example
	// because it has finalizers.
	BeginDelete func(w *Change[meta.Object])

	// RetainOnDelete reports whether a deleted object stays although it has no finalizers in its metadata.
	RetainOnDelete func(obj *meta.Object) bool

	// Initial returns objects that each server creates at start, unless they exist.
	Initial func(p names.Profile) []*meta.Object

	// Act makes the kind virtual: nothing is stored, and a POST is answered with the result of Act.
	Act Act

	// Read makes the kind virtual: nothing is stored, and get and list requests select from the
	// objects that Read returns. The caller owns the objects.
	Read func(ctx context.Context) ([]*meta.Object, error)

	// Warn returns warnings about a valid object for the client that writes it.
	Warn func(w *Change[meta.Object]) []string
}

// Allocator allocates values of which each may belong to one object of the kind at a time. The kind
// defines what a value is. The server reserves a value with a record in the store that it commits
// together with the object, so that servers which share a store never allocate a value twice. If
// another write reserves the value first, the server allocates again.
type Allocator struct {
	// Values returns the values that an object holds.
	Values func(obj *meta.Object) []string

	// Allocate sets missing values in a.Object and returns violations for values that the object
	// cannot have. It runs after Prepare, but not for subresources. An error means that no value
	// is free.
	Allocate func(a *Allocation) ([]meta.StatusCause, error)

	// Source is the resource, by spec names, whose objects extend the range of values. It is empty
	// if there is none.
	Source meta.GroupResource

	// Initial returns the objects of Source that describe the values which Allocate uses without any
	// objects of Source; only the allocator of services has them. The server creates them at start, and
	// again if they are deleted.
	Initial func(p names.Profile) []*meta.Object
}

// Allocation is a request to an Allocator to allocate the values of an object.
type Allocation struct {
	Object, Old *meta.Object // Old is the stored object, nil on create

	// Free reports whether no object except Old holds a value.
	Free func(value string) bool

	// Sources are the objects of Allocator.Source as this server sees them; nil if Source is not
	// served. They are shared and must not be modified.
	Sources []*meta.Object
}

// SelectableField is a field that field selectors can use, in addition to metadata.name and
// metadata.namespace. Path leads to a scalar. If the scalar is missing or empty, the value is read
// at Fallback, and if that is missing, too, the value is Absent.
type SelectableField struct {
	Name     string
	Path     []string // nil: Name split at dots
	Fallback []string // nil: no alternative
	Absent   string
}

// Subresource is an endpoint below an object. A subresource with Merge reads and updates the
// object; one with Act answers a POST; one with Connect forwards requests to another server.
type Subresource struct {
	Name string

	// Merge copies the fields that clients may change through this subresource, except Metadata,
	// from the request in to obj, a copy of the stored object. The result is written like any
	// update.
	Merge func(obj, in *meta.Object)

	// Metadata lists the metadata fields that clients may also change through this subresource:
	// some of labels, annotations, finalizers and ownerReferences.
	Metadata []string

	// Validate adds the violations of a write through this subresource to w, in addition to those
	// that the Validate hook of the kind finds.
	Validate func(w *Change[meta.Object])

	// Body is the kind of the request and response bodies; nil if it is the object itself. Clients
	// of a version of the object use the version of Body with the same group and name, or the hub
	// of Body if there is none; Show returns and Merge receives the hub. An Act accepts any served
	// version of Body, and the server validates the body by the rules of Body, except for its
	// metadata.
	Body *Kind

	// WriteOnly restricts the subresource to PUT.
	WriteOnly bool

	// Show returns the body that clients see for an object. If it is nil, they see the object
	// itself.
	Show func(obj *meta.Object) *meta.Object

	// Act answers a POST. Admission sees the request as a create of the body.
	Act Act

	// Connect forwards requests. The object of the call has the kind of Body and is made from the
	// query.
	Connect *Connection
}

// Column is a column of the Table representation, after the column with the name. Type is string,
// integer, number, boolean or date. Columns with a Priority above 0 are shown on demand (kubectl
// get -o wide).
type Column struct {
	Name, Type, Format, Doc string
	Priority                int
	JSONPath                string                     // simple path into the object in this version, such as .spec.size
	Cell                    func(obj *meta.Object) any // returns a value of the column's type; nil: the value at JSONPath
}

// Act answers a request to a virtual kind or an acting subresource. For a review it returns
// call.Object with its status set. A nil result is answered with a Status of Success.
type Act func(ctx context.Context, call *Call) (*meta.Object, error)

// Call is a request to a virtual kind or to an acting or connecting subresource.
type Call struct {
	Resource    meta.GroupVersionResource
	Subresource string
	Key         meta.Key
	User        *meta.User
	Object      *meta.Object // the body
	DryRun      bool
	Manager     string // the client's field manager
	Names       names.Profile
	Warn        func(text string) // sends a warning to the caller
	Client      Client            // client of the called server
}

// Client reads and writes objects on behalf of the server itself; it is a part of client.Client,
// which documents the methods. Update also writes through an acting subresource that has a Merge.
// Such a write records no field manager and runs no admission, because admission has seen the body
// of the call.
type Client interface {
	Get(ctx context.Context, r meta.GroupResource, key meta.Key) (*meta.Object, error)
	List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error)
	Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(obj *meta.Object) error) (*meta.Object, error)
	Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o DeleteOptions) error
}

// DeleteOptions are the options of a delete by the server itself.
type DeleteOptions struct {
	UID          string // precondition, if not empty
	Version      string // precondition on metadata.resourceVersion, if not empty
	Propagation  string // Background, Foreground, Orphan, or empty for the default of the kind
	GraceSeconds *int64
}

// Scale holds the paths of the values that the scale subresource shows, such as .spec.replicas.
// Selector may be empty, or lead to a label selector in the form of a string or an object.
type Scale struct {
	SpecReplicas, StatusReplicas, Selector string

	// Body is the kind that clients see. Its hub must be autoscaling/v1 Scale, see
	// Subresource.Body. If it is nil, clients see only autoscaling/v1.
	Body *Kind
}
