package conformance

import (
	"encoding/json"
	"reflect"
	"testing"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry/builtin/apiextensions"
)

const richSchema = `{"type":"object","description":"d","title":"t","required":["a"],"properties":{
	"a":{"type":"string","pattern":"^a","minLength":1,"maxLength":9,"default":"ab","enum":["ab","ac",null],"format":"f","example":{"x":[1]}},
	"n":{"type":"number","minimum":0.5,"maximum":3,"exclusiveMinimum":true,"exclusiveMaximum":true,"multipleOf":0.25,"nullable":true},
	"l":{"type":"array","minItems":0,"maxItems":4,"items":{"type":"object","properties":{"k":{"type":"string"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},
	"m":{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2,"x-kubernetes-map-type":"atomic"},
	"t":{"type":"object","additionalProperties":true},"f":{"type":"object","additionalProperties":false},
	"many":{"items":[{"type":"string"},{"maxLength":1}],"uniqueItems":true,"additionalItems":false},
	"i":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],"allOf":[{"not":{"pattern":"x"}}],"oneOf":[{"minimum":1}]},
	"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
	"o":{"$ref":"r","$schema":"s","id":"i","definitions":{"d":{"type":"string"}},"patternProperties":{"^x":{"type":"string"}},"externalDocs":{"url":"u","description":"d"}},
	"v":{"type":"string","x-kubernetes-validations":[{"rule":"true","message":"m","messageExpression":"e","reason":"FieldValueInvalid","fieldPath":".a","optionalOldSelf":true}]}}}`

const richDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.e.com","finalizers":["f"]},
	"spec":{"group":"e.com","scope":"Cluster","preserveUnknownFields":true,"names":{"plural":"ws","singular":"w","kind":"W","listKind":"WList","shortNames":["x"],"categories":["all"]},
	"conversion":{"strategy":"None"},"versions":[{"name":"v1","served":true,"storage":true,"deprecated":true,"deprecationWarning":"old","schema":{"openAPIV3Schema":` + richSchema + `},
	"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n","labelSelectorPath":".status.s"}},
	"additionalPrinterColumns":[{"name":"N","type":"integer","format":"int32","description":"d","priority":1,"jsonPath":".spec.n"}],"selectableFields":[{"jsonPath":".spec.a"}]},
	{"name":"v2","served":false,"storage":false}]},
	"status":{"conditions":[{"type":"Established","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":"m"}],
	"acceptedNames":{"plural":"ws","kind":"W"},"storedVersions":["v1"]}}`

// given fills in what stands in a text instead of random values.
func given(t *testing.T, typ reflect.Type, text string) reflect.Value {
	v := reflect.New(typ)
	if err := json.Unmarshal([]byte(text), v.Interface()); err != nil {
		t.Fatal(err)
	}
	return v
}

// Definitions have the bytes of the clients' type, both ways. Their schemas hold
// themselves, so they are not filled at random.
func TestDefinitionsMatchClients(t *testing.T) {
	s, err := schema.Go(reflect.TypeFor[apiextensions.CustomResourceDefinition](), names.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	proto, err := codec.NewProto(s)
	if err != nil {
		t.Fatal(err)
	}
	typ := reflect.TypeFor[extensionsv1.CustomResourceDefinition]()
	for _, text := range []string{richDefinition, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"}`} {
		checkGiven(t, s, proto, typ, given(t, typ, text))
	}
}
