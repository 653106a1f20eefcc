package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

var update = flag.Bool("update", false, "rewrite the golden documents")

// definition uses everything that the schema of a custom kind supports.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gizmos, kind: Gizmo}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    deprecated: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        description: Gizmo does things.
        required: [spec]
        properties:
          spec:
            type: object
            description: What it shall do.
            properties:
              replicas: {type: integer, format: int32, minimum: 0, maximum: 9, exclusiveMaximum: true, default: 1}
              color: {type: string, enum: [red, blue], nullable: true}
              name: {type: string, title: Its name, pattern: "^[a-z]+$", minLength: 1, maxLength: 9}
              port: {x-kubernetes-int-or-string: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              inner: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
              tags: {type: array, maxItems: 3, items: {type: string}, x-kubernetes-list-type: set}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: number, multipleOf: 0.5}}}
              either:
                type: object
                oneOf: [{required: [a]}, {required: [b]}]
                properties: {a: {type: string}, b: {type: string, not: {enum: [x]}}}
              more: {type: object, maxProperties: 4, additionalProperties: {type: string}, x-kubernetes-map-type: atomic}
          status: {type: object, properties: {replicas: {type: integer}}}
`

func TestDocumentsMatchGoldenFiles(t *testing.T) {
	s := catalog(t, registry.FromCRD([]byte(definition)))
	in := info(s)
	gv := meta.GroupVersion{Group: "example.com", Version: "v1alpha1"}
	for name, d := range map[string]*Document{
		"gizmos.v2.json": V2(s.Types(), in), "gizmos.v3.json": V3(gv, s.Types()[0].Versions, in),
	} {
		var got bytes.Buffer
		require.NoError(t, json.Indent(&got, d.JSON().Bytes(), "", " "))
		path := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), got.String(), "%s; go test -update rewrites it", name)
	}
}

// TestNamesAreUnique: definitions whose names collide get different names.
func TestNamesAreUnique(t *testing.T) {
	type Gadget struct { // another one of the same name
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Other           string `json:"other"`
	}
	s := catalog(t, registry.Of(registry.Definition[gadget2]{Group: "a.example.com", Version: "v1", Kind: "Gadget"}),
		registry.Of(registry.Definition[Gadget]{Group: "b.example.com", Version: "v1", Kind: "Gadget"}),
		registry.FromCRD([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.meta.apis.pkg.apimachinery.k8s.io"},
			"spec":{"group":"meta.apis.pkg.apimachinery.k8s.io","scope":"Cluster","names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"third":{"type":"string"}}}}}]}}`)))
	defs := at(parse(t, V2(s.Types(), info(s))), "definitions").(map[string]any)
	found := map[string]bool{}
	for _, def := range defs {
		for _, field := range []string{"size", "other", "third"} {
			if at(def, "properties", field) != nil {
				found[field] = true
			}
		}
	}
	assert.Len(t, found, 3, "%v", found)
}

type gadget2 = Gadget

// TestOrchDocumentHasNoKubernetesNames: documents with the product's own naming profile contain no Kubernetes names.
func TestOrchDocumentHasNoKubernetesNames(t *testing.T) {
	k, err := resource.Compile(registry.Of(registry.Definition[Gadget]{Group: "example.com", Version: "v1", Kind: "Gadget"}), names.Orch)
	require.NoError(t, err)
	var c resource.Catalog
	c.Put(k)
	d := V2(c.Now().Types(), Info{Names: names.Orch})
	assert.NotContains(t, string(d.JSON().Bytes()), "kubernetes")
	assert.NotContains(t, string(d.JSON().Bytes()), "k8s")
	assert.Contains(t, string(d.JSON().Bytes()), "x-orch-group-version-kind")
}
