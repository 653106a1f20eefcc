package schema

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Lean returns the schemas that OpenAPI read from a definition as a server keeps them, in
// their order: without what only people read (Doc, Title, Shown), with one Schema for all values
// that are described alike, and holding on to nothing of the document. A definition names
// the same few hundred forms in thousands of places.
func Lean(schemas ...*Schema) []*Schema {
	l := leaner{schemas: map[string]*Schema{}, structs: map[string]*Struct{}, texts: map[string]string{}, patterns: map[string]*pattern{}}
	out := make([]*Schema, len(schemas))
	for i, s := range schemas {
		out[i] = l.schema(s)
	}
	return out
}

// leaner knows what it made by all that it says.
type leaner struct {
	schemas  map[string]*Schema
	structs  map[string]*Struct
	texts    map[string]string
	patterns map[string]*pattern
	key      []byte
}

func (l *leaner) schema(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	c := *s
	c.Doc, c.Title, c.Shown, c.re = "", "", nil, nil
	c.Struct, c.Values, c.Items, c.Not = l.structure(s.Struct), l.schema(s.Values), l.schema(s.Items), l.schema(s.Not)
	c.AllOf, c.AnyOf, c.OneOf = l.list(s.AllOf), l.list(s.AnyOf), l.list(s.OneOf)
	l.key = l.says(l.key[:0], reflect.ValueOf(&c).Elem())
	if known := l.schemas[string(l.key)]; known != nil {
		return known
	}
	l.schemas[string(l.key)] = &c
	c.Format, c.Pattern, c.ListType, c.MapType = l.text(c.Format), l.text(c.Pattern), l.text(c.ListType), l.text(c.MapType)
	c.Required, c.ListKeys = l.words(c.Required), l.words(c.ListKeys)
	c.Default = l.value(c.Default)
	if c.Enum != nil {
		c.Enum = l.value(c.Enum).([]any)
	}
	c.Rules = slices.Clone(c.Rules)
	for i, r := range c.Rules {
		c.Rules[i] = Rule{l.text(r.Expression), l.text(r.Message), l.text(r.MessageExpression), l.text(r.Reason), l.text(r.FieldPath), r.Created}
	}
	if s.re != nil {
		if l.patterns[c.Pattern] == nil {
			l.patterns[c.Pattern] = s.re
		}
		c.re = l.patterns[c.Pattern]
	}
	return &c
}

func (l *leaner) list(schemas []*Schema) []*Schema {
	if schemas == nil {
		return nil
	}
	out := make([]*Schema, len(schemas))
	for i, s := range schemas {
		out[i] = l.schema(s)
	}
	return out
}

func (l *leaner) structure(st *Struct) *Struct {
	if st == nil {
		return nil
	}
	fields := make([]*Field, len(st.Fields))
	for i, f := range st.Fields {
		c := *f
		c.Name, c.Schema = l.text(f.Name), l.schema(f.Schema)
		fields[i] = &c
	}
	l.key = l.key[:0]
	for _, f := range fields {
		l.key = append(l.says(l.key, reflect.ValueOf(f).Elem()), 0)
	}
	if known := l.structs[string(l.key)]; known != nil {
		return known
	}
	out := &Struct{sealed: st.sealed, below: st.below, byName: make(map[string]*Field, len(fields))}
	l.structs[string(l.key)] = out
	out.Fields = fields
	for _, f := range fields {
		out.byName[f.Name] = f
		if f.Schema.Default != nil {
			out.filled = append(out.filled, f)
		}
	}
	return out
}

// text returns the text by itself: a decoded document is one text that each of its
// strings holds on to.
func (l *leaner) text(s string) string {
	if s == "" {
		return ""
	}
	if known, ok := l.texts[s]; ok {
		return known
	}
	s = strings.Clone(s)
	l.texts[s] = s
	return s
}

func (l *leaner) words(list []string) []string {
	out := slices.Clone(list)
	for i, s := range out {
		out[i] = l.text(s)
	}
	return out
}

func (l *leaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return l.text(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = l.value(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[l.text(k)] = l.value(e)
		}
		return out
	}
	return v
}

// says appends what a value says: two that say the same are exchangeable. Schemas and
// structs in it are lean already, so that each stands for itself.
func (l *leaner) says(key []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(key, 1)
		}
		return append(key, 0)
	case reflect.String:
		return append(binary.AppendUvarint(key, uint64(v.Len())), v.String()...)
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(key, v.Int())
	case reflect.Uint8:
		return append(key, byte(v.Uint())) // a byte
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(key, math.Float64bits(v.Float()))
	case reflect.Pointer:
		if elem := v.Type().Elem().Kind(); elem == reflect.Struct || v.IsNil() {
			return binary.AppendUvarint(key, uint64(v.Pointer()))
		}
		return l.says(append(key, 1), v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return append(key, 0)
		}
		return l.says(append(key, byte(v.Elem().Kind())), v.Elem()) // there are 27
	case reflect.Slice:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		for i := range v.Len() {
			key = l.says(key, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				key = l.says(append(key, byte(i+1)), f) // there are fewer than 255 fields
			}
		}
		return append(key, 0)
	case reflect.Map:
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		key = binary.AppendUvarint(key, uint64(len(names)))
		for _, name := range names {
			key = l.says(l.says(key, name), v.MapIndex(name))
		}
	}
	return key
}
