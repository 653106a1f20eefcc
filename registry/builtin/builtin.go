// Package builtin lists the kinds that a server has unless it is told
// otherwise.
package builtin

import (
	"slices"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/apps"
	"orch.io/controlplane/registry/certificates"
	"orch.io/controlplane/registry/coordination"
	"orch.io/controlplane/registry/core"
	"orch.io/controlplane/registry/discovery"
	"orch.io/controlplane/registry/extensions"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/registry/rbac"
)

// Kinds returns the built-in kinds.
func Kinds(p names.Profile) []*registry.Kind {
	return slices.Concat(core.Kinds(p), apps.Kinds(p), coordination.Kinds(), rbac.Kinds(p), certificates.Kinds(p), discovery.Kinds(p), extensions.Kinds(p))
}
