package codec

import (
	"encoding/base64"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"orch.io/controlplane/api/meta"
)

// Decode decodes the message of an object, the result of Append, to a tree. Unknown fields are
// skipped, and zero values that JSON omits are omitted. data may be reused afterwards. Errors
// are 400 *meta.Status.
func (p *Proto) Decode(data []byte, l Limits) (map[string]any, error) {
	l = l.withDefaults()
	if l.Bytes > 0 && len(data) > l.Bytes {
		return nil, tooLarge(l.Bytes)
	}
	tree := map[string]any{}
	d := protoDecoder{limits: l}
	if err := d.message(p.root, tree, data, 1); err != nil {
		return nil, err
	}
	return tree, nil
}

type protoDecoder struct{ limits Limits }

func badProto(what string) error {
	return meta.BadRequest("the body is no valid protobuf: %s", what)
}

// message decodes data into tree. tree may have fields of an earlier occurrence of the message,
// which are merged.
func (d *protoDecoder) message(m *protoMessage, tree map[string]any, data []byte, depth int) error {
	if depth > d.limits.Depth {
		return badProto("too many levels")
	}
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return badProto("a damaged field tag")
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		if size < 0 {
			return badProto("a damaged field value")
		}
		if f := m.byNum[number]; f != nil {
			if err := d.field(f, tree, wire, data[:size], depth); err != nil {
				return err
			}
		}
		data = data[size:]
	}
	return nil
}

func (d *protoDecoder) field(f *protoField, tree map[string]any, wire protowire.Type, data []byte, depth int) error {
	switch {
	case f.many == list && f.value.wire() != protowire.BytesType && wire == protowire.BytesType:
		return d.packed(f, tree, payload(data), depth)
	case f.many == mapping:
		if wire != protowire.BytesType {
			return badProto("a field of another type than expected")
		}
		return d.entry(f, tree, payload(data), depth)
	case wire != f.value.wire():
		return badProto("a field of another type than expected")
	case f.name == "":
		return d.message(f.value.message, tree, payload(data), depth+1)
	case f.many == list:
		v, err := d.value(&f.value, nil, data, depth)
		if err == nil {
			l, _ := tree[f.name].([]any)
			tree[f.name] = append(l, v)
		}
		return err
	}
	v, err := d.value(&f.value, tree[f.name], data, depth)
	switch {
	case err != nil:
		return err
	case v == nil || f.omit && !f.pointer && zero(v):
		delete(tree, f.name)
	default:
		tree[f.name] = v
	}
	return nil
}

func zero(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// packed decodes a packed list of numbers.
func (d *protoDecoder) packed(f *protoField, tree map[string]any, data []byte, depth int) error {
	l, _ := tree[f.name].([]any)
	for len(data) > 0 {
		size := protowire.ConsumeFieldValue(f.number, f.value.wire(), data)
		if size < 0 {
			return badProto("a damaged packed list")
		}
		v, err := d.value(&f.value, nil, data[:size], depth)
		if err != nil {
			return err
		}
		l, data = append(l, v), data[size:]
	}
	if l != nil {
		tree[f.name] = l
	}
	return nil
}

// entry decodes an entry of a map: key 1, value 2.
func (d *protoDecoder) entry(f *protoField, tree map[string]any, data []byte, depth int) error {
	var key string
	var raw []byte
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return badProto("a damaged map entry")
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		switch {
		case size < 0:
			return badProto("a damaged map entry")
		case number == 1 && wire == protowire.BytesType:
			key = text(payload(data[:size]))
		case number == 2 && wire == f.value.wire():
			raw = data[:size]
		case number <= 2:
			return badProto("a map entry of another type than expected")
		}
		data = data[size:]
	}
	m, _ := tree[f.name].(map[string]any)
	if m == nil {
		m = map[string]any{}
		tree[f.name] = m
	}
	if raw == nil {
		raw = make([]byte, 8) // decodes to zero for every wire type
	}
	v, err := d.value(&f.value, nil, raw, depth)
	m[key] = v
	return err
}

// payload returns the content of a length-delimited value that ConsumeFieldValue accepted.
func payload(data []byte) []byte {
	b, n := protowire.ConsumeBytes(data)
	if n < 0 {
		return nil
	}
	return b
}

