package openapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Lamp is a kind of the tests whose fields have rules.
type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	_ struct{} `schema:"rule=self.metadata.name != 'dark'"`

	Spec LampSpec `json:"spec" schema:"rule=has(self.watts)"`
}

// LampSpec is the spec of a Lamp.
type LampSpec struct {
	Watts int32 `json:"watts" schema:"rule=self >= oldSelf.orValue(self),rule.message=more light,rule.created,rule.reason=FieldValueForbidden"`
}

const lampDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: lamps, kind: Lamp}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations: [{rule: self.metadata.name != 'dark'}]
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: has(self.watts)}]
            properties:
              watts:
                type: integer
                x-kubernetes-validations: [{rule: self >= oldSelf.orValue(self), message: more light, optionalOldSelf: true, reason: FieldValueForbidden}]
`

// TestValidationRulesArePublished: the validation rules of kinds in Go and of definitions are published.
func TestValidationRulesArePublished(t *testing.T) {
	t.Parallel()
	inCode := registry.Of(registry.Definition[Lamp]{Group: "example.com", Version: "v1", Scope: registry.Cluster})
	defined := registry.FromCRD([]byte(lampDefinition))
	for name, kind := range map[string]*registry.Kind{names.Kubernetes.DefinitionName(wellknown.MetaDefinitions, "Lamp"): inCode, "com.example.v1.Lamp": defined} {
		require.NoError(t, kind.Err())
		s := catalog(t, kind)
		gv := meta.GroupVersion{Group: "example.com", Version: "v1"}
		third := V3(gv, servedVersions(s.Types())[gv], info(s))
		assert.Contains(t, string(third.Protobuf().Bytes()), `[{"message":"more light","optionalOldSelf":true,`)
		for _, definitions := range []any{at(parse(t, V2(s.Types(), info(s))), "definitions"), at(parse(t, third), "components", "schemas")} {
			root := at(definitions, name)
			spec := at(root, "properties", "spec")
			fields := at(spec, "properties")
			if fields == nil {
				fields = at(definitions, names.Kubernetes.DefinitionName(wellknown.MetaDefinitions, "LampSpec"), "properties")
			}
			const word = "x-kubernetes-validations"
			assert.Equal(t, []any{map[string]any{"rule": "self.metadata.name != 'dark'"}}, at(root, word))
			assert.Equal(t, []any{map[string]any{"rule": "has(self.watts)"}}, at(spec, word))
			assert.Equal(t, []any{map[string]any{
				"rule": "self >= oldSelf.orValue(self)", "message": "more light", "reason": "FieldValueForbidden", "optionalOldSelf": true,
			}}, at(fields, "watts", word))
		}
	}
}
