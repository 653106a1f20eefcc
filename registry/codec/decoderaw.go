package codec

import (
	"unicode/utf8"

	"orch.io/controlplane/registry/meta"
)

// member reads the value of a key. A field set is kept as text.
func (p *parser) member(key string, depth int) (any, error) {
	if key != "fieldsV1" || len(p.path) != 4 || p.path[1].key != "managedFields" || p.path[0].key != "metadata" || p.peek() != '{' {
		return p.value(depth)
	}
	start := p.pos
	s := scanner{p: p}
	if !s.value(depth) || !utf8.Valid(p.data[start:p.pos]) {
		p.pos = start // read it again for the fault, or to mend the text
		return p.value(depth)
	}
	if text := p.data[start:p.pos]; s.space {
		raw, _ := meta.CompactJSON(text)
		return raw, nil
	}
	return meta.RawJSON(p.text[start:p.pos]), nil
}

// decodeFields reads a field set that stands alone.
func decodeFields(data []byte, l Limits) (any, error) {
	p := parser{data: data, text: string(data), limits: l.withDefaults()}
	s := scanner{p: &p}
	if s.peek() == '{' && s.value(0) && s.peek() == 0 && p.pos == len(data) && utf8.Valid(data) {
		if s.space {
			raw, _ := meta.CompactJSON(data)
			return raw, nil
		}
		return meta.RawJSON(p.text), nil
	}
	v, _, err := DecodeValue(data, l)
	return v, err
}

// scanner passes over a value without keeping it.
type scanner struct {
	p     *parser
	space bool // there was space between tokens
}

// peek returns the next byte after space.
func (s *scanner) peek() byte {
	at := s.p.pos
	c := s.p.peek()
	if s.p.pos != at {
		s.space = true
	}
	return c
}

// value passes over one value; false: it is faulty or too deep.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		return depth < s.p.limits.Depth && s.items(c, depth+1)
	case c == '"':
		return s.str()
	}
	_, err := s.p.value(depth)
	return err == nil
}

// items passes over the members of an object or list.
func (s *scanner) items(open byte, depth int) bool {
	s.p.pos++
	end := byte('}')
	if open == '[' {
		end = ']'
	}
	if s.peek() == end {
		s.p.pos++
		return true
	}
	for {
		if open == '{' {
			if s.peek() != '"' || !s.str() || s.peek() != ':' {
				return false
			}
			s.p.pos++
		}
		if !s.value(depth) {
			return false
		}
		switch s.peek() {
		case ',':
			s.p.pos++
		case end:
			s.p.pos++
			return true
		default:
			return false
		}
	}
}

// str passes over a string.
func (s *scanner) str() bool {
	p := s.p
	for i := p.pos + 1; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.pos = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			var drop [4]byte
			room := drop[:0]
			n, err := p.escape(&room, i)
			if err != nil {
				return false
			}
			i += n - 1
		}
	}
	return false
}
