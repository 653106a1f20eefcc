// Package check collects what is wrong with an object: field paths, kinds of
// faults, and the formats that fields of several kinds share.
//
// Building a Path is cheap; its text is made only when there is a fault.
package check

import (
	"slices"
	"strconv"

	"orch.io/controlplane/api/meta"
)

// Path leads to a field of an object. A nil Path is the object itself.
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

// At returns the path that leads through named fields.
func At(names ...string) *Path {
	var p *Path
	for _, n := range names {
		p = p.Field(n)
	}
	return p
}

// Field returns the path of a named field below p.
func (p *Path) Field(name string) *Path { return &Path{parent: p, name: name} }

// Index returns the path of a list item below p.
func (p *Path) Index(i int) *Path { return &Path{parent: p, form: item, index: i} }

// Key returns the path of a map entry below p.
func (p *Path) Key(k string) *Path { return &Path{parent: p, form: key, name: k} }

// String returns the path as causes spell it, spec.containers[0].env[1].name, cut
// to meta.MaxPath.
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
	return meta.CutPath(b)
}
