package codec

import (
	"strconv"

	"orch.io/controlplane/api/schema"
)

// maxStrict limits the number of results of StrictJSON.
const maxStrict = 100

// StrictJSON returns the unknown and duplicate fields of an object with a schema from Go, such
// as unknown field "spec.a" and duplicate field "spec.b", in the order of the text and without
// repetitions. It does not look into unknown fields. data must be valid JSON.
func StrictJSON(data []byte, s *schema.Schema) []string {
	w := strictWalk{p: newParser(data, Limits{}), seen: map[string]bool{}}
	w.value(s)
	return w.faults
}

type strictWalk struct {
	p      parser
	seen   map[string]bool
	faults []string
}

// report adds a result for the field at the end of the path.
func (w *strictWalk) report(what string) {
	if len(w.faults) >= maxStrict {
		return
	}
	fault := what + " field " + strconv.Quote(pathString(w.p.path))
	if !w.seen[fault] {
		w.seen[fault] = true
		w.faults = append(w.faults, fault)
	}
}

// value checks a value. It returns false to stop.
func (w *strictWalk) value(s *schema.Schema) bool {
	switch c := w.p.peek(); {
	case len(w.faults) >= maxStrict:
		return false
	case s == nil || s.Wire == schema.Raw || s.Wire == schema.Fields:
	case c == '{' && (s.Struct != nil || s.Values != nil):
		return w.object(s)
	case c == '[' && s.Wire == schema.OrList:
		return w.list(&schema.Schema{Type: schema.Object, Struct: s.Struct})
	case c == '[' && s.Items != nil:
		return w.list(s.Items)
	}
	return w.p.skipValue(DefaultDepth)
}

func (w *strictWalk) object(s *schema.Schema) bool {
	p := &w.p
	p.pos++
	seen := map[string]bool{}
	for p.peek() == '"' {
		key, err := p.str()
		if err != nil || p.peek() != ':' {
			return false
		}
		p.pos++
		p.path = append(p.path, step{key, -1})
		next := s.Values
		if f := s.Struct.Field(key); f != nil {
			next = f.Schema
		}
		switch {
		case next == nil && !s.Preserve:
			w.report("unknown")
		case seen[key]:
			w.report("duplicate")
		}
		seen[key] = true
		if !w.value(next) {
			return false
		}
		p.path = p.path[:len(p.path)-1]
		if p.peek() == ',' {
			p.pos++
			p.peek()
		}
	}
	p.pos++
	return true
}

func (w *strictWalk) list(items *schema.Schema) bool {
	p := &w.p
	p.pos++
	p.path = append(p.path, step{index: 0})
	at := len(p.path) - 1
	for p.peek() != ']' {
		if p.pos >= len(p.data) || !w.value(items) {
			return false
		}
		if p.peek() == ',' {
			p.pos++
			p.path[at].index++
		}
	}
	p.pos++
	p.path = p.path[:at]
	return true
}
