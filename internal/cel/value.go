package cel

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/duration"
	"orch.io/controlplane/internal/number"
)

// Value returns the CEL value of a value in a tree. The schema determines its type: strings
// with a date or duration format become timestamps and durations, and sets and lists with keys
// are compared as such. Without a schema, the JSON type is used. The result shares memory with
// raw.
func Value(s *schema.Schema, raw any) ref.Val {
	if s != nil && s.IntOrString {
		s = nil
	}
	switch v := raw.(type) {
	case nil:
		return types.NullValue
	case bool:
		return types.Bool(v)
	case int64:
		if s != nil && s.Type == schema.Number {
			return types.Double(v)
		}
		return types.Int(v)
	case float64:
		if s != nil && s.Type == schema.Number || s == nil && small(v) {
			return types.Double(v)
		}
		if n, ok := number.Integer(v); ok {
			return types.Int(n)
		}
		return types.Double(v)
	case string:
		return textValue(s, v)
	case []any:
		return list{schema: s, raw: v}
	case map[string]any:
		return object{schema: s, raw: v}
	case meta.RawJSON:
		return Value(s, v.Value())
	}
	return types.NewErr("a value of type %T cannot be in an object", raw)
}

// small reports whether all integers up to f have an exact float64. Without a schema, larger
// integers are CEL ints even if they are written with a fraction or an exponent, so that two of
// them are equal only if they are the same number.
func small(f float64) bool { return math.Abs(f) < 1<<53 }

func textValue(s *schema.Schema, text string) ref.Val {
	if s == nil || s.Type != schema.String {
		return types.String(text)
	}
	var err error
	switch formOf(s) {
	case formBytes:
		var b []byte
		if b, err = base64.StdEncoding.DecodeString(text); err == nil {
			return types.Bytes(b)
		}
	case formDuration:
		var d time.Duration
		if d, err = duration.Parse(text); err == nil {
			return types.Duration{Duration: d}
		}
	case formDate:
		var t time.Time
		if t, err = time.Parse(time.DateOnly, text); err == nil {
			return types.Timestamp{Time: t}
		}
	case formTime:
		var t time.Time
		if t, err = time.Parse(time.RFC3339Nano, text); err == nil {
			return types.Timestamp{Time: t}
		}
	default:
		return types.String(text)
	}
	return types.NewErr("Invalid %s format %s: %v", s.Format, text, err)
}

// object is an object or map of a tree.
type object struct {
	schema *schema.Schema
	raw    map[string]any
}

// key returns the key in the tree for a CEL name, and the schema of its value. ok is false if
// there is no such field.
func (o object) key(name ref.Val) (key string, s *schema.Schema, ok bool) {
	text, ok := name.(types.String)
	if !ok {
		return "", nil, false
	}
	key = string(text)
	if o.schema == nil {
		return key, nil, true
	}
	if o.schema.Values != nil {
		return key, o.schema.Values, true
	}
	key = unescape(key)
	s, ok = fieldOf(o.schema, key)
	return key, s, ok
}

// Find implements traits.Mapper.
func (o object) Find(name ref.Val) (ref.Val, bool) {
	key, s, ok := o.key(name)
	if !ok {
		return nil, false
	}
	v, ok := o.raw[key]
	if !ok {
		return nil, false
	}
	return Value(s, v), true
}

// Get implements traits.Indexer.
func (o object) Get(name ref.Val) ref.Val {
	if v, ok := o.Find(name); ok {
		return v
	}
	return types.NewErr("no such key: %v", name)
}

// Contains implements traits.Container.
func (o object) Contains(name ref.Val) ref.Val {
	_, ok := o.Find(name)
	return types.Bool(ok)
}

// IsSet implements traits.FieldTester.
func (o object) IsSet(name ref.Val) ref.Val { return o.Contains(name) }

// Size implements traits.Sizer.
func (o object) Size() ref.Val { return types.Int(len(o.raw)) }

// Iterator implements traits.Iterable.
func (o object) Iterator() traits.Iterator {
	names := make([]ref.Val, 0, len(o.raw))
	for _, key := range slices.Sorted(maps.Keys(o.raw)) {
		name, ok := key, true
		if o.schema != nil && o.schema.Values == nil {
			name, ok = escape(key)
		}
		if ok {
			names = append(names, types.String(name))
		}
	}
	return &iterator{size: len(names), at: func(i int) ref.Val { return names[i] }}
}

// below returns the schema of an entry, or nil if there is none.
func (o object) below(key string) *schema.Schema {
	switch {
	case o.schema == nil:
		return nil
	case o.schema.Values != nil:
		return o.schema.Values
	}
	s, _ := fieldOf(o.schema, key)
	return s
}

// Equal implements ref.Val. Fields without a CEL name are compared as well.
func (o object) Equal(other ref.Val) ref.Val {
	if p, ok := other.(object); ok {
		return o.same(p)
	}
	m, ok := other.(traits.Mapper)
	if !ok || m.Size() != o.Size() {
		return types.False
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		name := it.Next()
		theirs, ok := m.Find(name)
		if !ok {
			return types.False
		}
		if same := o.Get(name).Equal(theirs); same != types.True {
			return same
		}
	}
	return types.True
}

// same compares two objects. The result is that of the first different field in the order of
// names, because it may be an error.
func (o object) same(p object) ref.Val {
	if len(o.raw) != len(p.raw) {
		return types.False
	}
	for _, key := range slices.Sorted(maps.Keys(o.raw)) {
		theirs, ok := p.raw[key]
		if !ok {
			return types.False
		}
		s, of := o.below(key), p.below(key)
		if s == nil && of == nil {
			if !meta.Equal(o.raw[key], theirs) {
				return types.False
			}
		} else if same := Value(s, o.raw[key]).Equal(Value(of, theirs)); same != types.True {
			return same
		}
	}
	return types.True
}

// ConvertToNative implements ref.Val.
func (o object) ConvertToNative(t reflect.Type) (any, error) { return native(o.raw, t) }

// ConvertToType implements ref.Val.
func (o object) ConvertToType(t ref.Type) ref.Val { return convert(o, t) }

// Type implements ref.Val.
func (o object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o object) Value() any { return o.raw }

func native(raw any, t reflect.Type) (any, error) {
	if reflect.TypeOf(raw).AssignableTo(t) {
		return raw, nil
	}
	return nil, fmt.Errorf("type conversion error from %T to %v", raw, t)
}

func convert(v ref.Val, t ref.Type) ref.Val {
	switch t {
	case v.Type():
		return v
	case types.TypeType:
		return v.Type().(ref.Val)
	}
	return types.NewErr("type conversion error from '%s' to '%s'", v.Type(), t)
}

// iterator iterates over size values.
type iterator struct {
	size, next int
	at         func(int) ref.Val
	traits.Iterator
}

// HasNext implements traits.Iterator.
func (it *iterator) HasNext() ref.Val { return types.Bool(it.next < it.size) }

// Next implements traits.Iterator.
func (it *iterator) Next() ref.Val {
	if it.next >= it.size {
		return nil
	}
	it.next++
	return it.at(it.next - 1)
}
