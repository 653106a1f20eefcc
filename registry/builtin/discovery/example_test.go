package discovery_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/discovery"
)

func ExampleKinds() {
	for _, k := range discovery.Kinds() {
		t, err := k.Compile(names.Orch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.GroupResource(), t.ShortNames, t.Namespaced)
	}
	// Output:
	// endpointslices.discovery.orch.io [] true
}
