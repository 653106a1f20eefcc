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

// Objects are the objects of one kind at a server, as values of T. They are a value that
// any number of goroutines may use; methods such as In return another.
type Objects[T any] struct {
	conn       *Conn
	view       *schema.View // nil: T is meta.Object
	group      string       // wire name
	version    string
	kind       string
	plural     string
	namespaced bool
	namespace  string // empty: all
	labels     string
	fields     string
	sub        string
	err        error // of every call
}

// untypedObject is the type of objects without a struct.
var untypedObject = reflect.TypeFor[meta.Object]()

// storedVersion returns the version that a kind is stored in.
func storedVersion(kind *registry.Kind) *registry.KindVersion {
	i := slices.IndexFunc(kind.Versions, func(v registry.KindVersion) bool { return v.Storage })
	if i < 0 {
		return nil
	}
	return &kind.Versions[i]
}

// Of returns the objects of a kind. T is the struct that the kind was declared with, or
// that of another of its versions, in which objects are read and written then; for a kind
// of a CustomResourceDefinition it is any struct that has its fields. meta.Object is any object, in
// the stored version of its kind. The server need not
// be the one that the kind is registered with: whoever knows only the names declares the
// kind for this alone. If the kind is faulty, or not of T, every call says so.
func Of[T any](conn Conn, kind *registry.Kind) *Objects[T] {
	o := &Objects[T]{conn: &conn}
	t := reflect.TypeFor[T]()
	switch {
	case kind == nil:
		o.err = fmt.Errorf("a client of %s without a kind", t)
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
		o.err = fmt.Errorf("%s has no version that is a %s", kind, t)
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

// In returns the objects of one namespace; "" is all.
func (o *Objects[T]) In(namespace string) *Objects[T] {
	in := *o
	in.namespace = namespace
	if namespace != "" && !o.namespaced && o.err == nil {
		in.err = fmt.Errorf("%s are in no namespace", o.resource())
	}
	return &in
}

// WithLabels returns the objects that a label selector selects, such as "app=web,tier in
// (a,b)", in the place of one before. List, All, Watch, DeleteAll and Cache keep to that.
func (o *Objects[T]) WithLabels(selector string) *Objects[T] {
	with := *o
	with.labels = selector
	return &with
}

// WithFields returns the objects that a field selector selects, such as
// "metadata.name=web", in the place of one before. List, All, Watch, DeleteAll and Cache
// keep to that.
func (o *Objects[T]) WithFields(selector string) *Objects[T] {
	with := *o
	with.fields = selector
	return &with
}

// Subresource returns the objects as a sub-resource shows and writes them, such as
// "status": for Get, Update, Modify, Patch and Apply. All else is refused.
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

// collection returns the path of all objects in a namespace; "" is all.
func (o *Objects[T]) collection(namespace string) (string, error) {
	if o.sub != "" {
		return "", meta.BadRequest("the sub-resource %q is one of single %s, to get and to update", o.sub, o.resource())
	}
	return o.within(namespace)
}

// within is collection, of sub-resources as well.
func (o *Objects[T]) within(namespace string) (string, error) {
	path := "/apis/" + o.group + "/" + o.version
	if o.group == "" {
		path = "/api/" + o.version
	}
	if namespace != "" {
		if !segment(namespace) {
			return "", meta.BadRequest("%q is no name of a namespace", namespace)
		}
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/" + o.plural, o.err
}

// item returns the path of one object, or of its sub-resource.
func (o *Objects[T]) item(key meta.Key) (string, error) {
	path, err := o.within(key.Namespace)
	switch {
	case err != nil:
		return "", err
	case key.Namespace == "" && o.namespaced:
		return "", meta.BadRequest("%s are in namespaces: none is named", o.resource())
	case !segment(key.Name):
		return "", meta.BadRequest("%q is no name of an object", key.Name)
	}
	path += "/" + url.PathEscape(key.Name)
	if o.sub != "" {
		path += "/" + url.PathEscape(o.sub)
	}
	return path, nil
}

// segment reports whether a name is one segment of a path, and no step of one.
func segment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// decode returns the value that an answer holds.
func (o *Objects[T]) decode(text []byte) (*T, error) {
	tree, err := o.parse(text)
	if err != nil {
		return nil, err
	}
	return o.value(tree)
}

// parse returns what an answer holds as a tree.
func (o *Objects[T]) parse(text []byte) (map[string]any, error) {
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	if err != nil { // not wrapped: it is a Status for who sends a body
		return nil, fmt.Errorf("what the server sent as %s: %v", o.resource(), err)
	}
	return tree, nil
}

// value returns a tree as a value.
func (o *Objects[T]) value(tree map[string]any) (*T, error) {
	if o.view == nil {
		return any(meta.NewObject(tree)).(*T), nil
	}
	v := new(T)
	if err := o.view.Into(tree, v); err != nil {
		return nil, fmt.Errorf("what the server sent as %s: %w", o.resource(), err)
	}
	return v, nil
}

// from returns a value as a tree, which the value does not share.
func (o *Objects[T]) from(v *T) (map[string]any, error) {
	if o.view == nil {
		return any(v).(*meta.Object).Clone().Tree(), nil
	}
	return o.view.From(v)
}

// tree returns a value as an object that says what it is, and where it is.
func (o *Objects[T]) tree(v *T) (*meta.Object, meta.Key, error) {
	if o.err != nil {
		return nil, meta.Key{}, o.err
	}
	if v == nil {
		return nil, meta.Key{}, meta.BadRequest("a nil %s", o.kind)
	}
	tree, err := o.from(v)
	if err != nil {
		return nil, meta.Key{}, err
	}
	obj := meta.NewObject(tree)
	key, err := o.identify(obj)
	return obj, key, err
}

// identify lets an object say what it is, and returns where it is.
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
