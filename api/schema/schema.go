// Package schema is one description of an object's shape, as data, and the
// plain walks over it: conform, default, validate, and the typed view.
//
// A Schema comes from a Go struct (Go) or from the OpenAPI schema of a custom
// resource definition (OpenAPI). Everything that must know a shape, strict
// decoding, protobuf, field ownership, OpenAPI documents, reads this one tree.
package schema

import (
	"reflect"
	"slices"

	"orch.io/controlplane/api/internal/wording"
)

// Type is a JSON type. The zero value allows any.
type Type uint8

// The JSON types.
const (
	Any Type = iota
	Object
	Array
	String
	Integer
	Number
	Boolean
)

// String returns the word of JSON schema, empty for Any.
func (t Type) String() string {
	return [...]string{"", "object", "array", "string", "integer", "number", "boolean"}[t]
}

// Schema describes one value. A Schema is not changed once it is built; values
// that share a struct type share its Struct.
type Schema struct {
	Type   Type
	Format string // int32, int64, double, byte, date-time, int-or-string, quantity, ...
	Doc    string // field documentation, one paragraph
	Title  string
	Shown  map[string]any // the example and externalDocs of OpenAPI, as they stand there

	Struct *Struct // Type Object: fields known by name
	Values *Schema // Type Object: a map; what its values look like
	Items  *Schema // Type Array

	Default    any // nil: none
	Nullable   bool
	Immutable  bool // once it is set, it stays, see Go
	Deprecated bool

	Enum                         []any
	Pattern                      string
	MinLength, MaxLength         *int64
	Minimum, Maximum             *float64
	Between                      bool // of a Go field: both bounds are told together
	ExclusiveMin, ExclusiveMax   bool
	MultipleOf                   *float64
	MinItems, MaxItems           *int64
	UniqueItems                  bool
	MinProperties, MaxProperties *int64
	AllOf, AnyOf, OneOf          []*Schema
	Not                          *Schema

	// Required are the fields that must be there, described or not, in the order
	// in which missing ones are told. Those of a Go struct say it themselves.
	Required []string

	Preserve    bool // unknown fields are kept
	Forbidden   bool // no value is valid: what additionalProperties: false says of the values of a map
	IntOrString bool // an integer or a string
	Embedded    bool // a whole object with apiVersion, kind and metadata

	Rules []Rule // expressions that are true of the value

	ListType string   // atomic, set or map; empty: by PatchStrategy, else atomic
	ListKeys []string // the fields that identify an item of a map list
	MapType  string   // atomic or granular, for maps and structs

	// Of fields of Go structs only.
	Gate       string // of the feature that the field is part of, see DropGated; empty: none
	Unique     string // UniqueInNamespace or UniqueInCluster; empty: no
	KeyFormat  string // of the keys of a map, see Go
	Repeats    bool   // ListType is for those who merge; items may repeat
	Unchecked  bool   // what the schema says of the value is documentation
	Ratcheting bool   // a value that stays as it was is not checked again

	PatchStrategy string // merge, replace, retainKeys, comma-separated
	PatchMergeKey string

	milli   bool                    // a quantity that is rounded up to thousandths, see Go
	reasons map[wording.Rule]string // of a Go field: what clients are told instead of what a rule says

	Wire Wire // how protobuf and JSON treat the value

	// Set by Seal.
	re    *pattern // Pattern
	fills bool     // the value or something in it has a default
	fixed bool     // the value or something in it is immutable
	rules bool     // the value or something in it can break a rule

	expressions bool // there may be Rules, of the value or of something in it

	defaultSize int // of Default, as JSON, about
}

// Wire is a value's form where the JSON type does not tell it.
type Wire uint8

// The forms. Plain is what the JSON type says.
const (
	Plain       Wire = iota
	Time             // RFC 3339, whole seconds
	MicroTime        // RFC 3339, microseconds
	Quantity         // a canonical decimal or binary number with suffix
	IntOrString      // an integer or a string
	Bytes            // base64 in JSON
	Raw              // any JSON value, kept as it is (protobuf: raw bytes = 1)
	Fields           // FieldsV1 (protobuf: Raw = 1)
	Duration         // "1h2m3s"
	OrBoolean        // an object as Struct says, or a boolean
	OrList           // an object as Struct says, or a list of them
)

// Struct is the shared definition of an object type with named fields.
type Struct struct {
	Name   string // OpenAPI definition name; empty for inline types
	Doc    string
	Fields []*Field
	Go     reflect.Type // the Go type it comes from, or nil

	byName  map[string]*Field
	mapType string   // of the Go type
	rules   []Rule   // of the Go type
	always  []*Field // of a Go struct: the fields that are written even if empty

	shapes shapes  // see Schema.Shape
	marked *marked // of a whole object, set by Go; nil: no field is

	// Set by Seal.
	sealed bool
	filled []*Field // the fields that have a default
	below
}

// Field is one field of a Struct.
type Field struct {
	Name      string // on the wire
	Schema    *Schema
	Required  bool   // left out, or in a Go struct the zero value, it is a fault
	Expected  bool   // documented as required
	OmitEmpty bool   // Go leaves the empty value out (never true for struct values, as in encoding/json)
	OmitZero  bool   // Go leaves the zero value out
	Pointer   bool   // Go keeps an explicit zero apart from an unset value
	Number    int    // protobuf field number; 0: none
	Index     []int  // path to the Go field
	GoName    string // of the Go field
}

// Field returns the field with a wire name, or nil.
func (s *Struct) Field(name string) *Field {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// fieldNames returns the names of the fields.
func (s *Struct) fieldNames() (list []string) {
	for _, f := range s.Fields {
		list = append(list, f.Name)
	}
	return list
}

// Canonical reports whether values have the form that the Go struct would be
// written in. Values of custom kinds are kept as they come.
func (s *Struct) Canonical() bool { return s != nil && s.Go != nil }

// Add appends fields; a later one of the same name replaces the earlier, which may stand in
// other structs, too, and stays as it is there.
func (s *Struct) Add(fields ...*Field) {
	if s.byName == nil {
		s.byName = make(map[string]*Field, len(fields))
	}
	for _, f := range fields {
		if old := s.byName[f.Name]; old != nil {
			s.Fields[slices.Index(s.Fields, old)] = f
		} else {
			s.Fields = append(s.Fields, f)
		}
		s.byName[f.Name] = f
	}
}
