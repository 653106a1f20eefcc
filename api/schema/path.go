package schema

import (
	"strconv"

	"orch.io/controlplane/api/meta"
)

// path is the path from the root to a value. Messages show it as spec.containers[0].name; the
// text is only built when needed.
type path []step

type step struct {
	name  string // name of a field or key of a map
	index int    // index of a list item, or aField or aKey
}

const (
	aField = -1
	aKey   = -2
)

func (p *path) field(name string) { *p = append(*p, step{name, aField}) }
func (p *path) key(name string)   { *p = append(*p, step{name, aKey}) }
func (p *path) item(i int)        { *p = append(*p, step{index: i}) }
func (p *path) pop()              { *p = (*p)[:len(*p)-1] }

// String returns the path, cut to meta.MaxPath.
func (p path) String() string { return p.text(false) }

// keyed is String with map keys in brackets. For custom kinds, the reference server reports
// duplicates and errors in embedded objects with such paths.
func (p path) keyed() string { return p.text(true) }

func (p path) text(brackets bool) string {
	var b []byte
	for _, s := range p {
		if len(b) > meta.MaxPath {
			break
		}
		s.name = s.name[:min(len(s.name), meta.MaxPath+1)]
		switch {
		case s.index >= 0:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		case s.index == aKey && brackets:
			b = append(append(append(b, '['), s.name...), ']')
		case len(b) > 0:
			b = append(append(b, '.'), s.name...)
		default:
			b = append(b, s.name...)
		}
	}
	return meta.TruncatePath(b)
}

// to returns the text of the path to a field of the value at p. It does not change p.
func (p path) to(name string, brackets bool) string {
	return append(p[:len(p):len(p)], step{name, aField}).text(brackets)
}
