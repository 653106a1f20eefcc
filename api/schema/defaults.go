package schema

import (
	"errors"

	"orch.io/controlplane/api/meta"
)

// MaxDefaults bounds what defaults make of one object, in bytes of JSON, about:
// a default in the items of a list is filled in as often as the list is long.
const MaxDefaults = 4 << 20

// ErrDefaults says that defaults would add more than MaxDefaults to an object.
var ErrDefaults = errors.New("its defaults are too much for one object")

// FillDefaults fills in defaults, in place, after Conform. A missing field gets its
// default; below an absent parent nothing is filled in. A null gets the default
// unless the schema is nullable; one without a default is dropped. Where the
// struct comes from Go, a field that is no pointer gets the default for its zero
// value as well, since Go cannot tell the two apart. On ErrDefaults the tree is
// filled in part.
func (s *Schema) FillDefaults(tree map[string]any) error {
	if s == nil {
		return nil
	}
	f := filler{left: MaxDefaults}
	return f.fill(s, tree)
}

// FillDefaultsOfApplied is FillDefaults for an applied object of a custom kind, whose nulls
// the applier wants to own: one that is no value of its field and has no default stays, so
// that Validate refuses it.
func (s *Schema) FillDefaultsOfApplied(tree map[string]any) error {
	if s == nil {
		return nil
	}
	f := filler{left: MaxDefaults, keepNulls: true}
	return f.fill(s, tree)
}

// filler fills defaults in until they are too much.
type filler struct {
	left      int
	keepNulls bool
}

func (f *filler) fill(s *Schema, tree map[string]any) error {
	f.value(s, tree, s.Struct.Canonical())
	if f.left < 0 {
		return ErrDefaults
	}
	return nil
}

// copyOf returns the default of s, the object's own, if there is room for it.
func (f *filler) copyOf(s *Schema, name string) (any, bool) {
	if f.left -= len(name) + s.defaultSize; f.left < 0 {
		return nil, false
	}
	return meta.Clone(s.Default), true
}

func (f *filler) value(s *Schema, v any, canonical bool) {
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	if canonical && !s.fills || f.left < 0 {
		return // nulls are gone already
	}
	switch v := v.(type) {
	case map[string]any:
		f.object(s, v, canonical)
	case []any:
		if s.Items == nil {
			return
		}
		for i, e := range v {
			if e == nil && !s.Items.Nullable && s.Items.Default != nil {
				var ok bool
				if e, ok = f.copyOf(s.Items, ""); !ok {
					return
				}
				v[i] = e
			}
			f.value(s.Items, e, canonical)
		}
	}
}

func (f *filler) object(s *Schema, m map[string]any, canonical bool) {
	if s.Struct != nil {
		for _, field := range s.Struct.filled {
			e, ok := m[field.Name]
			if !ok || e == nil && !field.Schema.Nullable || canonical && !field.Pointer && field.Schema.isZero(e) {
				if d, ok := f.copyOf(field.Schema, field.Name); ok {
					m[field.Name] = d
				}
			}
		}
	}
	for k, e := range m {
		next := s.Values
		if field := s.Struct.Field(k); field != nil {
			next = field.Schema
		}
		if next == nil {
			continue
		}
		if e == nil && !canonical && !next.Nullable {
			if next.Default == nil {
				if !f.keepNulls || next.Type == Any && !next.IntOrString { // of any type, of which null is one, but not nullable
					delete(m, k)
				}
				continue
			}
			var ok bool
			if e, ok = f.copyOf(next, k); !ok {
				return
			}
			m[k] = e
		}
		f.value(next, e, canonical)
	}
}

// sizeOf is the length of a value as JSON, about.
func sizeOf(v any) int {
	const each = 8 // a number, a word, quotes and commas
	size := each
	switch v := v.(type) {
	case string:
		size += len(v)
	case []any:
		for _, e := range v {
			size += sizeOf(e)
		}
	case map[string]any:
		for k, e := range v {
			size += len(k) + sizeOf(e)
		}
	}
	return size
}
