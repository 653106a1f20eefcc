package extensions_test

import (
	"fmt"

	"orch.io/controlplane/registry/builtin/extensions"
)

func ExampleKinds() {
	for _, k := range extensions.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind CustomResourceDefinition.apiextensions.orch.io (Go type extensions.CustomResourceDefinition)
}
