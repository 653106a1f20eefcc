package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"orch.io/controlplane/api/schema"
)

// Proto is the protobuf encoding of one kind, compiled from its schema. Field numbers come only
// from the protobuf tags of the Go structs. A Proto is immutable and safe for concurrent use.
//
// The encoding is compatible with Kubernetes clients: apiVersion and kind are in the envelope,
// fields that are not pointers in Go are always written, maps are sorted by key, and a struct
// that JSON inlines is a message of its own if its tag has a number.
type Proto struct{ root *protoMessage }

type protoMessage struct {
	fields []*protoField // by number
	byNum  map[protowire.Number]*protoField
}

// protoField is a field of a message. The field of an inline struct has no name: the fields of
// its message are in the same JSON object.
type protoField struct {
	name    string
	number  protowire.Number
	many    protoMany
	pointer bool // distinguishes unset from zero
	omit    bool // JSON omits zero
	value   protoValue
}

type protoMany uint8

const (
	one protoMany = iota
	list
	mapping // with string keys
)

// protoValue is the encoding of a single value.
type protoValue struct {
	kind    protoKind
	message *protoMessage // for kindMessage, kindOrBoolean and kindOrList
	items   *protoField   // for kindWrapped: field 1 of the message, with the items
}

type protoKind uint8

const (
	kindString protoKind = iota
	kindInt
	kindBool
	kindDouble
	kindFloat
	kindBytes
	kindMessage
	kindWrapped
	kindTime
	kindMicroTime
	kindQuantity
	kindIntOrString
	kindRaw    // RawExtension or JSON: the JSON text is in field 1
	kindFields // FieldsV1: like kindRaw, but the tree has the text
	kindDuration
	kindOrBoolean // boolean in field 1, or an object in field 2
	kindOrList    // an object in field 1, or a list of them in field 2
)

// NewProto compiles the protobuf encoding of objects with the schema s. It returns an error if
// the schema is not from a Go struct or a field has no number, because such kinds have no
// protobuf encoding.
func NewProto(s *schema.Schema) (*Proto, error) {
	if s == nil || s.Struct == nil || s.Struct.Go == nil {
		return nil, fmt.Errorf("codec: a protobuf form needs a schema from a Go struct")
	}
	c := protoCompiler{done: map[*schema.Struct]*protoMessage{}}
	m, err := c.message(s.Struct)
	if err != nil {
		return nil, fmt.Errorf("codec: protobuf form of %s: %w", s.Struct.Go, err)
	}
	return &Proto{m}, nil
}

type protoCompiler struct {
	done map[*schema.Struct]*protoMessage
}

func (c *protoCompiler) message(st *schema.Struct) (*protoMessage, error) {
	if m := c.done[st]; m != nil {
		return m, nil
	}
	if st.Go == nil {
		return nil, fmt.Errorf("%s does not come from a Go struct", st.Name)
	}
	m := &protoMessage{}
	c.done[st] = m
	return m, c.fill(m, st, st.Go, nil)
}

// fill adds the fields of st below the index path at to m; t is the Go struct at that path.
// Structs that are inlined further below become messages of their own if they have a number.
func (c *protoCompiler) fill(m *protoMessage, st *schema.Struct, t reflect.Type, at []int) error {
	inline := map[int]bool{}
	for _, f := range st.Fields {
		if len(f.Index) <= len(at) || !slices.Equal(f.Index[:len(at)], at) {
			continue
		}
		i := f.Index[len(at)]
		sf := t.Field(i)
		if len(f.Index) == len(at)+1 {
			pf, err := c.field(f, sf)
			if err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
			m.fields = append(m.fields, pf)
			continue
		}
		inner := bare(sf.Type)
		number := tagNumber(sf)
		if inline[i] || number == 0 && inner.Name() == "TypeMeta" {
			continue
		}
		inline[i] = true
		below := append(slices.Clone(at), i)
		if number == 0 { // the fields are this message's own
			if err := c.fill(m, st, inner, below); err != nil {
				return err
			}
			continue
		}
		group := &protoMessage{}
		if err := c.fill(group, st, inner, below); err != nil {
			return err
		}
		m.fields = append(m.fields, &protoField{number: number, pointer: sf.Type.Kind() == reflect.Pointer, value: protoValue{kind: kindMessage, message: group}})
	}
	return m.index()
}

