// Package plugins holds the admission plugins of a server: one file for each, and
// the table that orders them.
//
// A new plugin is a file with a function that returns its admission.Plugin, and a
// line of Table. They are one package because they are alike and share what they
// know of pods, claims and classes; nobody has to name one of them in Go: programs
// enable, disable and configure them by name, see server.Builder.AdmissionOptions.
// A plugin is exported only if a part of the program must be handed to it.
package plugins

import (
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/policy"
	"orch.io/controlplane/admission/webhook"
)

// Table returns the plugins in the order in which they run, with those of the
// program in their place. The rules of the order: what makes a namespace or says
// that there is none comes first, since all others look into it; what fills in
// comes before what counts or refuses what was filled in; the program's own see
// what the built-in ones made, and webhooks what both did. Quotas come after them: what
// others refuse is not counted.
func Table(own ...admission.Plugin) []admission.Plugin {
	return slices.Concat([]admission.Plugin{
		alwaysAdmit(),
		namespaceAutoProvision(),
		namespaceLifecycle(),
		namespaceExists(),
		limitPodHardAntiAffinityTopology(),
		securityContextDeny(),
		limitRanger(),
		serviceAccount(),
		nodeRestriction(),
		taintNodes(),
		alwaysPullImages(),
		imagePolicyWebhook(),
		podNodeSelector(),
		priority(),
		defaultTolerationSeconds(),
		podTolerationRestriction(),
		eventRateLimit(),
		extendedResourceToleration(),
		persistentVolumeLabel(),
		defaultStorageClass(),
		storageProtection(),
		ownerReferencesPermissionEnforcement(),
		persistentVolumeClaimResize(),
		runtimeClass(),
		podSecurity(),
		podSecurityPolicy(),
		denyEscalatingExec(),
		denyExecOnPrivileged(),
		certificateApproval(),
		certificateSigning(),
		certificateSubjectRestriction(),
		defaultIngressClass(),
		denyServiceExternalIPs(),
		deviceAdminAccess(),
		deviceStatusAccess(),
		policyParameters(),
	}, own, []admission.Plugin{
		policy.Mutating(),
		webhook.Mutating(),
		policy.Validating(),
		webhook.Validating(),
		resourceQuota(),
		alwaysDeny(),
	})
}
