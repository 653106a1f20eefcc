package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/storage/memstore"
)

// TestSaidDefaults: what a caller says himself is stored also where his version has it
// as a default; what he leaves out is no change.
func TestSaidDefaults(t *testing.T) {
	const body = `{"apiVersion":"example.com/v1alpha1","kind":"Gadget","metadata":{"name":"b"},"spec":{"count":1}}`
	for verb, write := range map[string]func(*api) answer{
		"put":   func(a *api) answer { return a.must(200, "PUT", gadgetPath("v1alpha1", "b"), body) },
		"patch": func(a *api) answer { return a.must(200, "PATCH", gadgetPath("v1alpha1", "b"), `{"spec":{"count":1}}`) },
		"apply": func(a *api) answer {
			return a.must(200, "PATCH", gadgetPath("v1alpha1", "b")+"?fieldManager=m&force=true", body, "Content-Type", "application/apply-patch+yaml")
		},
	} {
		t.Run(verb, func(t *testing.T) {
			a := gadgetServer(t, memstore.New(memstore.Options{}), "v2")
			a.must(201, "POST", gadgetPath("v2", ""), `{"metadata":{"name":"b"},"spec":{}}`)
			a.must(200, "PATCH", gadgetPath("v1alpha1", "b"), `{"metadata":{"labels":{"a":"b"}}}`)
			assert.Nil(t, gadgetSpecs(t, a, "b")["v2"]["size"], "nobody said it")
			assert.Equal(t, map[string]any{"count": 1.0}, write(a).body["spec"])
			assert.EqualValues(t, 1, gadgetSpecs(t, a, "b")["v2"]["size"])
		})
	}
}
