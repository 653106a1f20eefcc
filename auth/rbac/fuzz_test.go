package rbac

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
)

// noRoles is a Client of a server that does not serve roles.
type noRoles struct{ client.Client }

func (noRoles) Types() []*registry.Type { return []*registry.Type{{Plural: "widgets"}} }

// FuzzGuard checks that each role that a user without rights may write permits
// nothing.
func FuzzGuard(f *testing.F) {
	f.Add(`[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]`)
	f.Add(`[{"verbs":["get"],"nonResourceURLs":["/x*"]},{"verbs":["get"],"resources":["secrets"]},{"apiGroups":[""]}]`)
	f.Add(`{"verbs":1}`)
	a := New(noRoles{}, names.Kubernetes)
	f.Fuzz(func(t *testing.T, text string) {
		var rules any
		if json.Unmarshal([]byte(text), &rules) != nil {
			return
		}
		o := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x"}, "rules": rules})
		err := a.CheckGrant(context.Background(), a, Grant{User: &auth.User{Name: "u"}, Object: o, Resource: clusterRoles})
		if err != nil {
			return
		}
		for _, r := range rulesOf(o) {
			for _, verb := range r.Verbs {
				for _, u := range r.URLs {
					assert.False(t, r.allows(&auth.Attributes{Verb: verb, Path: u}), text)
				}
				for _, g := range r.Groups {
					assert.False(t, r.allows(&auth.Attributes{Verb: verb, Group: g, Resource: "secrets"}), text)
				}
			}
		}
	})
}
