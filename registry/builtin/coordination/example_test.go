package coordination_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/coordination"
)

func ExampleKinds() {
	for _, k := range coordination.Kinds() {
		t, err := k.Compile(names.Orch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.GroupResource(), t.ShortNames, t.Namespaced)
	}
	// Output:
	// leases.coordination.orch.io [] true
}
