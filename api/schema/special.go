package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// former is implemented by our own types that JSON writes in a form of their own.
type former interface{ APIForm() string }

// openAPIFormer is what types of other ecosystems tell about their form.
type openAPIFormer interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// forms are the schemas by the word that APIForm answers.
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

// specialForm returns the schema of a type that has another form in JSON than
// its Go kind says, or nil.
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
	if f, ok := zeroOf(t).(former); ok {
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

// openAPIForm recognizes types of other ecosystems by what they tell about
// themselves; the name tells apart forms with the same OpenAPI type.
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

// zeroOf returns the zero value of t, or a pointer to one where the methods
// are the pointer's.
func zeroOf(t reflect.Type) any {
	if t.Kind() == reflect.Struct && reflect.PointerTo(t).NumMethod() > t.NumMethod() && t.NumMethod() == 0 {
		return reflect.New(t).Interface()
	}
	return reflect.Zero(t).Interface()
}
