package codec

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/number"
)

// ErrNull is returned for a body that is the value null: it is well-formed but not an object.
var ErrNull = errors.New("the body is null")

// Limits limits the input of a decoder. Zero fields stand for the defaults.
type Limits struct {
	Bytes      int // size of the body in bytes; 0 if the caller limits it
	Depth      int // nesting of objects and lists; 0 for DefaultDepth
	Values     int // values after expansion of YAML aliases, fewer for a short text; 0 for DefaultValues
	Duplicates int // reported duplicate keys; 0 for DefaultDuplicates

	// WholeFloats converts numbers such as 3.0 and 3e0 to int64, as in YAML.
	WholeFloats bool
}

// The default limits. A depth of 1000 is much more than any kind needs, and small enough for
// recursive functions over a tree.
const (
	DefaultDepth      = 1000
	DefaultValues     = 1_000_000
	DefaultDuplicates = 100
)

func (l Limits) withDefaults() Limits {
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	if l.Values == 0 {
		l.Values = DefaultValues
	}
	if l.Duplicates == 0 {
		l.Duplicates = DefaultDuplicates
	}
	return l
}

// DecodeJSON decodes a JSON object (RFC 8259). Integers in the range of int64 become int64,
// other numbers float64. If a key occurs twice in an object, the last value is used, and
// duplicates has the path of the key (spec.containers[0].name). The field sets in
// metadata.managedFields become meta.RawJSON. Strings in the tree share one copy of the text,
// which any of them keeps alive; see Detach. data may be reused afterwards.
//
// Errors are 400 *meta.Status with the byte position, 413 for a body of more than l.Bytes, or
// ErrNull.
func DecodeJSON(data []byte, l Limits) (tree map[string]any, duplicates []string, err error) {
	v, duplicates, err := DecodeValue(data, l)
	if err != nil {
		return nil, nil, err
	}
	switch v := v.(type) {
	case map[string]any:
		return v, duplicates, nil
	case nil:
		return nil, nil, ErrNull
	}
	return nil, nil, notObject(v)
}

// DecodeWithout is DecodeJSON for callers that need a small part of a large object: it skips
// all fields with the given name at any depth, and the result does not share memory with the
// text.
func DecodeWithout(data []byte, field string) (tree map[string]any, err error) {
	p := newParser(data, Limits{}.withDefaults())
	p.skipName = field
	v, err := p.document()
	if err != nil {
		return nil, err
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return nil, notObject(v)
	}
	return Detach(tree), nil
}

func notObject(v any) *meta.Status {
	word := "a number"
	switch v.(type) {
	case []any:
		word = "a list"
	case string:
		word = "a string"
	case bool:
		word = "a boolean"
	}
	return meta.BadRequest("the body must be an object, found %s", word)
}

// DecodeValue decodes a JSON value of any type, with the rules of DecodeJSON.
func DecodeValue(data []byte, l Limits) (value any, duplicates []string, err error) {
	l = l.withDefaults()
	if l.Bytes > 0 && len(data) > l.Bytes {
		return nil, nil, tooLarge(l.Bytes)
	}
	p := newParser(data, l)
	v, err := p.document()
	if err != nil {
		return nil, nil, err
	}
	return v, p.duplicates, nil
}

func tooLarge(limit int) *meta.Status {
	return meta.TooLarge("the body is larger than %d bytes", limit)
}

// step is a step of a path: a key or an index.
type step struct {
	key   string
	index int // -1 for a key
}

// parser decodes a text. The strings of the tree are parts of one copy of the text: they cost a
// single allocation, and each of them keeps the whole text alive.
type parser struct {
	scanner
	text       string // a copy of scanner.data
	limits     Limits
	path       []step
	duplicates []string
	repeats    int    // calls of duplicate, limited because each may format a path
	skipName   string // name of the fields to skip, or ""
}

func newParser(data []byte, l Limits) parser {
	return parser{scanner: scanner{data: data}, text: string(data), limits: l}
}

// document decodes the only value of the text.
func (p *parser) document() (any, error) {
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.peek(); p.pos < len(p.data) {
		return nil, p.fault("unexpected data after the value")
	}
	return v, nil
}

func (p *parser) value(depth int) (any, error) {
	switch c := p.peek(); {
	case c == '{':
		if depth >= p.limits.Depth {
			return nil, p.fault("more than %d levels deep", p.limits.Depth)
		}
		return p.object(depth + 1)
	case c == '[':
		if depth >= p.limits.Depth {
			return nil, p.fault("more than %d levels deep", p.limits.Depth)
		}
		return p.list(depth + 1)
	case c == '"':
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return true, p.literal("true")
	case c == 'f':
		return false, p.literal("false")
	case c == 'n':
		return nil, p.literal("null")
	}
	return nil, p.unexpected("a value")
}

