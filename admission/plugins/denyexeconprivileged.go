package plugins

import "orch.io/controlplane/admission"

// denyExecOnPrivileged refuses exec and attach to pods that have a privileged container.
func denyExecOnPrivileged() admission.Plugin {
	return denyExec("DenyExecOnPrivileged", refusePrivileged)
}
