package core_test

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
)

// A kind with tolerations for pods checks them by the rules of pods.
func ExampleCheckTolerations() {
	for _, f := range core.CheckTolerations(check.At("spec", "tolerations"), []core.Toleration{{Key: "gpu", Operator: "Like"}}) {
		fmt.Println(f.Field, f.Message)
	}
	// Output: spec.tolerations[0].operator Unsupported value: "Like": supported values: "Equal", "Exists"
}

func ExampleCheckOverhead() {
	overhead := map[string]meta.Quantity{"pods": meta.NewQuantity(1, meta.DecimalSI)}
	for _, f := range core.CheckOverhead(names.Orch, check.At("overhead"), overhead) {
		fmt.Println(f.Field, f.Message)
	}
	// Output: overhead.limits[pods] Invalid value: "pods": must be a standard resource for containers
}

// A kind with claim templates allows labels and annotations only.
func ExampleCheckClaimMetadata() {
	for _, f := range core.CheckClaimMetadata(check.At("spec", "metadata"), &meta.ObjectMeta{Name: "mine", Labels: map[string]string{"a": "b"}}) {
		fmt.Println(f.Field, f.Message)
	}
	// Output: spec.metadata.name Forbidden: cannot be set
}

func ExampleCheckNodeSelector() {
	bad := &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
		MatchExpressions: []core.NodeSelectorRequirement{{Key: "zone", Operator: "Exists", Values: []string{"a"}}},
	}}}
	for _, f := range core.CheckNodeSelector(check.At("spec", "nodeSelector"), bad) {
		fmt.Println(f.Field, f.Message)
	}
	// Output: spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
}

func ExampleExtendedResource() {
	fmt.Println(core.ExtendedResource(names.Orch, "example.com/gpu"), core.ExtendedResource(names.Orch, "cpu"))
	// Output: true false
}

func ExampleCheckContainerResource() {
	for _, name := range []string{"memory", "example.com/gpu", "pods"} {
		for _, f := range core.CheckContainerResource(names.Orch, check.At("spec", "resource"), name) {
			fmt.Println(f.Field, f.Message)
		}
	}
	// Output: spec.resource Invalid value: "pods": must be a standard resource for containers
}
