package schema

import (
	"errors"

	"orch.io/controlplane/api/meta"
)

// MaxDefaults limits the JSON size, in bytes and estimated, of the defaults that FillDefaults
// adds to an object. A default of a list's items is added once for each item, so that a small
// object could otherwise grow without bounds.
const MaxDefaults = 4 << 20

// ErrDefaults is returned if defaults would add more than MaxDefaults to an object.
var ErrDefaults = errors.New("defaults exceed the size limit of one object")

// FillDefaults adds the defaults of the schema to a normalized object, in place. A missing
// field gets its default unless its parent is missing, too. A null gets the default if the
// schema is not nullable; without a default it is removed. In a struct that comes from Go, a
// field that is not a pointer also gets the default if it has the zero value, because Go cannot
// tell zero from unset. If FillDefaults returns ErrDefaults, the tree has a part of its
// defaults.
func (s *Schema) FillDefaults(tree map[string]any) error {
	if s == nil {
		return nil
	}
	f := filler{left: MaxDefaults}
	return f.fill(s, tree)
}

// FillDefaultsOfApplied is FillDefaults for a server-side apply of a custom kind. It keeps
// nulls of fields that are neither nullable nor have a default, because the applier claims
// ownership of them; if the field has a type, Validate rejects the null.
func (s *Schema) FillDefaultsOfApplied(tree map[string]any) error {
	if s == nil {
		return nil
	}
	f := filler{left: MaxDefaults, keepNulls: true}
	return f.fill(s, tree)
}

// filler adds defaults until it has used up its budget.
type filler struct {
	left      int // bytes
	keepNulls bool
}

func (f *filler) fill(s *Schema, tree map[string]any) error {
	f.value(s, tree, s.Struct.Canonical())
	if f.left < 0 {
		return ErrDefaults
	}
	return nil
}

// copyOf returns a copy of the default of s, and whether the budget allows it.
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
		return // Normalize removed all nulls
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
				if !f.keepNulls || next.Type == Any && !next.IntOrString { // null is a value of the type Any, but the schema is not nullable
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

// sizeOf estimates the length of a value as JSON.
func sizeOf(v any) int {
	const each = 8 // a number, a literal, or quotes and commas
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
