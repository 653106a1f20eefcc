// Package builtin lists the kinds that a server has unless it is told
// otherwise.
package builtin

import (
	"slices"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/aggregation"
	"orch.io/controlplane/registry/builtin/apps"
	"orch.io/controlplane/registry/builtin/autoscaling"
	"orch.io/controlplane/registry/builtin/batch"
	"orch.io/controlplane/registry/builtin/certificates"
	"orch.io/controlplane/registry/builtin/coordination"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/devices"
	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/builtin/extensions"
	"orch.io/controlplane/registry/builtin/flowcontrol"
	"orch.io/controlplane/registry/builtin/networking"
	"orch.io/controlplane/registry/builtin/node"
	"orch.io/controlplane/registry/builtin/podsecurity"
	"orch.io/controlplane/registry/builtin/policy"
	"orch.io/controlplane/registry/builtin/registration"
	"orch.io/controlplane/registry/builtin/roles"
	"orch.io/controlplane/registry/builtin/scheduling"
	"orch.io/controlplane/registry/builtin/storage"
)

// Kinds returns the built-in kinds, with the versions of them that any release serves.
func Kinds() []*registry.Kind {
	return slices.Concat(
		core.Kinds(),
		aggregation.Kinds(),
		apps.Kinds(),
		autoscaling.Kinds(),
		batch.Kinds(),
		certificates.Kinds(),
		coordination.Kinds(),
		devices.Kinds(),
		discovery.Kinds(),
		extensions.Kinds(),
		flowcontrol.Kinds(),
		networking.Kinds(),
		node.Kinds(),
		registration.Kinds(),
		policy.Kinds(),
		[]*registry.Kind{podsecurity.Policies()},
		roles.Kinds(),
		scheduling.Kinds(),
		storage.Kinds(),
	)
}
