package controllers

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
)

// TestAutoupdateAnnotation: the annotation is parsed as a boolean. If it is not a boolean, the server updates objects
// whose spec was never changed.
func TestAutoupdateAnnotation(t *testing.T) {
	const key = "apf.kubernetes.io/autoupdate-spec"
	for value, want := range map[string][2]bool{ // by generation: 1, 2
		"true": {true, true}, "True": {true, true}, "1": {true, true}, "t": {true, true},
		"false": {false, false}, "F": {false, false}, "0": {false, false},
		"yes": {true, false}, "": {true, false},
	} {
		for i := range want {
			o := meta.NewObject(map[string]any{"metadata": map[string]any{"generation": int64(i + 1), "annotations": map[string]any{key: value}}})
			assert.Equal(t, want[i], autoupdate(o, key), "%q in generation %d", value, i+1)
		}
	}
	assert.True(t, autoupdate(meta.NewObject(map[string]any{"metadata": map[string]any{"generation": int64(1)}}), key))
}
