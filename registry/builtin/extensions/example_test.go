package extensions_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/extensions"
)

func ExampleKinds() {
	for _, k := range extensions.Kinds() {
		t, err := k.Compile(names.Orch)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.GroupResource(), t.ShortNames, t.Namespaced)
	}
	// Output:
	// customresourcedefinitions.apiextensions.orch.io [crd crds] false
}
