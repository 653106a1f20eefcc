package discovery_test

import (
	"fmt"

	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/names"
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
