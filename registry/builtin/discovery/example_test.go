package discovery_test

import (
	"fmt"

	"orch.io/controlplane/registry/builtin/discovery"
)

func ExampleKinds() {
	for _, k := range discovery.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind EndpointSlice.discovery.orch.io (Go type discovery.EndpointSlice)
}
