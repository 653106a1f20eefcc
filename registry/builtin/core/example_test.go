package core_test

import (
	"fmt"
	"net/netip"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
)

func ExampleKinds() {
	for _, k := range core.Kinds() {
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
	// endpoints [ep] true
}

// Services of a network of their own: six addresses, and no ports of nodes
// beyond one.
func ExampleServiceNetwork() {
	pool := core.ServiceNetwork{Addresses: netip.MustParsePrefix("192.168.0.0/29"), FirstPort: 30000, LastPort: 30000}.Pool()
	service := meta.NewObject(map[string]any{"spec": map[string]any{"type": "NodePort", "ports": []any{map[string]any{"port": int64(80)}}}})
	faults, err := pool.Allot(service, nil, func(value string) bool { return value == "192.168.0.5" || value == ":30000" })
	fmt.Println(service.String("spec", "clusterIP"), pool.Held(service), faults, err)
	// Output: 192.168.0.5 [192.168.0.5 :30000] [] <nil>
}
