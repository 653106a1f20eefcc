// Package builtin lists the kinds that a server has unless it is told
// otherwise.
package builtin

import (
	"slices"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/admissionregistration"
	"orch.io/controlplane/registry/builtin/apiextensions"
	"orch.io/controlplane/registry/builtin/apiregistration"
	"orch.io/controlplane/registry/builtin/apps"
	"orch.io/controlplane/registry/builtin/autoscaling"
	"orch.io/controlplane/registry/builtin/batch"
	"orch.io/controlplane/registry/builtin/certificates"
	"orch.io/controlplane/registry/builtin/coordination"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/builtin/flowcontrol"
	"orch.io/controlplane/registry/builtin/networking"
	"orch.io/controlplane/registry/builtin/node"
	"orch.io/controlplane/registry/builtin/podsecuritypolicy"
	"orch.io/controlplane/registry/builtin/policy"
	"orch.io/controlplane/registry/builtin/rbac"
	"orch.io/controlplane/registry/builtin/resource"
	"orch.io/controlplane/registry/builtin/scheduling"
	"orch.io/controlplane/registry/builtin/storage"
)

// Kinds returns the built-in kinds, with the versions of them that any release serves.
func Kinds() []*registry.Kind {
	return slices.Concat(
		core.Kinds(),
		apiregistration.Kinds(),
		apps.Kinds(),
		autoscaling.Kinds(),
		batch.Kinds(),
		certificates.Kinds(),
		coordination.Kinds(),
		resource.Kinds(),
		discovery.Kinds(),
		apiextensions.Kinds(),
		flowcontrol.Kinds(),
		networking.Kinds(),
		node.Kinds(),
		admissionregistration.Kinds(),
		policy.Kinds(),
		[]*registry.Kind{podsecuritypolicy.Policies()},
		rbac.Kinds(),
		scheduling.Kinds(),
		storage.Kinds(),
	)
}
