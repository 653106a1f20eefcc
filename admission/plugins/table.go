// Package plugins has the built-in admission plugins, each in its own file, and the table that orders them.
//
// To add a plugin, add a file with a function that returns its admission.Plugin, and a line to Table. The plugins are
// in the same package because they share helpers for pods, claims and classes, and because programs enable, disable
// and configure them by name, see server.Builder.AdmissionOptions. A plugin is exported only if the program must pass
// a value to it.
package plugins

import (
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/policy"
	"orch.io/controlplane/admission/webhook"
)

// Table returns the plugins in the order in which they run, with the program's own plugins in their place:
//
//   - plugins that create or check the namespace, which others read, run first;
//   - plugins that fill in fields run before plugins that count or check these fields;
//   - the program's own plugins see the changes of the built-in plugins, and webhooks see the changes of both;
//   - quotas run after all of these, so that refused objects are not counted.
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
