package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

type window struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	_ struct{} `schema:"rule=self.metadata.name.startsWith('w'),rule.message=names begin with w"`

	// Spec is the window.
	Spec windowSpec `json:"spec"`
}

type windowSpec struct {
	_ struct{} `schema:"rule=self.low <= self.high,rule.reason=FieldValueForbidden,rule.fieldPath=.low"`

	// Low is the lower bound.
	Low int `json:"low"`
	// High is the upper bound.
	High int `json:"high" schema:"rule=self >= oldSelf,rule.message=may only grow"`
}

// TestValidationRulesOfGoKind evaluates the rules in the struct tags of a Go kind.
func TestValidationRulesOfGoKind(t *testing.T) {
	kind := registry.Of(registry.Definition[window]{Group: "example.com", Version: "v1", Kind: "Window"})
	s := servertest.New(t, func(b *server.Builder) { b.Register(kind) })
	c, windows := s.Objects(), meta.GroupResource{Group: "example.com", Resource: "windows"}
	create := func(name string, low, high int64) error {
		_, err := c.Create(t.Context(), windows, meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"low": low, "high": high},
		}))
		return err
	}
	require.NoError(t, create("w1", 1, 2))
	assert.ErrorContains(t, create("w2", 3, 2), `Window.example.com "w2" is invalid: spec.low: Forbidden: failed rule: self.low <= self.high`)
	assert.ErrorContains(t, create("x", 1, 2), `Window.example.com "x" is invalid: <nil>: Invalid value: names begin with w`)
	_, err := c.Update(t.Context(), windows, meta.Key{Namespace: "default", Name: "w1"}, "", func(o *meta.Object) error {
		o.Set(int64(1), "spec", "high")
		return nil
	})
	assert.ErrorContains(t, err, `spec.high: Invalid value: 1: may only grow`)
}

type broken struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	// Size of the thing.
	Size int `json:"size" schema:"rule=self.size() > 1"`
}

// TestInvalidRuleFailsBuild builds a server with a rule that does not compile.
func TestInvalidRuleFailsBuild(t *testing.T) {
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(registry.Definition[broken]{Group: "example.com", Version: "v1", Kind: "Broken"}))
	_, err := b.Build(t.Context())
	assert.ErrorContains(t, err, "found no matching overload for 'size'")
}
