package client

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
)

// Objects accesses the objects of a kind at a server, as values of type T. It is immutable and safe
// for concurrent use; methods such as In return a modified copy.
type Objects[T any] struct {
	conn       *Conn
	view       *schema.View // nil if T is meta.Object
	group      string       // wire name
	version    string
	kind       string
	plural     string
	namespaced bool
	namespace  string // "" means all
	labels     string // selector
	fields     string // selector
	sub        string // subresource
	err        error  // returned by every call
}

// untypedObject is the type for access without a Go struct.
var untypedObject = reflect.TypeFor[meta.Object]()

// storedVersion returns the storage version of a kind, or nil.
func storedVersion(kind *registry.Kind) *registry.KindVersion {
	i := slices.IndexFunc(kind.Versions, func(v registry.KindVersion) bool { return v.Storage })
	if i < 0 {
		return nil
	}
	return &kind.Versions[i]
}

// Of returns access to the objects of a kind. T is the Go struct with which a version of the kind
// was defined; objects are read and written in that version. For a kind of a
// CustomResourceDefinition, T may be any struct with suitable fields. meta.Object is possible for
// every kind and uses its storage version.
//
// The kind need not be registered with a server in this process: a program that knows only the
// names of a kind can define it for the client alone. If the kind is invalid or has no version with
// type T, every call returns an error.
func Of[T any](conn Conn, kind *registry.Kind) *Objects[T] {
	o := &Objects[T]{conn: &conn}
	t := reflect.TypeFor[T]()
	switch {
	case kind == nil:
		o.err = fmt.Errorf("client of %s: kind is nil", t)
		return o
	case kind.Err() != nil:
		o.err = fmt.Errorf("%s: %w", kind, kind.Err())
		return o
	}
	v := kind.VersionFor(t)
	if t == untypedObject {
		v = storedVersion(kind)
	}
	if v == nil {
		o.err = fmt.Errorf("%s has no version with Go type %s", kind, t)
		return o
	}
	if o.group = kind.Group; v.Group != "" {
		o.group = v.Group
	}
	if !kind.Custom() {
		o.group = conn.Names.Group(o.group)
	}
	o.version, o.kind, o.plural, o.namespaced = v.Name, kind.Kind, kind.Plural, kind.Scope == registry.Namespaced
	if o.plural == "" {
		o.plural = strings.ToLower(kind.Kind) + "s"
	}
	if t != untypedObject {
		o.view, o.err = schema.NewView(t, conn.Names)
	}
	return o
}

// In returns access to the objects of a namespace; "" means all namespaces.
func (o *Objects[T]) In(namespace string) *Objects[T] {
	in := *o
	in.namespace = namespace
	if namespace != "" && !o.namespaced && o.err == nil {
		in.err = fmt.Errorf("%s are not namespaced", o.resource())
	}
	return &in
}

// WithLabels returns access to the objects that a label selector such as "app=web,tier in (a,b)"
// selects. It replaces an earlier label selector. The selector applies to List, All, Watch,
// DeleteAll and Cache.
func (o *Objects[T]) WithLabels(selector string) *Objects[T] {
	with := *o
	with.labels = selector
	return &with
}

// WithFields returns access to the objects that a field selector such as "metadata.name=web"
// selects. It replaces an earlier field selector. The selector applies to List, All, Watch,
// DeleteAll and Cache.
func (o *Objects[T]) WithFields(selector string) *Objects[T] {
	with := *o
	with.fields = selector
	return &with
}

// Subresource returns access to a subresource of the objects, such as "status", by Get, Update,
// Modify, Patch and Apply. Other calls fail.
func (o *Objects[T]) Subresource(name string) *Objects[T] {
	sub := *o
	sub.sub = name
	return &sub
}

func (o *Objects[T]) resource() meta.GroupResource {
	return meta.GroupResource{Group: o.group, Resource: o.plural}
}

func (o *Objects[T]) gvk() meta.GroupVersionKind {
	return meta.GroupVersionKind{Group: o.group, Version: o.version, Kind: o.kind}
}

