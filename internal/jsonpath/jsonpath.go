// Package jsonpath evaluates the JSON paths of printer columns, selectable fields and scale
// subresources, a subset of JSONPath:
//
//	.spec.replicas                                   fields
//	.metadata.labels.app\.example\.com               a dot in a name, escaped
//	.metadata.labels['app.example.com']              or quoted
//	.spec.containers[0].name   .spec.list[-1]        items, also from the end
//	.spec.list[1:]   .spec.list[-1:]   .spec.list[::2]   slices
//	.spec.list[0,2]   .metadata['name','uid']         several items or fields
//	.spec.list[].name                                the first item
//	.spec.containers[*].image                        all items or values
//	.status.conditions[?(@.type=="Ready")].status    items that satisfy a filter
//	.spec..name                                      the field at any depth, at most once in a path
//
// A path may be enclosed in braces and may begin with $. A filter compares a path below @ with
// a string, number, boolean or null by == or !=, and with a number also by <, <=, > and >=. A
// path alone is satisfied if the value exists.
package jsonpath

import (
	"fmt"
	"sort"
	"strings"

	"orch.io/controlplane/internal/number"
)

// Path is a parsed path. The zero value selects the root. A Path is immutable and safe for
// concurrent use.
type Path struct {
	steps []step
	text  string
}

type step struct {
	kind  stepKind
	name  string // field
	index int    // index
	test  *test  // filter
	slice slice
	union []step
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepIndex
	stepAll
	stepFilter
	stepSlice
	stepUnion
	stepDescend // selects the value itself and every object and list below it
)

// slice selects items of a list. A negative bound counts from the end of the list.
type slice struct {
	start, end int
	toEnd      bool // end is the length of the list
	step       int
}

// items returns the selected items, or none if a bound is outside of the list.
func (s slice) items(l []any) (items []any) {
	start, end := s.start, s.end
	if start < 0 {
		start += len(l)
	}
	if s.toEnd {
		end = len(l)
	} else if end < 0 {
		end += len(l)
	}
	if start < 0 || end > len(l) {
		return nil
	}
	for i := start; i < end; i += s.step {
		items = append(items, l[i])
	}
	return items
}

type test struct {
	left  []step
	op    string // "" tests for existence
	right any
}

// String returns the text that the path was parsed from.
func (p *Path) String() string { return p.text }

// Fields parses a path that consists of fields and returns their names.
func Fields(text string) ([]string, error) {
	p, err := Parse(text)
	if err != nil {
		return nil, err
	}
	fields, ok := p.Fields()
	if !ok || len(fields) == 0 {
		return nil, fmt.Errorf("JSON path %q must lead from field to field", text)
	}
	return fields, nil
}

// Fields returns the names of the fields if the path consists of fields.
func (p *Path) Fields() ([]string, bool) {
	out := make([]string, len(p.steps))
	for i, s := range p.steps {
		if s.kind != stepField {
			return nil, false
		}
		out[i] = s.name
	}
	return out, true
}

// First returns the first value that the path selects in v, a tree of JSON values, and whether
// there is one. A null is a value.
func (p *Path) First(v any) (found any, ok bool) {
	walk(v, p.steps, func(x any) bool {
		found, ok = x, true
		return false
	})
	return found, ok
}

// All returns all values that the path selects in v. Values of an object are sorted by name.
// The result shares memory with v.
func (p *Path) All(v any) (found []any) {
	walk(v, p.steps, func(x any) bool {
		found = append(found, x)
		return true
	})
	return found
}

// walk calls yield for each value that steps select in v. It stops and returns false when yield
// does.
func walk(v any, steps []step, yield func(any) bool) bool {
	if len(steps) == 0 {
		return yield(v)
	}
	s, rest := steps[0], steps[1:]
	for _, part := range s.union {
		if !walk(v, []step{part}, func(x any) bool { return walk(x, rest, yield) }) {
			return false
		}
	}
	if s.kind == stepDescend {
		return descend(v, rest, yield)
	}
	switch v := v.(type) {
	case map[string]any:
		return walkObject(v, s, rest, yield)
	case []any:
		return walkList(v, s, rest, yield)
	}
	return true
}

// descend applies steps to v and all values below it. It skips values that are not objects or
// lists, and empty ones.
func descend(v any, steps []step, yield func(any) bool) bool {
	below := []step{{kind: stepAll}}
	empty := walk(v, below, func(any) bool { return false })
	if empty {
		return true
	}
	return walk(v, steps, yield) && walk(v, below, func(x any) bool { return descend(x, steps, yield) })
}

func walkObject(m map[string]any, s step, rest []step, yield func(any) bool) bool {
	switch s.kind {
	case stepField:
		e, ok := m[s.name]
		return !ok || walk(e, rest, yield)
	case stepAll:
		names := make([]string, 0, len(m))
		for k := range m {
			names = append(names, k)
		}
		sort.Strings(names)
		for _, k := range names {
			if !walk(m[k], rest, yield) {
				return false
			}
		}
	}
	return true
}

func walkList(l []any, s step, rest []step, yield func(any) bool) bool {
	switch s.kind {
	case stepIndex:
		i := s.index
		if i < 0 {
			i += len(l)
		}
		return i < 0 || i >= len(l) || walk(l[i], rest, yield)
	case stepAll, stepFilter, stepSlice:
		if s.kind == stepSlice {
			l = s.slice.items(l)
		}
		for _, e := range l {
			if s.kind == stepFilter && !s.test.matches(e) {
				continue
			}
			if !walk(e, rest, yield) {
				return false
			}
		}
	}
	return true
}

func (t *test) matches(v any) bool {
	var left any
	found := false
	walk(v, t.left, func(x any) bool {
		left, found = x, true
		return false
	})
	switch {
	case !found || t.op == "":
		return found
	case t.op == "==":
		return equal(left, t.right)
	case t.op == "!=":
		return !equal(left, t.right)
	}
	c, ok := compare(left, t.right)
	if !ok {
		return false
	}
	switch t.op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func equal(a, b any) bool {
	if c, ok := compare(a, b); ok {
		return c == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return false
}

// compare orders two strings or two numbers.
func compare(a, b any) (int, bool) {
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	}
	return number.Compare(a, b)
}
