package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// apiFormer is implemented by types of this library with an encoding of their own.
type apiFormer interface{ APIForm() string }

// openAPIFormer is implemented by types of other libraries that declare their OpenAPI type.
type openAPIFormer interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// formSchema returns the schema for a result of APIForm, or nil.
func formSchema(form string) *Schema {
	switch form {
	case "time":
		return &Schema{Type: String, Format: "date-time", Wire: Time}
	case "micro-time":
		return &Schema{Type: String, Format: "date-time", Wire: MicroTime}
	case "quantity":
		return &Schema{Type: String, Format: "quantity", Wire: Quantity}
	case "int-or-string":
		return &Schema{Type: Any, Format: "int-or-string", IntOrString: true, Wire: IntOrString}
	case "raw":
		return &Schema{Type: Object, Wire: Raw, Preserve: true}
	case "fields":
		return &Schema{Type: Object, Wire: Fields, Preserve: true}
	case "duration":
		return &Schema{Type: String, Wire: Duration}
	case "json":
		return &Schema{Type: Any, Wire: Raw, Preserve: true}
	case "or-boolean":
		return &Schema{Type: Any, Wire: OrBoolean}
	case "or-list":
		return &Schema{Type: Any, Wire: OrList}
	}
	return nil
}

// specialForm returns the schema of a type with a JSON encoding that differs from its Go kind.
// It returns nil for other types.
func specialForm(t reflect.Type) *Schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return formSchema("micro-time")
	case reflect.TypeFor[json.RawMessage]():
		return formSchema("json")
	case reflect.TypeFor[json.Number]():
		return &Schema{Type: Number}
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return nil
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !has[json.Marshaler](t) {
		return &Schema{Type: String, Format: "byte", Wire: Bytes}
	}
	if reflect.PointerTo(t).NumMethod() == 0 {
		return nil
	}
	if f, ok := zeroOf(t).(apiFormer); ok {
		if s := formSchema(f.APIForm()); s != nil {
			return s
		}
	}
	if f, ok := zeroOf(t).(openAPIFormer); ok {
		if s := openAPIForm(t.Name(), f); s != nil {
			return s
		}
	}
	switch {
	case has[json.Marshaler](t) || has[json.Marshaler](reflect.PointerTo(t)):
		if t.Name() == "FieldsV1" {
			return formSchema("fields")
		}
		return formSchema("json")
	case has[encoding.TextMarshaler](t) || has[encoding.TextMarshaler](reflect.PointerTo(t)):
		return &Schema{Type: String}
	}
	return nil
}

// openAPIForm returns the schema of a type that implements openAPIFormer, or nil. Encodings with
// the same OpenAPI type are distinguished by the name of the Go type.
func openAPIForm(name string, f openAPIFormer) *Schema {
	types, format := f.OpenAPISchemaType(), f.OpenAPISchemaFormat()
	if len(types) == 0 {
		return nil
	}
	switch {
	case format == "date-time" && name == "MicroTime":
		return formSchema("micro-time")
	case format == "date-time":
		return formSchema("time")
	case format == "int-or-string":
		return formSchema("int-or-string")
	case name == "Quantity":
		return formSchema("quantity")
	case name == "Duration":
		return formSchema("duration")
	case types[0] == "object":
		return formSchema("raw")
	case types[0] == "string":
		return &Schema{Type: String, Format: format}
	case types[0] == "integer":
		return &Schema{Type: Integer, Format: format}
	case types[0] == "number":
		return &Schema{Type: Number, Format: format}
	case types[0] == "boolean":
		return &Schema{Type: Boolean}
	}
	return nil
}

func has[I any](t reflect.Type) bool { return t.Implements(reflect.TypeFor[I]()) }

// zeroOf returns the zero value of t, or a pointer to it if only the pointer has methods.
func zeroOf(t reflect.Type) any {
	if t.Kind() == reflect.Struct && reflect.PointerTo(t).NumMethod() > t.NumMethod() && t.NumMethod() == 0 {
		return reflect.New(t).Interface()
	}
	return reflect.Zero(t).Interface()
}
