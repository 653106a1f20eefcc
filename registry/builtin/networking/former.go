package networking

import (
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// formerPolicy is the policy of the group in which kinds were tried out once.
func formerPolicy() registry.Spoke[NetworkPolicy, NetworkPolicy] {
	s := older.Same[NetworkPolicy]("v1beta1", "1.3", "1.9", "1.16", names.GroupNetworking+"/v1")
	s.Group = names.GroupFormer
	return s
}
