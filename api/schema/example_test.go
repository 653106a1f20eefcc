package schema_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing/fstest"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// A tool validates definitions, and objects against them, before it sends them to a server.
func ExampleOpenAPI() {
	at := check.At("openAPIV3Schema")
	_, causes := schema.OpenAPI(map[string]any{"properties": map[string]any{"size": map[string]any{}}}, names.Kubernetes, at)
	for _, c := range causes {
		fmt.Println(c.Field, c.Message)
	}
	s, causes := schema.OpenAPI(map[string]any{"type": "object", "properties": map[string]any{
		"size": map[string]any{"type": "integer", "maximum": int64(3)},
	}}, names.Kubernetes, at)
	if len(causes) > 0 {
		fmt.Println(causes)
		return
	}
	for _, c := range s.Validate(map[string]any{"size": int64(4)}, nil) {
		fmt.Println(c.Field, c.Message)
	}
	// Output:
	// openAPIV3Schema.properties[size].type Required value: must not be empty for specified object fields
	// openAPIV3Schema.type Required value: must not be empty at the root
	// size Invalid value: 4: size in body should be less than or equal to 3
}

// A tool prints the documentation of the fields of a kind.
func ExampleDocs() {
	type Box struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int64     `json:"size" schema:"unique=cluster"`
		Made            meta.Time `json:"made,omitzero"`
	}
	source := fstest.MapFS{"box.go": {Data: []byte("package box\n\n// Box holds things.\ntype Box struct {\n\t// Size is its length.\n\tSize int64\n}\n")}}
	docs := schema.JoinDocs(schema.NewDocs("orch.io/controlplane/api/schema_test", source), nil)
	s, err := schema.Go(reflect.TypeFor[Box](), names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(docs.Struct(s.Struct), docs.Field(s.Struct, s.Struct.Field("size")))
	var form schema.Wire = s.Struct.Field("made").Schema.Wire
	fmt.Println(form == schema.Time, docs.Field(schema.Metadata(names.Orch).Struct, schema.Metadata(names.Orch).Struct.Field("uid")) != "")
	for _, v := range s.UniqueValues(map[string]any{"size": int64(3)}) {
		var taken schema.UniqueValue = v
		fmt.Println(taken.Field, taken.Scope, taken.Duplicate().Reason)
	}
	// Output:
	// Box holds things. Size is its length.
	// true true
	// size cluster FieldValueDuplicate
}

// A hook validates an enum at another path.
func ExampleEnumOf() {
	type Box struct {
		Use string `json:"use" schema:"enum=toys|tools,unchecked"`
	}
	var f check.Violations
	f.OneOf(check.At("spec", "box"), "books", schema.EnumOf[Box]("Use")...)
	fmt.Println(f.In(check.At("spec")), f[0].Message)
	// Output:
	// true Unsupported value: "books": supported values: "toys", "tools"
}

// Errors in the tags of a struct name the field.
func ExampleFieldError() {
	type Box struct {
		Size int64 `json:"size" schema:"maximum=3"`
	}
	_, err := schema.Go(reflect.TypeFor[Box](), names.Orch)
	var fault *schema.FieldError
	if errors.As(err, &fault) {
		fmt.Println(fault.Field, fault.Err)
	}
	// Output:
	// Size tag schema, maximum: unknown word
}

// Field rules are CEL expressions that the server evaluates.
func ExampleRule() {
	type Box struct {
		Size int64 `json:"size" schema:"rule=self >= oldSelf,rule.message=boxes only grow"`
	}
	s, err := schema.Go(reflect.TypeFor[Box](), names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	var rule schema.Rule = s.Struct.Field("size").Schema.Rules[0]
	fmt.Println(s.HasRules(), rule.Expression, "or:", rule.Message)
	fmt.Println(schema.HasFormat("2020-02-30", "date"))
	// Output:
	// true self >= oldSelf or: boxes only grow
	// false
}

// A server keeps compacted schemas of definitions.
func ExampleCompact() {
	port := map[string]any{"type": "integer", "maximum": int64(65535), "description": "The port of ..."}
	s, _ := schema.OpenAPI(map[string]any{"type": "object", "properties": map[string]any{"http": port, "https": port}}, names.Kubernetes, nil)
	lean := schema.Compact(s)[0]
	http, https := lean.Struct.Field("http").Schema, lean.Struct.Field("https").Schema
	fmt.Println(*http.Maximum, http.Doc == "", http == https)
	// Output: 65535 true true
}
