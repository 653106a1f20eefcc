package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits on the length of a path, in bytes, and on its steps.
const (
	maxLength = 1024
	maxSteps  = 64
)

// Parse parses a path.
func Parse(text string) (*Path, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("JSON path exceeds %d characters", maxLength)
	}
	s := text
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") {
		s = s[1 : len(s)-1]
	}
	p := &parser{s: s, ways: 1}
	if strings.HasPrefix(s, "$") {
		p.i++
	}
	if p.i == len(s) || s[p.i] != '.' && s[p.i] != '[' {
		return nil, p.errorf("must begin with a dot")
	}
	if s == "." {
		return &Path{text: text}, nil
	}
	steps, err := p.steps("")
	if err != nil {
		return nil, err
	}
	if p.i < len(s) {
		return nil, p.errorf("%q is not expected", s[p.i])
	}
	return &Path{steps, text}, nil
}

type parser struct {
	s        string
	i        int
	ways     int  // combinations of the parts of all unions; limited, because each is evaluated
	descends bool // a recursive descent was parsed; another would multiply the values to visit
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("JSON path %q, at %d: %s", p.s, p.i, fmt.Sprintf(format, args...))
}

func (p *parser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *parser) take(prefix string) bool {
	if strings.HasPrefix(p.s[p.i:], prefix) {
		p.i += len(prefix)
		return true
	}
	return false
}

// steps parses steps up to the end of the text or a byte that cannot continue the path. Names
// also end at the bytes in stop.
func (p *parser) steps(stop string) ([]step, error) {
	var out []step
	for {
		var s step
		var err error
		switch p.peek() {
		case '.':
			p.i++
			if p.take(".") {
				if p.descends {
					return nil, p.errorf("a second recursive descent")
				}
				p.descends = true
				out = append(out, step{kind: stepDescend})
			}
			if p.peek() == '[' {
				s, err = p.bracket()
			} else {
				s, err = p.name(stop)
			}
		case '[':
			s, err = p.bracket()
		default:
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, s); len(out) > maxSteps {
			return nil, p.errorf("more than %d steps", maxSteps)
		}
	}
}

func (p *parser) name(stop string) (step, error) {
	if p.take("*") {
		return step{kind: stepAll}, nil
	}
	var b strings.Builder
	for p.i < len(p.s) {
		c := p.s[p.i]
		if c == '\\' && p.i+1 < len(p.s) {
			b.WriteByte(p.s[p.i+1])
			p.i += 2
			continue
		}
		if strings.IndexByte(".[]{}()\"' ", c) >= 0 || strings.IndexByte(stop, c) >= 0 {
			break
		}
		b.WriteByte(c)
		p.i++
	}
	if b.Len() == 0 {
		return step{}, p.errorf("a field name is missing")
	}
	return step{kind: stepField, name: b.String()}, nil
}

func (p *parser) bracket() (step, error) {
	p.i++ // [
	s, err := p.selected()
	if err != nil || p.take("]") {
		return s, err
	}
	union := step{kind: stepUnion, union: []step{s}}
	for p.take(",") {
		p.spaces()
		if s, err = p.selected(); err != nil {
			return s, err
		}
		union.union = append(union.union, s)
		p.spaces()
	}
	if !p.take("]") {
		return s, p.errorf("] is missing")
	}
	if p.ways *= len(union.union); p.ways > maxSteps {
		return s, p.errorf("the unions lead more than %d ways", maxSteps)
	}
	return union, nil
}

// selected parses the content of brackets, or a part of a union.
func (p *parser) selected() (step, error) {
	switch c := p.peek(); {
	case p.take("*"):
		return step{kind: stepAll}, nil
	case p.take("?("):
		t, err := p.test()
		if err == nil && !p.take(")") {
			err = p.errorf("the test must end with )]")
		}
		return step{kind: stepFilter, test: t}, err
	case c == '\'' || c == '"':
		name, err := p.quoted()
		return step{kind: stepField, name: name}, err
	}
	end := strings.IndexAny(p.s[p.i:], "],")
	if end < 0 {
		return step{}, p.errorf("] is missing")
	}
	text := p.s[p.i : p.i+end]
	p.i += end
	if text == "" {
		return step{kind: stepIndex}, nil // the first item, like the reference server
	}
	return p.items(text)
}

// items parses an index, or a slice such as 1:, -1: or ::2.
func (p *parser) items(text string) (step, error) {
	parts := strings.Split(text, ":")
	var numbers [3]int
	for i, part := range parts {
		if part == "" && len(parts) > 1 && i < len(numbers) {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || i >= len(numbers) {
			return step{}, p.errorf("%q is not an index", text)
		}
		numbers[i] = int(n)
	}
	if len(parts) == 1 {
		return step{kind: stepIndex, index: numbers[0]}, nil
	}
	s := slice{start: numbers[0], end: numbers[1], toEnd: parts[1] == "", step: 1}
	if len(parts) == 3 && parts[2] != "" {
		if s.step = numbers[2]; s.step <= 0 {
			return step{}, p.errorf("the step of %q must be greater than 0", text)
		}
	}
	return step{kind: stepSlice, slice: s}, nil
}

func (p *parser) test() (*test, error) {
	p.spaces()
	if !p.take("@") {
		return nil, p.errorf("a filter must begin with @")
	}
	left, err := p.steps("=!<>")
	if err != nil {
		return nil, err
	}
	t := &test{left: left}
	p.spaces()
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if p.take(op) {
			t.op = op
			break
		}
	}
	if t.op == "" {
		return t, nil
	}
	p.spaces()
	t.right, err = p.literal()
	p.spaces()
	return t, err
}

func (p *parser) spaces() {
	for p.peek() == ' ' {
		p.i++
	}
}

func (p *parser) literal() (any, error) {
	if c := p.peek(); c == '\'' || c == '"' {
		return p.quoted()
	}
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(" )]", p.s[p.i]) < 0 {
		p.i++
	}
	switch word := p.s[start:p.i]; word {
	case "true", "false":
		return word == "true", nil
	case "null":
		return nil, nil
	default:
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, p.errorf("%q is not a value", word)
		}
		return f, nil
	}
}

func (p *parser) quoted() (string, error) {
	quote := p.s[p.i]
	p.i++
	var b strings.Builder
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == quote:
			return b.String(), nil
		case c == '\\' && p.i < len(p.s):
			b.WriteByte(p.s[p.i])
			p.i++
		default:
			b.WriteByte(c)
		}
	}
	return "", p.errorf("the quote does not end")
}
