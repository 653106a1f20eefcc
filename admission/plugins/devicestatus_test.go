package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

// TestDeviceStatusAccess checks the rights that writes of the parts of a claim's status require.
func TestDeviceStatusAccess(t *testing.T) {
	const (
		allocated = `"allocation":{"devices":{"results":[{"driver":"a.io"}]}}`
		onNode    = `"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}`
		a, b      = `{"driver":"a.io","pool":"p","device":"x"}`, `{"driver":"b.io","pool":"p","device":"x"}`
		a2        = `{"driver":"a.io","pool":"p","device":"x","data":{"up":true}}`
		binding   = "update resourceclaims/binding"
		anywhere  = "arbitrary-node:update resourceclaims/driver in ns of "
		here      = "associated-node:update resourceclaims/driver in ns of "
	)
	anybody := &auth.User{Name: "alice"}
	driver := func(node ...string) *auth.User {
		return &auth.User{Name: auth.ServiceAccountUser("ns", "driver"), Extra: map[string][]string{"authentication.kubernetes.io/node-name": node}}
	}
	for name, c := range map[string]struct {
		user     *auth.User
		old, new string
		has      string   // the only right of the user
		patch    bool     // patch instead of update
		wants    []string // the rights that were checked
		refused  []string
	}{
		"nothing":               {user: anybody, old: allocated, new: allocated, wants: nil},
		"an empty list":         {user: anybody, old: allocated, new: allocated + `,"reservedFor":[]`, wants: nil},
		"devices that it gets":  {user: anybody, new: allocated, wants: []string{binding}, refused: []string{"status.allocation"}},
		"by who may":            {user: anybody, new: allocated, has: binding, wants: []string{binding}},
		"by patch":              {user: anybody, new: allocated, patch: true, has: binding, wants: []string{"patch resourceclaims/binding"}, refused: []string{"status.allocation"}},
		"devices it gives back": {user: anybody, old: allocated + `,"devices":[` + a + `]`, new: ``, wants: []string{binding}, refused: []string{"status.allocation"}},
		"users":                 {user: anybody, old: allocated, new: allocated + `,"reservedFor":[{"uid":"1"}]`, wants: []string{binding}, refused: []string{"status.allocation"}},
		"devices of two drivers": {user: anybody, old: allocated, new: allocated + `,"devices":[` + b + `,` + a + `]`, has: anywhere + "a.io",
			wants: []string{anywhere + "a.io", anywhere + "b.io"}, refused: []string{"status.devices"}},
		"one of two devices": {user: anybody, old: allocated + `,"devices":[` + b + `,` + a + `]`, new: allocated + `,"devices":[` + b + `,` + a2 + `]`, has: anywhere + "a.io",
			wants: []string{anywhere + "a.io"}},
		"a device that goes": {user: anybody, old: allocated + `,"devices":[` + a + `,` + b + `]`, new: allocated + `,"devices":[` + a + `]`,
			wants: []string{anywhere + "b.io"}, refused: []string{"status.devices"}},
		"on the node":          {user: driver("n1"), old: onNode, new: onNode + `,"devices":[` + a + `]`, has: here + "a.io", wants: []string{here + "a.io"}},
		"on the node, anyhow":  {user: driver("n1"), old: onNode, new: onNode + `,"devices":[` + a + `]`, has: anywhere + "a.io", wants: []string{here + "a.io", anywhere + "a.io"}},
		"on another node":      {user: driver("n2"), old: onNode, new: onNode + `,"devices":[` + a + `]`, has: here + "a.io", wants: []string{anywhere + "a.io"}, refused: []string{"status.devices"}},
		"on two nodes":         {user: driver("n1", "n1"), old: onNode, new: onNode + `,"devices":[` + a + `]`, has: here + "a.io", wants: []string{anywhere + "a.io"}, refused: []string{"status.devices"}},
		"of devices anywhere":  {user: driver(""), old: allocated, new: allocated + `,"devices":[` + a + `]`, has: here + "a.io", wants: []string{anywhere + "a.io"}, refused: []string{"status.devices"}},
		"no service's account": {user: &auth.User{Name: "n", Extra: driver("n1").Extra}, old: onNode, new: onNode + `,"devices":[` + a + `]`, wants: []string{anywhere + "a.io"}, refused: []string{"status.devices"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			chain, err := admission.New(plugins.Table(), admission.Options{}, admission.PluginContext{
				Names: names.Kubernetes, Client: &testclient.Client{}, Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
				Authorizer: auth.AuthorizerFunc(func(_ context.Context, action auth.Attributes) (auth.Decision, string, error) {
					assert.Equal(t, c.user, action.User)
					text := fmt.Sprintf("%s %s/%s", action.Verb, action.Resource, action.Subresource)
					if action.Namespace != "" {
						text += " in " + action.Namespace + " of " + action.Name
					}
					if asked = append(asked, text); text == c.has {
						return auth.Allow, "", nil
					}
					return auth.NoOpinion, "", nil
				}),
			})
			require.NoError(t, err)
			r := &admission.Request{
				Operation: admission.Update, Subresource: "status", Namespace: "ns", Name: "x", User: c.user, Verb: "update",
				Resource: meta.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"},
				Object:   claimWith(t, c.new), Old: claimWith(t, c.old),
			}
			if c.patch {
				r.Verb = "patch"
			}
			err = chain.Validate(t.Context(), r)
			assert.Equal(t, c.wants, asked)
			if c.refused == nil {
				require.NoError(t, err)
				return
			}
			var status *meta.Status
			require.ErrorAs(t, err, &status)
			var fields []string
			for _, cause := range status.Details.Causes {
				fields = append(fields, cause.Field)
			}
			assert.Equal(t, c.refused, fields)
		})
	}
}

// claimWith returns a claim with the given status.
func claimWith(t *testing.T, status string) *meta.Object {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"status":{`+status+`}}`), &tree))
	return meta.NewObject(tree)
}
