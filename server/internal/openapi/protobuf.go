package openapi

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"orch.io/controlplane/internal/codec"
)

// encoding is how a value of a document is encoded as a protobuf field.
type encoding uint8

const (
	text        encoding = iota
	texts                // repeated string
	boolean              // bool
	integer              // int64
	double               //
	yaml                 // Any: a message with the value as YAML (JSON is YAML) in field 2
	yamls                // repeated Any
	submessage           // message
	submessages          // repeated message
	omitted              // not encoded
)

// member describes the protobuf field of a member of a JSON object.
type member struct {
	number   protowire.Number
	encoding encoding
	message  string // for submessage and submessages: the name of the message
}

// message describes the protobuf message of a JSON object.
type message struct {
	members    map[string]member
	extensions protowire.Number // field for x- keys, a repeated NamedAny; 0: none

	// entries is the field for all other keys; 0: none. It is a repeated message with name = 1 and value = 2. The
	// value is the message entry, or a list of strings.
	entries protowire.Number
	entry   string

	// large is set if the members are decoded separately, because all of them together take too much memory.
	large bool

	// wrap, if set, returns the single field of the message that holds a value.
	wrap func(v any) member
}

// messages are the messages of a version of OpenAPI by name. The field numbers are those of
// github.com/google/gnostic-models.
type messages map[string]message

// document returns a JSON document as a message Document, with the fields in the order of the JSON names.
func (m messages) document(text io.Reader) []byte {
	in := json.NewDecoder(text)
	dst, err := m.read(nil, in, "Document")
	if err != nil {
		return nil // cannot happen: newDocument encoded it
	}
	return dst
}

// read reads a JSON object and appends the fields of a large message.
func (m messages) read(dst []byte, in *json.Decoder, name string) ([]byte, error) {
	if _, err := in.Token(); err != nil { // {
		return nil, err
	}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if f := m[name].members[key]; f.encoding == submessage && m[f.message].large {
			var start int
			dst, start = begin(dst, f.number)
			if dst, err = m.read(dst, in, f.message); err != nil {
				return nil, err
			}
			dst = end(dst, start)
			continue
		}
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return nil, err
		}
		v, _, err := codec.DecodeValue(text, codec.Limits{Bytes: math.MaxInt, Depth: 10_000, Values: math.MaxInt})
		if err != nil {
			return nil, err
		}
		dst = m.field(dst, m[name], key, v)
	}
	_, err := in.Token() // }
	return dst, err
}

// encode appends the fields of a message.
func (m messages) encode(dst []byte, name string, v any) []byte {
	msg := m[name]
	if msg.wrap != nil {
		return m.member(dst, msg.wrap(v), v)
	}
	tree, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		dst = m.field(dst, msg, key, tree[key])
	}
	return dst
}

// field appends the field of a member of an object.
func (m messages) field(dst []byte, msg message, key string, v any) []byte {
	f, known := msg.members[key]
	switch {
	case known:
		return m.member(dst, f, v)
	case msg.extensions != 0 && strings.HasPrefix(key, "x-"):
		return m.entry(dst, msg.extensions, key, member{2, yaml, ""}, v)
	case msg.entries != 0:
		return m.entry(dst, msg.entries, key, member{2, submessage, msg.entry}, v)
	}
	return dst
}

// entry appends an entry of a map.
func (m messages) entry(dst []byte, number protowire.Number, key string, value member, v any) []byte {
	dst, start := begin(dst, number)
	dst = protowire.AppendString(protowire.AppendTag(dst, 1, protowire.BytesType), key)
	return end(m.member(dst, value, v), start)
}

func (m messages) member(dst []byte, f member, v any) []byte {
	switch f.encoding {
	case text:
		s, _ := v.(string)
		return protowire.AppendString(protowire.AppendTag(dst, f.number, protowire.BytesType), s)
	case boolean:
		on, _ := v.(bool)
		return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), protowire.EncodeBool(on))
	case integer:
		n, _ := v.(int64)
		return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), uint64(n))
	case double:
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), math.Float64bits(float(v)))
	case yaml:
		dst, outer := begin(dst, f.number)
		dst, inner := begin(dst, 2)
		return end(end(append(append(dst, escapeYAML(codec.EncodeValue(nil, v))...), '\n'), inner), outer)
	case submessage:
		dst, start := begin(dst, f.number)
		return end(m.encode(dst, f.message, v), start)
	case omitted:
		return dst
	}
	list, _ := v.([]any)
	item := member{f.number, itemEncoding[f.encoding], f.message}
	for _, e := range list {
		dst = m.member(dst, item, e)
	}
	return dst
}

// begin appends the tag of a field of unknown length, and one byte for the length. end sets the length,
// and moves the content if the length needs more than one byte.
func begin(dst []byte, number protowire.Number) ([]byte, int) {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	return append(dst, 0), len(dst)
}

func end(dst []byte, start int) []byte {
	length := len(dst) - start - 1
	if size := protowire.SizeVarint(uint64(length)); size > 1 {
		dst = append(dst, make([]byte, size-1)...)
		copy(dst[start+size:], dst[start+1:start+1+length])
	}
	protowire.AppendVarint(dst[:start], uint64(length))
	return dst
}

func float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// named returns the message of a map with arbitrary keys.
func named(entry string) message { return message{entries: 1, entry: entry} }
