package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/server"
)

// TestNamespaceAutoProvision checks that creating an object creates its missing namespace, but that dry runs
// and reviews do not.
func TestNamespaceAutoProvision(t *testing.T) {
	const missing = `404 namespaces "new" not found`
	runSteps(t, newServer(t, admission.Options{Enable: []string{"NamespaceAutoProvision"}}),
		step{do: "DELETE /api/v1/namespaces/new/configmaps/a", want: `404 configmaps "a" not found`},
		step{do: "POST /api/v1/namespaces/new/configmaps?dryRun=All", body: `{metadata: {name: a}}`, want: missing},
		step{do: "POST /api/v1/namespaces/new/pods/a/binding", body: `{target: {name: n1}}`, want: `404 namespaces "new" not found`},
		step{do: "GET /api/v1/namespaces/new", want: missing},
		step{do: "POST /api/v1/namespaces/New/configmaps", body: `{metadata: {name: a}}`, want: `403 regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		step{do: "POST /api/v1/namespaces/new/configmaps", body: `{metadata: {name: a}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/new/configmaps", body: `{metadata: {name: b}}`, want: `201`},
		step{do: "GET /api/v1/namespaces/new", want: `200 {metadata: {labels: {kubernetes.io/metadata.name: new}}, status: {phase: Active}}`},
		step{do: "PUT /apis/coordination.k8s.io/v1/namespaces/newer/leases/l", body: `{metadata: {name: l}}`, want: `201`},
		step{do: "GET /api/v1/namespaces/newer", want: `200`},
	)
}

// TestNamespaceExists checks that writes in a missing namespace are refused, including updates and deletes.
func TestNamespaceExists(t *testing.T) {
	const missing = `404 namespaces "new" not found`
	o := admission.Options{Disable: []string{"NamespaceLifecycle"}}
	s := newServer(t, o, func(b *server.Builder) { b.AdmissionOptions = o })
	runSteps(t, s,
		step{do: "POST /api/v1/namespaces/new/configmaps", body: `{metadata: {name: a}}`, want: `201`})
	o.Enable = []string{"NamespaceExists"}
	runSteps(t, s.Fork(t),
		step{do: "POST /api/v1/namespaces/new/configmaps", body: `{metadata: {name: b}}`, want: missing},
		step{do: "PATCH /api/v1/namespaces/new/configmaps/a", body: `{data: {a: b}}`, want: missing},
		step{do: "DELETE /api/v1/namespaces/new/configmaps/a", want: missing},
		step{do: "POST configmaps", body: `{metadata: {name: b}}`, want: `201`},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: new}}`, want: `201`},
		step{do: "DELETE /api/v1/namespaces/new/configmaps/a", want: `200`},
	)
}
