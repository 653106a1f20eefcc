package core_test

import (
	"fmt"
	"net/netip"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
)

func ExampleKinds() {
	kinds := core.Kinds()
	fmt.Println(kinds[0], len(kinds) > 10)
	// Output: kind Namespace (Go type core.Namespace) true
}

// A service network with six addresses and a single node port.
func ExampleServiceNetwork() {
	pool := core.ServiceNetwork{Addresses: netip.MustParsePrefix("192.168.0.0/29"), FirstPort: 30000, LastPort: 30000}.Pool()
	service := meta.NewObject(map[string]any{"spec": map[string]any{"type": "NodePort", "ports": []any{map[string]any{"port": int64(80)}}}})
	faults, err := pool.Allocate(&registry.Allocation{Object: service, Free: func(value string) bool { return value == "192.168.0.5" || value == ":30000" }})
	fmt.Println(service.String("spec", "clusterIP"), pool.Values(service), faults, err)
	// Output: 192.168.0.5 [192.168.0.5 :30000] [] <nil>
}

// An inline volume has no claim, and requires a CSI driver.
func ExampleInlineVolume() {
	volume := &core.PersistentVolumeSpec{StorageClassName: "fast", AccessModes: []string{"ReadWriteOnce"}}
	volume.NFS = &core.NFSVolumeSource{Server: "files.example.com", Path: "/data"}
	for _, fault := range core.InlineVolume(names.Orch, nil, check.At("spec", "volume"), volume) {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// spec.volume.csi Required value: has to be specified in the context of inline volumes
	// spec.volume.storageClassName Forbidden: may not be specified in the context of inline volumes
}
