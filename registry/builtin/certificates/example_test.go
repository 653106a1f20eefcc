package certificates_test

import (
	"fmt"

	"orch.io/controlplane/registry/builtin/certificates"
)

func ExampleKinds() {
	for _, k := range certificates.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind CertificateSigningRequest.certificates.orch.io (Go type certificates.CertificateSigningRequest)
}
