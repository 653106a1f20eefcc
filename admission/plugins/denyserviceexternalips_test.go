package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestDenyServiceExternalIPs checks that external addresses can be kept and removed, but not added.
func TestDenyServiceExternalIPs(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Enable: []string{"DenyServiceExternalIPs"}}),
		step{do: "POST services", body: `{metadata: {name: a}, spec: {ports: [{port: 80}], externalIPs: [192.0.2.1]}}`, want: `403 Use of external IPs is denied by admission control`},
		step{do: "POST services", body: `{metadata: {name: a}, spec: {ports: [{port: 80}]}}`, want: `201`},
		step{do: "PATCH services/a", body: `{spec: {externalIPs: [192.0.2.1]}}`, want: `403 Use of external IPs is denied by admission control`},
		step{do: "PATCH services/a", body: `{metadata: {labels: {a: b}}}`, want: `200`},
	)
}
