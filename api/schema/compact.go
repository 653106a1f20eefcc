package schema

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Compact returns copies of schemas that OpenAPI built from a definition, in the same order,
// reduced to what a server needs to keep in memory. The copies lack documentation (Doc, Title,
// Shown), share one Schema for all values with equal descriptions, and refer to no memory of
// the decoded document. Definitions repeat the same few hundred schemas in thousands of places.
func Compact(schemas ...*Schema) []*Schema {
	l := compactor{schemas: map[string]*Schema{}, structs: map[string]*Struct{}, texts: map[string]string{}, patterns: map[string]*pattern{}}
	out := make([]*Schema, len(schemas))
	for i, s := range schemas {
		out[i] = l.schema(s)
	}
	return out
}

// compactor copies schemas. Its maps hold the copies by their content; see appendKey.
type compactor struct {
	schemas  map[string]*Schema
	structs  map[string]*Struct
	texts    map[string]string
	patterns map[string]*pattern
	key      []byte
}

func (l *compactor) schema(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	c := *s
	c.Doc, c.Title, c.Shown, c.re = "", "", nil, nil
	c.Struct, c.Values, c.Items, c.Not = l.structure(s.Struct), l.schema(s.Values), l.schema(s.Items), l.schema(s.Not)
	c.AllOf, c.AnyOf, c.OneOf = l.list(s.AllOf), l.list(s.AnyOf), l.list(s.OneOf)
	l.key = l.appendKey(l.key[:0], reflect.ValueOf(&c).Elem())
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

func (l *compactor) list(schemas []*Schema) []*Schema {
	if schemas == nil {
		return nil
	}
	out := make([]*Schema, len(schemas))
	for i, s := range schemas {
		out[i] = l.schema(s)
	}
	return out
}

func (l *compactor) structure(st *Struct) *Struct {
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
		l.key = append(l.appendKey(l.key, reflect.ValueOf(f).Elem()), 0)
	}
	if known := l.structs[string(l.key)]; known != nil {
		return known
	}
	out := &Struct{compiled: st.compiled, below: st.below, byName: make(map[string]*Field, len(fields))}
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

// text returns a copy of s, the same for equal strings. All strings of a decoded document share
// its memory, so that any of them would keep the whole document alive.
func (l *compactor) text(s string) string {
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

func (l *compactor) words(list []string) []string {
	out := slices.Clone(list)
	for i, s := range out {
		out[i] = l.text(s)
	}
	return out
}

func (l *compactor) value(v any) any {
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

// appendKey appends a key of the value's content: values with equal keys are exchangeable.
// Schemas and structs below v are compacted already, so that their addresses identify them.
func (l *compactor) appendKey(key []byte, v reflect.Value) []byte {
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
		return append(key, byte(v.Uint()))
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(key, math.Float64bits(v.Float()))
	case reflect.Pointer:
		if elem := v.Type().Elem().Kind(); elem == reflect.Struct || v.IsNil() {
			return binary.AppendUvarint(key, uint64(v.Pointer()))
		}
		return l.appendKey(append(key, 1), v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return append(key, 0)
		}
		return l.appendKey(append(key, byte(v.Elem().Kind())), v.Elem()) // fewer than 256 kinds
	case reflect.Slice:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		for i := range v.Len() {
			key = l.appendKey(key, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				key = l.appendKey(append(key, byte(i+1)), f) // fewer than 255 fields
			}
		}
		return append(key, 0)
	case reflect.Map:
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		key = binary.AppendUvarint(key, uint64(len(names)))
		for _, name := range names {
			key = l.appendKey(l.appendKey(key, name), v.MapIndex(name))
		}
	}
	return key
}
