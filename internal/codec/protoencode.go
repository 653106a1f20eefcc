package codec

import (
	"encoding/base64"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Append appends the message of an object, without envelope, apiVersion and kind. The tree must
// be normalized to the schema; a value of another type counts as unset.
func (p *Proto) Append(dst []byte, tree map[string]any) []byte {
	var room [keyRoom]string
	return p.root.append(dst, tree, room[:0])
}

func (m *protoMessage) append(dst []byte, tree map[string]any, keys []string) []byte {
	for _, f := range m.fields {
		if f.name == "" {
			if f.pointer && !f.value.message.any(tree) {
				continue
			}
			dst = f.value.append(f.tag(dst), tree, keys)
			continue
		}
		v, ok := tree[f.name]
		switch f.many {
		case list:
			l, _ := v.([]any)
			for _, item := range l {
				dst = f.value.append(f.tag(dst), item, keys)
			}
		case mapping:
			entries, _ := v.(map[string]any)
			dst = f.appendMap(dst, entries, keys)
		default:
			if f.writes(v, ok) {
				dst = f.value.append(f.tag(dst), v, keys)
			}
		}
	}
	return dst
}

// writes reports whether a single value is encoded: pointers, bytes and wrapped lists only if
// they are set, others always.
func (f *protoField) writes(v any, ok bool) bool {
	if f.value.kind == kindBytes {
		return ok && v != nil
	}
	return !f.pointer && f.value.kind != kindWrapped || ok && v != nil
}

// any reports whether tree has a field of the message.
func (m *protoMessage) any(tree map[string]any) bool {
	for _, f := range m.fields {
		if f.name == "" {
			if f.value.message.any(tree) {
				return true
			}
		} else if v, ok := tree[f.name]; ok && v != nil {
			return true
		}
	}
	return false
}

// appendMap appends the entries sorted by key.
func (f *protoField) appendMap(dst []byte, m map[string]any, keys []string) []byte {
	base := len(keys)
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys[base:])
	for i := base; i < len(keys); i++ {
		dst = protowire.AppendTag(dst, f.number, protowire.BytesType)
		at := len(dst)
		dst = protowire.AppendString(append(dst, 0, 1<<3|byte(protowire.BytesType)), keys[i])
		if v := m[keys[i]]; v != nil || f.value.kind != kindBytes {
			dst = f.value.append(protowire.AppendTag(dst, 2, f.value.wire()), v, keys)
		}
		dst = closeLength(dst, at)
	}
	return dst
}

func (f *protoField) tag(dst []byte) []byte {
	return protowire.AppendTag(dst, f.number, f.value.wire())
}

func (v *protoValue) wire() protowire.Type {
	switch v.kind {
	case kindInt, kindBool:
		return protowire.VarintType
	case kindDouble:
		return protowire.Fixed64Type
	case kindFloat:
		return protowire.Fixed32Type
	}
	return protowire.BytesType
}

// closeLength sets the length prefix at position at, where one byte is reserved, to the number
// of bytes after it. It moves these bytes if the length needs more than one byte.
func closeLength(dst []byte, at int) []byte {
	n := len(dst) - at - 1
	if n < 0x80 {
		dst[at] = byte(n)
		return dst
	}
	extra := protowire.SizeVarint(uint64(n)) - 1
	for range extra {
		dst = append(dst, 0)
	}
	copy(dst[at+1+extra:], dst[at+1:at+1+n])
	protowire.AppendVarint(dst[:at], uint64(n))
	return dst
}

// append appends a value, with its length if it is length-delimited.
func (v *protoValue) append(dst []byte, x any, keys []string) []byte {
	switch v.kind {
	case kindString:
		s, _ := x.(string)
		return protowire.AppendString(dst, s)
	case kindInt:
		return protowire.AppendVarint(dst, uint64(integer(x)))
	case kindBool:
		b, _ := x.(bool)
		return protowire.AppendVarint(dst, protowire.EncodeBool(b))
	case kindDouble:
		return protowire.AppendFixed64(dst, math.Float64bits(float(x)))
	case kindFloat:
		return protowire.AppendFixed32(dst, math.Float32bits(float32(float(x))))
	case kindBytes:
		s, _ := x.(string)
		b, _ := base64.StdEncoding.DecodeString(s)
		return protowire.AppendBytes(dst, b)
	}
	at := len(dst)
	return closeLength(v.appendMessage(append(dst, 0), x, keys), at)
}

// appendMessage appends the content of a value that is a message.
func (v *protoValue) appendMessage(dst []byte, x any, keys []string) []byte {
	switch v.kind {
	case kindMessage:
		m, _ := x.(map[string]any)
		return v.message.append(dst, m, keys)
	case kindWrapped:
		l, _ := x.([]any)
		for _, item := range l {
			dst = v.items.value.append(v.items.tag(dst), item, keys)
		}
	case kindTime:
		if t, ok := parseTime(x); ok {
			return appendTime(dst, t.Unix(), 0)
		}
	case kindMicroTime:
		if t, ok := parseTime(x); ok {
			return appendTime(dst, t.Unix(), int64(t.Nanosecond()/1000*1000))
		}
	case kindQuantity:
		s, ok := x.(string)
		if !ok {
			s = "0"
		}
		return protowire.AppendString(append(dst, 0x0a), s)
	case kindIntOrString:
		return appendIntOrString(dst, x)
	case kindRaw, kindFields:
		if x != nil {
			at := len(dst) + 1
			return closeLength(EncodeValue(append(dst, 0x0a, 0), x), at)
		}
	case kindOrBoolean:
		m, isMessage := x.(map[string]any)
		dst = append(dst, 0x08, byte(protowire.EncodeBool(isMessage || x == true)))
		if isMessage {
			return v.appendAlternative(dst, 2, m, keys)
		}
	case kindOrList:
		if m, ok := x.(map[string]any); ok {
			return v.appendAlternative(dst, 1, m, keys)
		}
		l, _ := x.([]any)
		for _, item := range l {
			m, _ := item.(map[string]any)
			dst = v.appendAlternative(dst, 2, m, keys)
		}
	case kindDuration:
		s, _ := x.(string)
		d, _ := time.ParseDuration(s)
		return protowire.AppendVarint(append(dst, 0x08), uint64(d))
	}
	return dst
}

// appendAlternative appends an object of an OrBoolean or OrList value as the given field.
func (v *protoValue) appendAlternative(dst []byte, number protowire.Number, m map[string]any, keys []string) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	at := len(dst)
	return closeLength(v.message.append(append(dst, 0), m, keys), at)
}

func appendTime(dst []byte, seconds, nanos int64) []byte {
	dst = protowire.AppendVarint(append(dst, 0x08), uint64(seconds))
	return protowire.AppendVarint(append(dst, 0x10), uint64(nanos))
}

func appendIntOrString(dst []byte, x any) []byte {
	s, isText := x.(string)
	n := integer(x)
	dst = append(dst, 0x08, byte(protowire.EncodeBool(isText)), 0x10)
	dst = protowire.AppendVarint(dst, uint64(n))
	return protowire.AppendString(append(dst, 0x1a), s)
}

func parseTime(x any) (time.Time, bool) {
	s, ok := x.(string)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil && !t.IsZero()
}

func integer(x any) int64 {
	switch n := x.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func float(x any) float64 {
	switch n := x.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}