// index sorts the fields and builds byNum. It returns an error for a duplicate number.
func (m *protoMessage) index() error {
	slices.SortFunc(m.fields, func(a, b *protoField) int { return cmp.Compare(a.number, b.number) })
	m.byNum = make(map[protowire.Number]*protoField, len(m.fields))
	for _, f := range m.fields {
		if m.byNum[f.number] != nil {
			return fmt.Errorf("duplicate field number %d", f.number)
		}
		m.byNum[f.number] = f
	}
	return nil
}

func (c *protoCompiler) field(f *schema.Field, sf reflect.StructField) (*protoField, error) {
	if f.Number == 0 {
		return nil, fmt.Errorf("no protobuf number")
	}
	pf := &protoField{name: f.Name, number: protowire.Number(f.Number), pointer: f.Pointer, omit: f.OmitEmpty}
	s, t := f.Schema, bare(sf.Type)
	switch {
	case s.Wire != schema.Plain:
	case s.Type == schema.Array && t.Name() == "":
		pf.many, s, t = list, s.Items, t.Elem()
	case s.Type == schema.Object && s.Values != nil && t.Kind() == reflect.Map:
		pf.many, s, t = mapping, s.Values, t.Elem()
	}
	var err error
	pf.value, err = c.value(s, bare(t))
	return pf, err
}

func (c *protoCompiler) value(s *schema.Schema, t reflect.Type) (v protoValue, err error) {
	switch s.Wire {
	case schema.Time:
		return protoValue{kind: kindTime}, nil
	case schema.MicroTime:
		return protoValue{kind: kindMicroTime}, nil
	case schema.Quantity:
		return protoValue{kind: kindQuantity}, nil
	case schema.IntOrString:
		return protoValue{kind: kindIntOrString}, nil
	case schema.Bytes:
		return protoValue{kind: kindBytes}, nil
	case schema.Fields:
		return protoValue{kind: kindFields}, nil
	case schema.Raw:
		if t.Kind() != reflect.Interface {
			return protoValue{kind: kindRaw}, nil
		}
	case schema.Duration:
		return protoValue{kind: kindDuration}, nil
	case schema.OrBoolean, schema.OrList:
		v.kind = kindOrBoolean
		if s.Wire == schema.OrList {
			v.kind = kindOrList
		}
		v.message, err = c.message(s.Struct)
		return v, err
	case schema.Plain:
		return c.plain(s, t)
	}
	return v, fmt.Errorf("type %s has no protobuf form", t)
}

func (c *protoCompiler) plain(s *schema.Schema, t reflect.Type) (v protoValue, err error) {
	switch {
	case s.Type == schema.String:
		return protoValue{kind: kindString}, nil
	case s.Type == schema.Boolean:
		return protoValue{kind: kindBool}, nil
	case s.Type == schema.Integer:
		return protoValue{kind: kindInt}, nil
	case s.Type == schema.Number && t.Kind() == reflect.Float32:
		return protoValue{kind: kindFloat}, nil
	case s.Type == schema.Number && t.Kind() == reflect.Float64:
		return protoValue{kind: kindDouble}, nil
	case s.Type == schema.Object && s.Struct != nil:
		v.kind = kindMessage
		v.message, err = c.message(s.Struct)
		return v, err
	case s.Type == schema.Array && t.Kind() == reflect.Slice:
		// A list in a map, in a list, or of a named type is a message with the items in field
		// 1.
		v.kind = kindWrapped
		v.items = &protoField{number: 1, many: list}
		v.items.value, err = c.value(s.Items, bare(t.Elem()))
		return v, err
	}
	return v, fmt.Errorf("type %s has no protobuf form", t)
}

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// tagNumber returns the number in a protobuf tag, such as "bytes,1,opt,name=x" or "1", or 0.
func tagNumber(sf reflect.StructField) protowire.Number {
	parts := strings.Split(sf.Tag.Get("protobuf"), ",")
	n, err := strconv.Atoi(parts[min(1, len(parts)-1)])
	if err != nil || n < 1 || n > 1<<29-1 {
		return 0
	}
	return protowire.Number(n)
}
