package certificates_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/certificates"
)

func ExampleKinds() {
	for _, k := range certificates.Kinds() {
		t, err := k.Compile(names.Orch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.GroupResource(), t.ShortNames, t.Namespaced)
	}
	// Output:
	// certificatesigningrequests.certificates.orch.io [csr] false
}
