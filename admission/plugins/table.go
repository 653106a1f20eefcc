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
)

// Table returns the plugins in the order in which they run, with those of the
// program in their place. The rules of the order: what makes a namespace or says
// that there is none comes first, since all others look into it; what fills in
// comes before what counts or refuses what was filled in; the program's own see
// what the built-in ones made. Quotas come after them: what others refuse is not counted.
func Table(own ...admission.Plugin) []admission.Plugin {
	return slices.Concat([]admission.Plugin{
		alwaysAdmit(),
		namespaceLifecycle(),
		limitPodHardAntiAffinityTopology(),
		securityContextDeny(),
		namespaceAutoProvision(),
		namespaceExists(),
		limitRanger(),
		serviceAccount(),
		nodeRestriction(),
		taintNodes(),
		alwaysPullImages(),
		podNodeSelector(),
		priority(),
		defaultTolerationSeconds(),
		podTolerationRestriction(),
		extendedResourceToleration(),
		podSecurity(),
		podSecurityPolicy(),
		denyEscalatingExec(),
		denyExecOnPrivileged(),
		defaultStorageClass(),
		storageProtection(),
		persistentVolumeClaimResize(),
		runtimeClass(),
		persistentVolumeLabel(),
		certificateApproval(),
		certificateSigning(),
		certificateSubjectRestriction(),
		defaultIngressClass(),
		denyServiceExternalIPs(),
		deviceAdminAccess(),
		deviceStatusAccess(),
	}, own, []admission.Plugin{
		resourceQuota(),
		alwaysDeny(),
	})
		imagePolicyWebhook(),
		ownerReferencesPermissionEnforcement(),
		eventRateLimit(),
	}, own)
}
