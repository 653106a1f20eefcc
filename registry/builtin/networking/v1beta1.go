package networking

import (
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// olderPolicy returns version v1beta1 of NetworkPolicy in the group extensions.
func olderPolicy() registry.Spoke[NetworkPolicy, NetworkPolicy] {
	s := older.Same[NetworkPolicy]("v1beta1", "1.3", "1.9", "1.16", names.GroupNetworking+"/v1")
	s.Group = names.GroupFormer
	return s
}
