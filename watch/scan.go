package watch

import (
	"bytes"
	"encoding/json"
)

// A finder reads single fields out of JSON text without decoding the rest. It
// is for text that the server wrote: of malformed text it finds nothing.

// findField returns the text of the value at a path of object fields, or nil.
func findField(data []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		eachField(data, func(key, value []byte) bool {
			if keyIs(key, name) {
				found = value
				return false
			}
			return true
		})
		if data = found; data == nil {
			return nil
		}
	}
	return data
}

// eachField calls f with the key (in quotes) and the value of each field of the
// object that data begins with, until f returns false.
func eachField(data []byte, f func(key, value []byte) bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return
	}
	for i = skipSpace(data, i+1); i < len(data) && data[i] == '"'; {
		end := skipString(data, i)
		key := data[i:end]
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return
		}
		i = skipSpace(data, i+1)
		end = skipValue(data, i)
		if end <= i || !f(key, data[i:end]) {
			return
		}
		if i = skipSpace(data, end); i >= len(data) || data[i] != ',' {
			return
		}
		i = skipSpace(data, i+1)
	}
}

func keyIs(quoted []byte, name string) bool {
	if len(quoted) < 2 {
		return false
	}
	if bytes.IndexByte(quoted, '\\') >= 0 {
		return unquote(quoted) == name
	}
	return string(quoted[1:len(quoted)-1]) == name
}

// unquote returns the string that a JSON string stands for.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 && len(quoted) >= 2 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s)
	return s
}

// scalar returns a string's value, the text of a number or boolean, or "".
func scalar(value []byte) string {
	switch {
	case len(value) == 0 || value[0] == '{' || value[0] == '[' || value[0] == 'n':
		return ""
	case value[0] == '"':
		return unquote(value)
	}
	return string(value)
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the place after the string that begins at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data); {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			break
		}
		escape := bytes.IndexByte(data[i:i+quote], '\\')
		if escape < 0 {
			return i + quote + 1
		}
		i += escape + 2
	}
	return len(data)
}

// skipValue returns the place after the value that begins at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
