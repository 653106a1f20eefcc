// Package check collects the violations in an object: it has field paths, the kinds of
// violations, and the formats that fields of several kinds share.
//
// A Path is cheap to build; its text is only formatted for a violation.
package check

import (
	"slices"
	"strconv"

	"orch.io/controlplane/api/meta"
)

// Path is the path of a field in an object. A nil Path is the object itself. A Path is
// immutable.
type Path struct {
	parent *Path
	name   string
	form   form
	index  int
}

type form uint8

const (
	field form = iota
	item
	key
)

// At returns the path with the given field names.
func At(names ...string) *Path {
	var p *Path
	for _, n := range names {
		p = p.Field(n)
	}
	return p
}

// Field returns the path of the named field below p.
func (p *Path) Field(name string) *Path { return &Path{parent: p, name: name} }

// Index returns the path of a list item below p.
func (p *Path) Index(i int) *Path { return &Path{parent: p, form: item, index: i} }

// Key returns the path of a map entry below p.
func (p *Path) Key(k string) *Path { return &Path{parent: p, form: key, name: k} }

// String returns the path as causes show it, such as spec.containers[0].env[1].name, cut to
// meta.MaxPath bytes.
func (p *Path) String() string {
	var steps []*Path
	for ; p != nil; p = p.parent {
		steps = append(steps, p)
	}
	var b []byte
	for _, s := range slices.Backward(steps) {
		if len(b) > meta.MaxPath {
			break
		}
		name := s.name[:min(len(s.name), meta.MaxPath+1)]
		switch {
		case s.form == item:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		case s.form == key:
			b = append(append(append(b, '['), name...), ']')
		case len(b) > 0:
			b = append(append(b, '.'), name...)
		default:
			b = append(b, name...)
		}
	}
	return meta.TruncatePath(b)
}
