package codec

import (
	"bytes"
	"iter"
)

// FindField returns the text of the value at a path of object fields, or nil if there is none.
// The text must have been validated before, or come from the server itself. The result shares
// memory with data. Fields yields the names of the fields of an object and the text of their
// values, which shares memory with object. It stops at the first syntax error.
func FindField(data []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		for key, value := range Fields(data) {
			if string(key) == name {
				found = value
				break
			}
		}
		if data = found; data == nil {
			return nil
		}
	}
	return data
}

// Fields returns the names of the fields of an object and the text of their values.
// It ends before the first fault.
func Fields(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		s := scanner{data: object}
		if s.peek() != '{' {
			return
		}
		s.pos++
		for s.peek() == '"' {
			start := s.pos
			if !s.skipString() {
				return
			}
			name := unquote(s.data[start:s.pos])
			if s.peek() != ':' {
				return
			}
			s.pos++
			s.peek()
			start = s.pos
			if !s.skipValue(DefaultDepth) || !yield(name, s.data[start:s.pos]) || s.peek() != ',' {
				return
			}
			s.pos++
		}
	}
}

// Items yields the text of each item of a list. It stops at the first syntax error.
func Items(list []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		s := scanner{data: list}
		if s.peek() != '[' {
			return
		}
		s.pos++
		for s.peek() != ']' {
			start := s.pos
			if !s.skipValue(DefaultDepth) || !yield(s.data[start:s.pos]) || s.peek() != ',' {
				return
			}
			s.pos++
		}
	}
}

// CountValues returns an upper bound for the number of values in a JSON text, which may be
// invalid. The memory for a decoded tree depends more on it than on the length of the text.
func CountValues(data []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}

// ScalarText returns the value of a string, the text of a number or boolean, and "" for all
// other values.
func ScalarText(value []byte) string {
	switch {
	case len(value) == 0 || value[0] == '{' || value[0] == '[' || value[0] == 'n':
		return ""
	case value[0] == '"':
		return string(unquote(value))
	}
	return string(value)
}

// unquote returns the value of a JSON string.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	p := newParser(quoted, Limits{})
	text, _ := p.str()
	return []byte(text)
}

// IsObject reports whether data is exactly one JSON object with at most depth levels.
func IsObject(data []byte, depth int) bool {
	s := scanner{data: data}
	return s.onlyObject(depth)
}

func (s *scanner) onlyObject(depth int) bool {
	return s.peek() == '{' && s.skipValue(depth) && s.peek() == 0 && s.pos == len(s.data)
}

// skipValue skips a value. It returns false for a syntax error or more than depth levels.
func (s *scanner) skipValue(depth int) bool {
	switch s.peek() {
	case '{':
		return depth > 0 && s.skipItems('}', depth-1)
	case '[':
		return depth > 0 && s.skipItems(']', depth-1)
	case '"':
		return s.skipString()
	case 't':
		return s.literal("true") == nil
	case 'f':
		return s.literal("false") == nil
	case 'n':
		return s.literal("null") == nil
	}
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return false
	}
	text, integer, err := s.number()
	if err != nil || integer && len(text) <= 18 {
		return err == nil
	}
	_, ok := parseFloat(text)
	return ok
}

// skipItems skips the members of an object or list.
func (s *scanner) skipItems(end byte, depth int) bool {
	s.pos++
	if s.peek() == end {
		s.pos++
		return true
	}
	for {
		if end == '}' {
			if s.peek() != '"' || !s.skipString() || s.peek() != ':' {
				return false
			}
			s.pos++
		}
		if !s.skipValue(depth) {
			return false
		}
		switch s.peek() {
		case ',':
			s.pos++
		case end:
			s.pos++
			return true
		default:
			return false
		}
	}
}

// skipString skips a string.
func (s *scanner) skipString() bool {
	data := s.data
	for i := s.pos + 1; i < len(data); i++ {
		switch c := data[i]; {
		case c > '\\' || c >= ' ' && c != '"' && c != '\\':
		case c == '"':
			s.pos = i + 1
			return true
		case c == '\\':
			_, n, err := s.escape(i)
			if err != nil {
				return false
			}
			i += n - 1
		default:
			return false
		}
	}
	return false
}
