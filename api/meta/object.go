// Package meta has the basic types of the API: objects and their metadata, the names of kinds
// and resources, selectors, versions, and the Status error.
package meta

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"orch.io/controlplane/internal/number"
)

// Object is an API object as a tree of JSON values: map[string]any, []any, string, bool, int64,
// float64 and nil; fieldsV1 values may be RawJSON. The zero value is an empty object. An Object
// must not be read while another goroutine changes it.
type Object struct {
	tree map[string]any
}

// NewObject returns an object with the given tree, which belongs to the object afterwards. The tree must
// consist of the types that Object lists, for example int64 instead of int and map[string]any instead
// of map[string]string; Object.Set converts other Go values.
func NewObject(tree map[string]any) *Object { return &Object{tree} }

// Tree returns the object's tree, which is never nil. Changes to the tree change the object.
// The tree of a nil Object is empty, and changes to it are lost.
func (o *Object) Tree() map[string]any {
	if o == nil {
		return map[string]any{}
	}
	if o.tree == nil {
		o.tree = map[string]any{}
	}
	return o.tree
}

// Clone returns a deep copy of the object, or nil for a nil Object.
func (o *Object) Clone() *Object {
	if o == nil {
		return nil
	}
	return &Object{Clone(o.Tree()).(map[string]any)}
}

// Clone returns a deep copy of a JSON value.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = Clone(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = Clone(e)
		}
		return l
	}
	return v
}

// Equal reports whether two JSON values are equal. Numbers are compared by the exact decimal
// value of their text: 1 and 1.0 are equal, 9007199254740993 and 9007199254740992.0 are not. A
// missing field and a null are different. A RawJSON value equals the value that its text
// encodes.
func Equal(a, b any) bool {
	if raw, ok := b.(RawJSON); ok && a != b {
		b = raw.Value()
	}
	switch a := a.(type) {
	case RawJSON:
		return a == b || Equal(a.Value(), b)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case int64:
		if f, ok := b.(float64); ok {
			return number.Equal(a, f)
		}
	case float64:
		if n, ok := b.(int64); ok {
			return number.Equal(n, a)
		}
	}
	return a == b
}

// Get returns the value at a path of field names, and whether it exists.
func (o *Object) Get(path ...string) (any, bool) {
	var v any = o.Tree()
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[p]; !ok {
			return nil, false
		}
	}
	return v, true
}

// String returns the string at path, or "".
func (o *Object) String(path ...string) string {
	v, _ := o.Get(path...)
	s, _ := v.(string)
	return s
}

// Int returns the integer at path, or 0. A float64 is truncated.
func (o *Object) Int(path ...string) int64 {
	v, _ := o.Get(path...)
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// Bool returns the boolean at path, or false.
func (o *Object) Bool(path ...string) bool {
	v, _ := o.Get(path...)
	b, _ := v.(bool)
	return b
}

// Map returns the object at path, or nil.
func (o *Object) Map(path ...string) map[string]any {
	v, _ := o.Get(path...)
	m, _ := v.(map[string]any)
	return m
}

// List returns the list at path, or nil. The list is part of o.
func (o *Object) List(path ...string) []any {
	v, _ := o.Get(path...)
	l, _ := v.([]any)
	return l
}

// Strings returns the strings in the list at path as a new slice. Other items are skipped.
func (o *Object) Strings(path ...string) []string {
	var out []string
	for _, v := range o.List(path...) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Objects returns the objects in the list at path. They share their trees with o.
func (o *Object) Objects(path ...string) []*Object {
	var out []*Object
	for _, v := range o.List(path...) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, NewObject(m))
		}
	}
	return out
}

// StringList returns list as a []any for Set.
func StringList(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// Set sets the field at path, creating objects on the way and replacing values that are not
// objects. Values of tree types are stored as they are, without a copy. Other integers become
// int64, a time.Time becomes text (FormatTime), and other values, such as structs, become the
// result of encoding/json, or null if they cannot be marshaled.
//
// Set does not know the kind's schema; writing the object reports unknown fields.
func (o *Object) Set(value any, path ...string) {
	m := o.Tree()
	for _, p := range path[:len(path)-1] {
		next, ok := m[p].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[p] = next
		}
		m = next
	}
	m[path[len(path)-1]] = treeValue(value)
}

// treeValue converts a value to tree types.
func treeValue(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int64, float64, map[string]any, []any, RawJSON:
		return v
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case []string:
		return StringList(v)
	case time.Time:
		return FormatTime(v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return RawJSON(text).Value()
}

// CopyField sets the field at path to the value in from, or removes it if from has none. The
// objects share the value afterwards.
func (o *Object) CopyField(from *Object, path ...string) {
	if v, ok := from.Get(path...); ok {
		o.Set(v, path...)
		return
	}
	o.Delete(path...)
}

// Delete removes the field at path, if it exists.
func (o *Object) Delete(path ...string) {
	if m := o.Map(path[:len(path)-1]...); m != nil {
		delete(m, path[len(path)-1])
	}
}
