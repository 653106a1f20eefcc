package plugins_test

import (
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
)

// The plugins of a server that brings one of its own, in the order in which they
// run.
func ExampleTable() {
	for _, p := range plugins.Table(admission.Plugin{Name: "NoAttic"}) {
		fmt.Println(p.Name)
	}
	// Output:
	// NamespaceLifecycle
	// TaintNodesByCondition
	// StorageObjectInUseProtection
	// CertificateApproval
	// CertificateSigning
	// CertificateSubjectRestriction
	// DeviceAdminAccess
	// DeviceStatusAccess
	// NoAttic
}
