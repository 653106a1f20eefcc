package core_test

import (
	"fmt"

	"orch.io/controlplane/registry/core"
	"orch.io/controlplane/registry/names"
)

func ExampleKinds() {
	for _, k := range core.Kinds(names.Orch) {
		t, err := k.Compile(names.Orch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.GroupResource(), t.ShortNames, t.Namespaced)
	}
	// Output:
	// namespaces [ns] false
	// configmaps [cm] true
	// secrets [] true
	// serviceaccounts [sa] true
	// events [ev] true
	// pods [po] true
	// podtemplates [] true
	// services [svc] true
}
