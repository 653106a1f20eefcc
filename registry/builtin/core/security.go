package core

// PodSecurityContext holds security settings of a pod, and defaults of its
// containers.
type PodSecurityContext struct {
	// SELinuxOptions are the SELinux context of all containers.
	SELinuxOptions *SELinuxOptions `json:"seLinuxOptions,omitempty" protobuf:"1"`

	// WindowsOptions are settings for Windows.
	WindowsOptions *WindowsSecurityContextOptions `json:"windowsOptions,omitempty" protobuf:"8"`

	// RunAsUser is the user number of the processes.
	RunAsUser *int64 `json:"runAsUser,omitempty" protobuf:"2" schema:"range=0|2147483647"`

	// RunAsGroup is the group number of the processes.
	RunAsGroup *int64 `json:"runAsGroup,omitempty" protobuf:"6" schema:"range=0|2147483647"`

	// RunAsNonRoot refuses to start as user 0.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty" protobuf:"3"`

	// SupplementalGroups are further groups of the first process.
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty" protobuf:"4" schema:"listType=atomic,items.range=0|2147483647"`

	// FSGroup is the group that owns the volumes.
	FSGroup *int64 `json:"fsGroup,omitempty" protobuf:"5" schema:"range=0|2147483647"`

	// Sysctls are kernel settings of the pod's namespaces.
	Sysctls []Sysctl `json:"sysctls,omitempty" protobuf:"7" schema:"listType=atomic"`

	// FSGroupChangePolicy is Always or OnRootMismatch: when the volumes' owner
	// is changed.
	FSGroupChangePolicy *string `json:"fsGroupChangePolicy,omitempty" protobuf:"9" schema:"enum=Always|OnRootMismatch"`

	// SeccompProfile limits the system calls.
	SeccompProfile *SeccompProfile `json:"seccompProfile,omitempty" protobuf:"10"`

	// AppArmorProfile is the AppArmor profile.
	AppArmorProfile *AppArmorProfile `json:"appArmorProfile,omitempty" protobuf:"11"`

	// SupplementalGroupsPolicy is Merge (with those of the image) or Strict.
	SupplementalGroupsPolicy *string `json:"supplementalGroupsPolicy,omitempty" protobuf:"12" schema:"enum=Merge|Strict"`

	// SELinuxChangePolicy is MountOption or Recursive: how volumes get their
	// label.
	SELinuxChangePolicy *string `json:"seLinuxChangePolicy,omitempty" protobuf:"13" schema:"enum=MountOption|Recursive"`
}

// SecurityContext holds security settings of a container.
type SecurityContext struct {
	// Capabilities to add and drop.
	Capabilities *Capabilities `json:"capabilities,omitempty" protobuf:"1"`

	// Privileged gives the container the rights of root on the node.
	Privileged *bool `json:"privileged,omitempty" protobuf:"2"`

	// SELinuxOptions are the SELinux context.
	SELinuxOptions *SELinuxOptions `json:"seLinuxOptions,omitempty" protobuf:"3"`

	// WindowsOptions are settings for Windows.
	WindowsOptions *WindowsSecurityContextOptions `json:"windowsOptions,omitempty" protobuf:"10"`

	// RunAsUser is the user number of the processes; the image's by default.
	RunAsUser *int64 `json:"runAsUser,omitempty" protobuf:"4" schema:"range=0|2147483647"`

	// RunAsGroup is the group number of the processes.
	RunAsGroup *int64 `json:"runAsGroup,omitempty" protobuf:"8" schema:"range=0|2147483647"`

	// RunAsNonRoot refuses to start as user 0.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty" protobuf:"5"`

	// ReadOnlyRootFilesystem keeps the root file system from being written.
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty" protobuf:"6"`

	// AllowPrivilegeEscalation says whether a process may gain more rights than
	// its parent.
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty" protobuf:"7"`

	// ProcMount is Default or Unmasked.
	ProcMount *string `json:"procMount,omitempty" protobuf:"9" schema:"enum=Default|Unmasked"`

	// SeccompProfile limits the system calls.
	SeccompProfile *SeccompProfile `json:"seccompProfile,omitempty" protobuf:"11"`

	// AppArmorProfile is the AppArmor profile.
	AppArmorProfile *AppArmorProfile `json:"appArmorProfile,omitempty" protobuf:"12"`
}

// Capabilities are rights of processes that root has in parts.
type Capabilities struct {
	// Add these.
	Add []string `json:"add,omitempty" protobuf:"1" schema:"listType=atomic"`

	// Drop these.
	Drop []string `json:"drop,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// SELinuxOptions are the labels of an SELinux context.
type SELinuxOptions struct {
	// User label.
	User string `json:"user,omitempty" protobuf:"1"`

	// Role label.
	Role string `json:"role,omitempty" protobuf:"2"`

	// Type label.
	Type string `json:"type,omitempty" protobuf:"3"`

	// Level label.
	Level string `json:"level,omitempty" protobuf:"4"`
}

// WindowsSecurityContextOptions are settings for Windows containers.
type WindowsSecurityContextOptions struct {
	// GMSACredentialSpecName names the GMSA credential spec.
	GMSACredentialSpecName *string `json:"gmsaCredentialSpecName,omitempty" protobuf:"1" schema:"format=dns-subdomain"`

	// GMSACredentialSpec is its content, filled in by admission.
	GMSACredentialSpec *string `json:"gmsaCredentialSpec,omitempty" protobuf:"2"`

	// RunAsUserName is the user of the processes.
	RunAsUserName *string `json:"runAsUserName,omitempty" protobuf:"3"`

	// HostProcess runs the container as a process of the node; all containers of
	// a pod the same.
	HostProcess *bool `json:"hostProcess,omitempty" protobuf:"4"`
}

// SeccompProfile chooses a seccomp profile.
type SeccompProfile struct {
	// Type is Localhost, RuntimeDefault or Unconfined.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Localhost|RuntimeDefault|Unconfined"`

	// LocalhostProfile is the file on the node, for type Localhost only.
	LocalhostProfile *string `json:"localhostProfile,omitempty" protobuf:"2"`
}

// AppArmorProfile chooses an AppArmor profile.
type AppArmorProfile struct {
	// Type is Localhost, RuntimeDefault or Unconfined.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Localhost|RuntimeDefault|Unconfined"`

	// LocalhostProfile is the profile loaded on the node, for type Localhost
	// only.
	LocalhostProfile *string `json:"localhostProfile,omitempty" protobuf:"2"`
}

// Sysctl is a kernel setting.
type Sysctl struct {
	// Name of the setting.
	Name string `json:"name" protobuf:"1" schema:"required,format=sysctl-name"`

	// Value of the setting.
	Value string `json:"value" protobuf:"2"`
}
