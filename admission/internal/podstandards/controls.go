package podstandards

// control is a rule of a standard within a range of releases.
type control struct {
	id       string
	level    Level
	replaces string // the control of a lower level that this control includes

	since, until Version // range of minor releases, inclusive; until 0 means no end

	check func(*Pod) *Violation // nil if the pod passes
}

// controls lists the standards in the order in which violations are reported: by level, then by name.
var controls = []control{
	{id: "appArmorProfile", level: Baseline, check: appArmor},
	{id: "capabilities_baseline", level: Baseline, check: capabilities},
	{id: "hostNamespaces", level: Baseline, check: hostNamespaces},
	{id: "hostPathVolumes", level: Baseline, check: hostPaths},
	{id: "hostPorts", level: Baseline, check: hostPorts},
	{id: "hostProbesAndHostLifecycle", level: Baseline, since: 34, check: probedHosts},
	{id: "privileged", level: Baseline, check: privileged},
	{id: "procMount", level: Baseline, until: 34, check: procMount},
	{id: "procMount", level: Baseline, since: 35, check: unlessUserNamespace(procMount)},
	{id: "seLinuxOptions", level: Baseline, until: 30, check: seLinux("container_t", "container_init_t", "container_kvm_t")},
	{id: "seLinuxOptions", level: Baseline, since: 31, check: seLinux("container_t", "container_init_t", "container_kvm_t", "container_engine_t")},
	{id: "seccompProfile_baseline", level: Baseline, until: 18, check: seccompAnnotations},
	{id: "seccompProfile_baseline", level: Baseline, since: 19, check: seccomp},
	{id: "sysctls", level: Baseline, until: 26, check: sysctls(safeSysctls)},
	{id: "sysctls", level: Baseline, since: 27, until: 28, check: sysctls(safeSysctls, safeSysctls27)},
	{id: "sysctls", level: Baseline, since: 29, until: 31, check: sysctls(safeSysctls, safeSysctls27, safeSysctls29)},
	{id: "sysctls", level: Baseline, since: 32, check: sysctls(safeSysctls, safeSysctls27, safeSysctls29, safeSysctls32)},
	{id: "windowsHostProcess", level: Baseline, check: hostProcess},

	{id: "allowPrivilegeEscalation", level: Restricted, since: 8, until: 24, check: escalation},
	{id: "allowPrivilegeEscalation", level: Restricted, since: 25, check: unlessWindows(escalation)},
	{id: "capabilities_restricted", level: Restricted, replaces: "capabilities_baseline", since: 22, until: 24, check: droppedCapabilities},
	{id: "capabilities_restricted", level: Restricted, replaces: "capabilities_baseline", since: 25, check: unlessWindows(droppedCapabilities)},
	{id: "procMount_restricted", level: Restricted, replaces: "procMount", since: 35, check: procMount},
	{id: "restrictedVolumes", level: Restricted, replaces: "hostPathVolumes", check: volumeTypes},
	{id: "runAsNonRoot", level: Restricted, until: 34, check: nonRoot},
	{id: "runAsNonRoot", level: Restricted, since: 35, check: unlessUserNamespace(nonRoot)},
	{id: "runAsUser", level: Restricted, since: 23, until: 34, check: rootUser},
	{id: "runAsUser", level: Restricted, since: 35, check: unlessUserNamespace(rootUser)},
	{id: "seccompProfile_restricted", level: Restricted, replaces: "seccompProfile_baseline", since: 19, until: 24, check: seccompRequired},
	{id: "seccompProfile_restricted", level: Restricted, replaces: "seccompProfile_baseline", since: 25, check: unlessWindows(seccompRequired)},
}

// unlessWindows skips the check for Windows pods, which do not have the fields that it requires.
func unlessWindows(check func(*Pod) *Violation) func(*Pod) *Violation {
	return func(p *Pod) *Violation {
		if p.Spec.String("os", "name") == "windows" {
			return nil
		}
		return check(p)
	}
}

// unlessUserNamespace skips the check for pods with a user namespace of their own: its root is an
// unprivileged user of the node.
func unlessUserNamespace(check func(*Pod) *Violation) func(*Pod) *Violation {
	return func(p *Pod) *Violation {
		if shared, set := p.Spec.Get("hostUsers"); set && shared == false {
			return nil
		}
		return check(p)
	}
}

// Kernel parameters that are isolated between pods, by the release that allowed them.
var (
	safeSysctls = []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ping_group_range", "net.ipv4.tcp_syncookies",
	}
	safeSysctls27 = []string{"net.ipv4.ip_local_reserved_ports"}
	safeSysctls29 = []string{"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time"}
	safeSysctls32 = []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
)

// defaultCapabilities are the capabilities that container runtimes grant by default.
var defaultCapabilities = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

// allowedVolumes are the volume sources that expose nothing of the node.
var allowedVolumes = []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"}
