package plugins

import "orch.io/controlplane/admission"

// denyExecOnPrivileged lets nobody into pods that have a privileged container.
func denyExecOnPrivileged() admission.Plugin {
	return denyExec("DenyExecOnPrivileged", refusePrivileged)
}
