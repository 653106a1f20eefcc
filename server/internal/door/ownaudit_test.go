package door_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestControllersAreAuditedByIdentity checks that admission and audit get the identity of the
// garbage collector with the preconditions and the propagation policy of its deletions, and that
// the definition controller acts as the server itself.
func TestControllersAreAuditedByIdentity(t *testing.T) {
	t.Parallel()
	policy, err := audit.ParsePolicy([]byte("{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: RequestResponse}]}"), names.Kubernetes)
	require.NoError(t, err)
	out := &apitest.LogBuffer{}
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{audit.Writer{W: out}}, Names: names.Kubernetes})
	require.NoError(t, err)
	var mu sync.Mutex
	seen, options := map[string]string{}, map[string]any{}
	s := servertest.New(t, func(b *server.Builder) {
		b.Audit = log
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Journal", Rules: []admission.Rule{{Groups: []string{"*"}, Resources: []string{"configmaps", "customresourcedefinitions/status"}}},
			Validate: func(_ context.Context, r *admission.Request) error {
				mu.Lock()
				defer mu.Unlock()
				seen[string(r.Operation)+" "+r.Name] = r.User.Name + " " + strings.Join(r.User.Groups, ",")
				if r.Operation == admission.Delete && r.Name == "owned" {
					options = r.Options.Tree()
				}
				return nil
			},
		})
	})
	a := apitest.InProcess(t, s)
	uid := apitest.NestedString(a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("owner")).Body, "metadata", "uid")
	owned := apitest.NewConfigMap("owned")
	apitest.Nested(owned, "metadata").(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}}
	made := a.Must(201, "POST", apitest.ConfigMapsPath, owned)
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	a.Must(200, "DELETE", apitest.ConfigMapsPath+"/owner", nil)
	s.Settle()
	a.Must(404, "GET", apitest.ConfigMapsPath+"/owned", nil)
	require.NoError(t, log.Close(context.Background()))

	const collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, collector+" system:serviceaccounts,system:serviceaccounts:kube-system,system:authenticated", seen["DELETE owned"])
	assert.Equal(t, "system:apiserver system:masters,system:authenticated", seen["UPDATE widgets.example.com"])
	assert.Equal(t, map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
		"preconditions": map[string]any{"uid": apitest.NestedString(made.Body, "metadata", "uid"), "resourceVersion": made.ResourceVersion()},
	}, options)
	var found []apitest.AuditEvent
	for line := range strings.Lines(out.String()) {
		var e apitest.AuditEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.User.Username == collector {
			found = append(found, e)
		}
	}
	require.Len(t, found, 1)
	e := found[0]
	assert.Equal(t, []any{"delete", "configmaps", "default", "owned", 200}, []any{e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name, e.ResponseStatus.Code})
	assert.Equal(t, "Background", e.RequestObject["propagationPolicy"])
	assert.Equal(t, "ConfigMap", e.ResponseObject["kind"])
	assert.Equal(t, "allow", e.Annotations["authorization.k8s.io/decision"])
}
