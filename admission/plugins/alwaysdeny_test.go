package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestAlwaysDeny checks that a server with the plugin starts and refuses every write.
func TestAlwaysDeny(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Enable: []string{"AlwaysDeny", "AlwaysAdmit"}}),
		step{do: "GET configmaps", want: `200`},
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `403 admission control is denying all modifications`},
		step{do: "DELETE /api/v1/namespaces/default", want: `403 this namespace may not be deleted`},
	)
}