// collection returns the path of the objects of a namespace, or of all namespaces if it is "". It
// fails for subresources.
func (o *Objects[T]) collection(namespace string) (string, error) {
	if o.sub != "" {
		return "", meta.BadRequest("subresource %q of %s supports only Get, Update, Modify, Patch and Apply", o.sub, o.resource())
	}
	return o.collectionPath(namespace)
}

// collectionPath returns the path of the objects of a namespace.
func (o *Objects[T]) collectionPath(namespace string) (string, error) {
	path := "/apis/" + o.group + "/" + o.version
	if o.group == "" {
		path = "/api/" + o.version
	}
	if namespace != "" {
		if !segment(namespace) {
			return "", meta.BadRequest("invalid namespace name %q", namespace)
		}
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/" + o.plural, o.err
}

// item returns the path of an object or of its subresource.
func (o *Objects[T]) item(key meta.Key) (string, error) {
	path, err := o.collectionPath(key.Namespace)
	switch {
	case err != nil:
		return "", err
	case key.Namespace == "" && o.namespaced:
		return "", meta.BadRequest("%s are namespaced: set a namespace with In or in the object", o.resource())
	case !segment(key.Name):
		return "", meta.BadRequest("invalid object name %q", key.Name)
	}
	path += "/" + url.PathEscape(key.Name)
	if o.sub != "" {
		path += "/" + url.PathEscape(o.sub)
	}
	return path, nil
}

// segment reports whether a name is a single path segment other than "." and "..".
func segment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// decode decodes a response body.
func (o *Objects[T]) decode(text []byte) (*T, error) {
	tree, err := o.parse(text)
	if err != nil {
		return nil, err
	}
	return o.value(tree)
}

// parse parses a response body.
func (o *Objects[T]) parse(text []byte) (map[string]any, error) {
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	if err != nil { // not wrapped: it is a Status about a request body
		return nil, fmt.Errorf("decoding %s from the server: %v", o.resource(), err)
	}
	return tree, nil
}

// value converts a tree to a T. It retains the tree only if T is meta.Object.
func (o *Objects[T]) value(tree map[string]any) (*T, error) {
	if o.view == nil {
		return any(meta.NewObject(tree)).(*T), nil
	}
	v := new(T)
	if err := o.view.Into(tree, v); err != nil {
		return nil, fmt.Errorf("decoding %s from the server: %w", o.resource(), err)
	}
	return v, nil
}

// encode converts a T to a tree that shares no memory with it.
func (o *Objects[T]) encode(v *T) (map[string]any, error) {
	if o.view == nil {
		return any(v).(*meta.Object).Clone().Tree(), nil
	}
	return o.view.From(v)
}

// toObject converts a T to an object with apiVersion and kind, and returns its key.
func (o *Objects[T]) toObject(v *T) (*meta.Object, meta.Key, error) {
	if o.err != nil {
		return nil, meta.Key{}, o.err
	}
	if v == nil {
		return nil, meta.Key{}, meta.BadRequest("object is a nil %s", o.kind)
	}
	tree, err := o.encode(v)
	if err != nil {
		return nil, meta.Key{}, err
	}
	obj := meta.NewObject(tree)
	key, err := o.identify(obj)
	return obj, key, err
}

// identify sets apiVersion and kind of an object if both are missing, and returns its key, with the
// namespace set by In as default.
func (o *Objects[T]) identify(obj *meta.Object) (meta.Key, error) {
	if obj.APIVersion() == "" && obj.Kind() == "" {
		obj.SetGVK(o.gvk())
	}
	namespace := obj.Namespace()
	if o.namespace != "" && namespace != "" && namespace != o.namespace {
		return meta.Key{}, meta.BadRequest("%s %q is in the namespace %q, not in %q", o.kind, obj.Name(), namespace, o.namespace)
	}
	if namespace == "" {
		namespace = o.namespace
	}
	return meta.Key{Namespace: namespace, Name: obj.Name()}, nil
}
