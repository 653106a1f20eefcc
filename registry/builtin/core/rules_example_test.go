package core_test

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
)

// A kind that pods take tolerations from checks them as those of pods are.
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
