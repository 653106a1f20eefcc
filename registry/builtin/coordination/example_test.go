package coordination_test

import (
	"fmt"

	"orch.io/controlplane/registry/builtin/coordination"
)

func ExampleKinds() {
	for _, k := range coordination.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind Lease.coordination.orch.io (Go type coordination.Lease)
}
