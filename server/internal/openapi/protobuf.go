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

// form is how a value of a document becomes a protobuf field.
type form uint8

const (
	text    form = iota
	texts        // repeated string
	boolean      // bool
	integer      // int64
	double       //
	yaml         // Any: a message with the value as YAML = 2, of which JSON is a part
	yamls        // repeated Any
	one          // a message
	many         // repeated messages
	none         // nothing
)

// member is a field of a message by its name in JSON.
type member struct {
	number  protowire.Number
	form    form
	message string // of one and many
}

// message is how an object of a document becomes a protobuf message.
type message struct {
	members    map[string]member
	extensions protowire.Number // of the repeated NamedAny that x- keys go to

	// entries is the field that all other keys go to: repeated messages of name
	// = 1 and value = 2, which is the message entry (or a string list).
	entries protowire.Number
	entry   string

	// large says that the values are read one by one: all of them are too much at a time.
	large bool

	// wrap makes the message one with a single field that holds the value.
	wrap func(v any) member
}

// messages are the messages of one version of OpenAPI by name: the numbers of
// github.com/google/gnostic-models.
type messages map[string]message

// document returns a JSON document as a message Document. Members are in the order of
// their names.
func (m messages) document(text io.Reader) []byte {
	in := json.NewDecoder(text)
	dst, err := m.read(nil, in, "Document")
	if err != nil {
		return nil // it is our own encoding
	}
	return dst
}

// read appends the body of a large message.
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
		if f := m[name].members[key]; f.form == one && m[f.message].large {
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

// encode appends the body of a message.
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

// field appends one member of an object.
func (m messages) field(dst []byte, msg message, key string, v any) []byte {
	f, known := msg.members[key]
	switch {
	case known:
		return m.member(dst, f, v)
	case msg.extensions != 0 && strings.HasPrefix(key, "x-"):
		return m.entry(dst, msg.extensions, key, member{2, yaml, ""}, v)
	case msg.entries != 0:
		return m.entry(dst, msg.entries, key, member{2, one, msg.entry}, v)
	}
	return dst
}

// entry appends one entry of a map.
func (m messages) entry(dst []byte, number protowire.Number, key string, value member, v any) []byte {
	dst, start := begin(dst, number)
	dst = protowire.AppendString(protowire.AppendTag(dst, 1, protowire.BytesType), key)
	return end(m.member(dst, value, v), start)
}

func (m messages) member(dst []byte, f member, v any) []byte {
	switch f.form {
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
	case one:
		dst, start := begin(dst, f.number)
		return end(m.encode(dst, f.message, v), start)
	case none:
		return dst
	}
	list, _ := v.([]any)
	item := member{f.number, single[f.form], f.message}
	for _, e := range list {
		dst = m.member(dst, item, e)
	}
	return dst
}

// begin appends the tag of a field whose length is not known yet, with a place
// for a length of one byte; end fills it in, and moves what follows if the
// length takes more.
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

// named is a map with keys of any name.
func named(entry string) message { return message{entries: 1, entry: entry} }
