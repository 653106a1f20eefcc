package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestRulesMatchEveryVersion: a rule that names one version of a kind concerns all
// of them, of kinds with conversions and of defined ones alike.
func TestRulesMatchEveryVersion(t *testing.T) {
	s := servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(gadgets("v2")))
		b.Admission = []admission.Plugin{{
			Name: "Closed", Rules: []admission.Rule{{Groups: []string{"example.com"}, Versions: []string{"v1"}, Resources: []string{"gadgets", "widgets"}}},
			Validate: func(context.Context, *admission.Request) error { return errors.New("closed") },
		}, {
			Name: "Elsewhere", Rules: []admission.Rule{{Versions: []string{"v3"}, Resources: []string{"gadgets", "widgets"}}},
			Validate: func(context.Context, *admission.Request) error { return errors.New("elsewhere") },
		}}
	})
	a := inProcess(t, s)
	beta := `{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},`
	a.must(201, "POST", crdPath, strings.Replace(widgetDefinition(`{"a":{"type":"string"}}`), `"versions":[`, `"versions":[`+beta, 1))
	s.Settle()
	for _, version := range []string{"v1alpha1", "v1", "v2"} {
		refused := a.must(403, "POST", gadgetPath(version, ""), `{"metadata":{"name":"g"}}`)
		assert.Contains(t, refused.body["message"], ": closed", version)
	}
	for _, version := range []string{"v1beta1", "v1"} {
		path := strings.Replace(definedPath, "/v1/", "/"+version+"/", 1)
		body := fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":"w"}}`, version)
		assert.Contains(t, a.must(403, "POST", path, body).body["message"], ": closed", version)
	}
}

// TestBuildersShareNoKinds: what a program changes in a kind of one Builder is not
// changed in another that it gave the same kinds to.
func TestBuildersShareNoKinds(t *testing.T) {
	kinds := []*registry.Kind{registry.Of(gadgets("v2"))}
	var one, other server.Builder
	one.Register(kinds...)
	other.Register(kinds...)
	k := one.Kind("example.com", "Gadget")
	k.Fields[0].Name, k.Versions[0].Deprecated, k.Scale.SpecReplicas = "changed", "changed", "changed"
	k = other.Kind("example.com", "Gadget")
	assert.Equal(t, []string{"spec.mode", "", ".spec.size"}, []string{k.Fields[0].Name, k.Versions[0].Deprecated, k.Scale.SpecReplicas})
}
