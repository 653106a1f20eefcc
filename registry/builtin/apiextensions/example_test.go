package apiextensions_test

import (
	"fmt"

	"orch.io/controlplane/registry/builtin/apiextensions"
)

func ExampleKinds() {
	for _, k := range apiextensions.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind CustomResourceDefinition.apiextensions.orch.io (Go type apiextensions.CustomResourceDefinition)
}