func (p *parser) object(depth int) (any, error) {
	p.pos++
	m := map[string]any{}
	if p.peek() == '}' {
		p.pos++
		return m, nil
	}
	for {
		if p.peek() != '"' {
			return nil, p.unexpected("a key")
		}
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, p.unexpected("':'")
		}
		p.pos++
		if p.skipName != "" && key == p.skipName {
			if !p.skipValue(p.limits.Depth - depth) {
				return nil, p.fault("a value that cannot be read")
			}
		} else if err := p.entry(m, key, depth); err != nil {
			return nil, err
		}
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return m, nil
		default:
			return nil, p.unexpected("',' or '}'")
		}
	}
}

// entry decodes the value of a field of m.
func (p *parser) entry(m map[string]any, key string, depth int) error {
	p.path = append(p.path, step{key, -1})
	before := len(m)
	v, err := p.member(key, depth)
	if err != nil {
		return err
	}
	if m[key] = v; len(m) == before {
		p.duplicate()
	}
	p.path = p.path[:len(p.path)-1]
	return nil
}

func (p *parser) list(depth int) (any, error) {
	p.pos++
	l := []any{}
	if p.peek() == ']' {
		p.pos++
		return l, nil
	}
	p.path = append(p.path, step{index: 0})
	at := len(p.path) - 1
	for {
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
		switch p.peek() {
		case ',':
			p.pos++
			p.path[at].index++
		case ']':
			p.pos++
			p.path = p.path[:at]
			return l, nil
		default:
			return nil, p.unexpected("',' or ']'")
		}
	}
}

// duplicate adds the key at the end of the path to the duplicates.
func (p *parser) duplicate() {
	if p.repeats++; len(p.duplicates) >= p.limits.Duplicates || p.repeats > 16*p.limits.Duplicates {
		return
	}
	d := pathString(p.path)
	for _, have := range p.duplicates {
		if have == d {
			return
		}
	}
	p.duplicates = append(p.duplicates, d)
}

// pathString returns a path as messages show it, cut to meta.MaxPath.
func pathString(path []step) string {
	var b []byte
	for _, s := range path {
		if len(b) > meta.MaxPath {
			break
		}
		if s.index >= 0 {
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, s.key[:min(len(s.key), meta.MaxPath+1)]...)
	}
	return meta.TruncatePath(b)
}

func (p *parser) number() (any, error) {
	start := p.pos
	text, integer, err := p.scanner.number()
	if err != nil {
		return nil, err
	}
	if integer {
		if n, ok := smallInt(text); ok {
			return n, nil
		}
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return n, nil
		}
	}
	f, ok := parseFloat(text)
	if !ok {
		p.pos = start
		return nil, p.fault("a number out of range")
	}
	if p.limits.WholeFloats {
		if n, ok := number.Integer(f); ok {
			return n, nil
		}
	}
	return f, nil
}

// smallInt parses an integer of up to 18 characters, which cannot overflow.
func smallInt(text []byte) (int64, bool) {
	if len(text) > 18 {
		return 0, false
	}
	digits, negative := text, text[0] == '-'
	if negative {
		digits = text[1:]
	}
	var n int64
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

func parseFloat(text []byte) (f float64, ok bool) {
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

func (p *parser) str() (string, error) {
	start := p.pos + 1
	for i := start; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.pos = i + 1
			return p.text[start:i], nil
		case c == '\\' || c >= utf8.RuneSelf:
			return p.slowString(start, i)
		case c < ' ':
			p.pos = i
			return "", p.fault("a control character in a string")
		}
	}
	p.pos = len(p.data)
	return "", p.fault("unexpected end in a string")
}

// slowString decodes the rest of a string, from i, that has escapes or characters outside
// ASCII. Invalid UTF-8 and lone surrogates become U+FFFD.
func (p *parser) slowString(start, i int) (string, error) {
	out := append(make([]byte, 0, i-start+32), p.data[start:i]...)
	for i < len(p.data) {
		switch c := p.data[i]; {
		case c == '"':
			p.pos = i + 1
			return string(out), nil
		case c == '\\':
			r, n, err := p.escape(i)
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			i += n
		case c < ' ':
			p.pos = i
			return "", p.fault("a control character in a string")
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(p.data[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	p.pos = len(p.data)
	return "", p.fault("unexpected end in a string")
}
