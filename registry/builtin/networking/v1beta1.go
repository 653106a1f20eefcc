package networking

import (
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// olderPolicy returns version v1beta1 of NetworkPolicy in the group extensions.
func olderPolicy() registry.Spoke[NetworkPolicy, NetworkPolicy] {
	s := older.Same[NetworkPolicy]("v1beta1", "1.3", "1.9", "1.16", wellknown.GroupNetworking+"/v1")
	s.Group = wellknown.GroupFormer
	return s
}
