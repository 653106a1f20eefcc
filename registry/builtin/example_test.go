package builtin_test

import (
	"fmt"
	"slices"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// A program that serves few kinds takes them from the list.
func ExampleKinds() {
	kinds := slices.DeleteFunc(builtin.Kinds(), func(k *registry.Kind) bool {
		return k.Kind != "Namespace" && k.Kind != "ConfigMap"
	})
	for _, k := range kinds {
		fmt.Println(k.Kind)
	}
	// Unordered output:
	// ConfigMap
	// Namespace
}
