// Package schema describes the structure of API objects as data and implements the operations
// on objects that follow from it: normalization, defaulting, validation, and conversion to and
// from Go structs.
//
// A Schema is built from a Go struct (Go) or from the OpenAPI schema of a custom resource
// definition (OpenAPI). Strict decoding, protobuf, field ownership and OpenAPI documents use
// the same Schema.
package schema

import (
	"reflect"
	"slices"

	"orch.io/controlplane/api/internal/wording"
)

// Type is a JSON type. The zero value allows any type.
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

// String returns the type as in JSON schema, and "" for Any.
func (t Type) String() string {
	return [...]string{"", "object", "array", "string", "integer", "number", "boolean"}[t]
}

// Schema describes a value. A Schema must not be changed after Compile, so that it can be
// used concurrently without locks. All values of a Go struct type share one Struct.
type Schema struct {
	Type   Type
	Format string // int32, int64, double, byte, date-time, int-or-string, quantity, ...
	Doc    string // documentation of the field, one paragraph
	Title  string
	Shown  map[string]any // the example and externalDocs keywords of OpenAPI, unchanged

	Struct *Struct // for Type Object: the declared fields
	Values *Schema // for Type Object: the values of a map
	Items  *Schema // for Type Array

	Default    any // nil if there is none
	Nullable   bool
	Immutable  bool // cannot change once it is set; see Go
	Deprecated bool

	Enum                         []any
	Pattern                      string
	MinLength, MaxLength         *int64
	Minimum, Maximum             *float64
	Between                      bool // for a Go field: violations of either bound are reported with both bounds
	ExclusiveMin, ExclusiveMax   bool
	MultipleOf                   *float64
	MinItems, MaxItems           *int64
	UniqueItems                  bool
	MinProperties, MaxProperties *int64
	AllOf, AnyOf, OneOf          []*Schema
	Not                          *Schema

	// Required lists fields that must be present, declared or not, in the order of their
	// causes. Fields of a Go struct have Field.Required instead.
	Required []string

	Preserve    bool // keep unknown fields
	Forbidden   bool // no value is valid; additionalProperties: false sets it on Values
	IntOrString bool // an integer or a string
	Embedded    bool // a whole object with apiVersion, kind and metadata

	Rules []Rule // expressions that must be true

	ListType string   // atomic, set or map; empty: as PatchStrategy implies, or atomic
	ListKeys []string // the fields that identify an item of a map list
	MapType  string   // atomic or granular, for maps and structs

	// The following fields are set for fields of Go structs only.
	Gate       string // feature gate of the field, see DropGated; empty if there is none
	Unique     string // UniqueInNamespace or UniqueInCluster; empty if values may repeat
	KeyFormat  string // format of the keys of a map, see Go
	Repeats    bool   // ListType is for merges only; items may repeat
	Unchecked  bool   // the rules are documentation and are not checked
	Ratcheting bool   // an unchanged value is not validated again

	PatchStrategy string // merge, replace or retainKeys, comma-separated
	PatchMergeKey string

	milli   bool                    // round a quantity up to thousandths, see Go
	reasons map[wording.Rule]string // for a Go field: texts that replace the texts of violated rules

	Wire Wire // encoding of the value in protobuf and JSON

	// Set by Compile.
	re    *pattern // compiled Pattern
	fills bool     // the value or anything below it has a default
	fixed bool     // the value or anything below it is immutable
	rules bool     // the value or anything below it can violate a rule

	expressions bool // the value or anything below it may have Rules; may be true without any for recursive types

	defaultSize int // estimated size of Default as JSON, in bytes
}

// Wire is the encoding of a value for which the JSON type is not enough.
type Wire uint8

// The encodings. Plain values are encoded by their JSON type.
const (
	Plain       Wire = iota
	Time             // RFC 3339, whole seconds
	MicroTime        // RFC 3339, microseconds
	Quantity         // a canonical decimal or binary number with suffix
	IntOrString      // an integer or a string
	Bytes            // base64 in JSON
	Raw              // any JSON value, unchanged (protobuf: raw bytes = 1)
	Fields           // FieldsV1 (protobuf: Raw = 1)
	Duration         // "1h2m3s"
	OrBoolean        // an object of type Struct, or a boolean
	OrList           // an object of type Struct, or a list of them
)

// Struct declares the fields of an object type. It is shared by all values of the type.
type Struct struct {
	Name   string // OpenAPI definition name; empty for inline types
	Doc    string
	Fields []*Field
	Go     reflect.Type // the Go type, or nil for custom kinds

	byName  map[string]*Field
	mapType string   // from the tag of the Go field _
	rules   []Rule   // from the tag of the Go field _
	always  []*Field // for a Go struct: the fields that are written even if empty

	fingerprints fingerprints // cache of Schema.Fingerprint
	marked       *marked      // for a whole object, set by Go; nil if no field is unique or gated

	// Set by Compile.
	compiled bool
	filled   []*Field // the fields with a default
	below
}

// Field is a field of a Struct.
type Field struct {
	Name      string // wire name
	Schema    *Schema
	Required  bool   // absent, or zero in a Go struct, is a violation
	Expected  bool   // OpenAPI documents list it as required
	OmitEmpty bool   // Go omits the empty value; never true for structs, as in encoding/json
	OmitZero  bool   // Go omits the zero value
	Pointer   bool   // Go distinguishes a zero value from no value
	Number    int    // protobuf field number; 0 if there is none
	Index     []int  // index path of the Go field, see reflect.Value.FieldByIndex
	GoName    string // name of the Go field
}

// Field returns the field with the wire name, or nil. s may be nil.
func (s *Struct) Field(name string) *Field {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// fieldNames returns the wire names of the fields.
func (s *Struct) fieldNames() (list []string) {
	for _, f := range s.Fields {
		list = append(list, f.Name)
	}
	return list
}

// Canonical reports whether values are normalized to the encoding of the Go struct. Values of
// custom kinds stay as they are, apart from unknown fields. s may be nil.
func (s *Struct) Canonical() bool { return s != nil && s.Go != nil }

// Add appends fields. If a field of the same name exists, the new field replaces it in s. The
// existing Field is not modified, because other structs may share it.
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