func text(b []byte) string {
	if !utf8.Valid(b) {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	return string(b)
}

// value decodes a value. before is the value of an earlier occurrence of the field, or nil.
func (d *protoDecoder) value(v *protoValue, before any, data []byte, depth int) (any, error) {
	switch v.kind {
	case kindInt:
		n, _ := protowire.ConsumeVarint(data)
		return int64(n), nil
	case kindBool:
		n, _ := protowire.ConsumeVarint(data)
		return n != 0, nil
	case kindDouble:
		n, _ := protowire.ConsumeFixed64(data)
		return finite(math.Float64frombits(n))
	case kindFloat:
		n, _ := protowire.ConsumeFixed32(data)
		return finite(float64(math.Float32frombits(n)))
	}
	data = payload(data)
	switch v.kind {
	case kindString:
		return text(data), nil
	case kindBytes:
		return base64.StdEncoding.EncodeToString(data), nil
	case kindMessage:
		tree, _ := before.(map[string]any)
		if tree == nil {
			tree = map[string]any{}
		}
		return tree, d.message(v.message, tree, data, depth+1)
	case kindWrapped:
		tree := map[string]any{}
		err := d.message(&protoMessage{byNum: map[protowire.Number]*protoField{1: v.items.named("items")}}, tree, data, depth+1)
		l, _ := tree["items"].([]any)
		if l == nil {
			l = []any{}
		}
		return l, err
	}
	if v.kind == kindOrBoolean || v.kind == kindOrList {
		return d.alternative(v, data, depth)
	}
	return d.special(v.kind, data)
}

// alternative decodes an OrBoolean or OrList value.
func (d *protoDecoder) alternative(v *protoValue, data []byte, depth int) (any, error) {
	single, other := &protoField{name: "schema", number: 2, value: protoValue{kind: kindMessage, message: v.message}}, &protoField{name: "other", number: 1, value: protoValue{kind: kindBool}}
	if v.kind == kindOrList {
		single.number, other = 1, &protoField{name: "other", number: 2, many: list, value: single.value}
	}
	m := &protoMessage{byNum: map[protowire.Number]*protoField{single.number: single, other.number: other}}
	tree := map[string]any{}
	if err := d.message(m, tree, data, depth+1); err != nil {
		return nil, err
	}
	if s := tree["schema"]; s != nil {
		return s, nil
	}
	return tree["other"], nil
}

func (f *protoField) named(name string) *protoField {
	c := *f
	c.name = name
	return &c
}

func finite(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, badProto("a number that JSON cannot represent")
	}
	return f, nil
}

// special decodes a message that is a single value in JSON.
func (d *protoDecoder) special(kind protoKind, data []byte) (any, error) {
	var nums [3]int64
	var texts [4][]byte
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, badProto("a damaged field tag")
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		if size < 0 {
			return nil, badProto("a damaged field value")
		}
		switch {
		case wire == protowire.VarintType && number < 3:
			u, _ := protowire.ConsumeVarint(data)
			nums[number] = int64(u)
		case wire == protowire.BytesType && number < 4:
			texts[number] = payload(data)
		}
		data = data[size:]
	}
	switch kind {
	case kindTime, kindMicroTime:
		return wireTime(kind, nums[1], nums[2])
	case kindQuantity:
		return text(texts[1]), nil
	case kindIntOrString:
		if nums[1] == 1 {
			return text(texts[3]), nil
		}
		return int64(int32(nums[2])), nil
	case kindDuration:
		return time.Duration(nums[1]).String(), nil
	}
	switch {
	case texts[1] == nil:
		return nil, nil
	case kind == kindFields:
		return decodeFields(texts[1], Limits{Depth: d.limits.Depth})
	}
	v, _, err := DecodeValue(texts[1], Limits{Depth: d.limits.Depth})
	return v, err
}

// The range of RFC 3339, in seconds since 1970.
const minSecond, maxSecond = -62167219200, 253402300799

// wireTime returns a time as in JSON. The epoch stands for an unset time and becomes nil.
func wireTime(kind protoKind, seconds, nanos int64) (any, error) {
	if seconds < minSecond || seconds > maxSecond || nanos < 0 || nanos > 999_999_999 {
		return nil, badProto("a time out of range")
	}
	if nanos -= nanos % 1000; kind == kindTime {
		nanos = 0
	}
	if seconds == 0 && nanos == 0 {
		return nil, nil
	}
	t := time.Unix(seconds, nanos)
	if kind == kindMicroTime {
		return meta.FormatMicroTime(t), nil
	}
	return meta.FormatTime(t), nil
}
