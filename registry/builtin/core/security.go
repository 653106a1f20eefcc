package core

// PodSecurityContext holds security settings of a pod, and defaults for its containers.
type PodSecurityContext struct {
	// SELinuxOptions are the SELinux labels of the containers.
	SELinuxOptions *SELinuxOptions `json:"seLinuxOptions,omitempty" protobuf:"1"`

	// WindowsOptions are settings for Windows.
	WindowsOptions *WindowsSecurityContextOptions `json:"windowsOptions,omitempty" protobuf:"8"`

	// RunAsUser is the user ID of the processes: 0 to 2147483647.
	RunAsUser *int64 `json:"runAsUser,omitempty" protobuf:"2" schema:"range=0|2147483647"`

	// RunAsGroup is the primary group ID of the processes: 0 to 2147483647.
	RunAsGroup *int64 `json:"runAsGroup,omitempty" protobuf:"6" schema:"range=0|2147483647"`

	// RunAsNonRoot, if true, prevents the start of containers as user 0.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty" protobuf:"3"`

	// SupplementalGroups are further group IDs of the first process.
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty" protobuf:"4" schema:"listType=atomic,items.range=0|2147483647"`

	// FSGroup is the group ID that owns the volumes.
	FSGroup *int64 `json:"fsGroup,omitempty" protobuf:"5" schema:"range=0|2147483647"`

	// Sysctls are kernel parameters of the pod's namespaces.
	Sysctls []Sysctl `json:"sysctls,omitempty" protobuf:"7" schema:"listType=atomic"`

	// FSGroupChangePolicy decides when the ownership of volumes is changed: Always, or OnRootMismatch.
	FSGroupChangePolicy *string `json:"fsGroupChangePolicy,omitempty" protobuf:"9" schema:"enum=Always|OnRootMismatch"`

	// SeccompProfile restricts system calls.
	SeccompProfile *SeccompProfile `json:"seccompProfile,omitempty" protobuf:"10"`

	// AppArmorProfile is the AppArmor profile of the containers.
	AppArmorProfile *AppArmorProfile `json:"appArmorProfile,omitempty" protobuf:"11"`

	// SupplementalGroupsPolicy is Merge, which adds the groups of the image, or Strict.
	SupplementalGroupsPolicy *string `json:"supplementalGroupsPolicy,omitempty" protobuf:"12" schema:"enum=Merge|Strict"`

	// SELinuxChangePolicy decides how volumes are labeled: MountOption or Recursive.
	SELinuxChangePolicy *string `json:"seLinuxChangePolicy,omitempty" protobuf:"13" schema:"enum=MountOption|Recursive"`
}

// SecurityContext holds security settings of a container. They take precedence over the settings of the pod.
type SecurityContext struct {
	// Capabilities that are added or dropped.
	Capabilities *Capabilities `json:"capabilities,omitempty" protobuf:"1"`

	// Privileged gives the container the privileges of root on the node.
	Privileged *bool `json:"privileged,omitempty" protobuf:"2"`

	// SELinuxOptions are the SELinux labels.
	SELinuxOptions *SELinuxOptions `json:"seLinuxOptions,omitempty" protobuf:"3"`

	// WindowsOptions are settings for Windows.
	WindowsOptions *WindowsSecurityContextOptions `json:"windowsOptions,omitempty" protobuf:"10"`

	// RunAsUser is the user ID of the processes: 0 to 2147483647; default the image's.
	RunAsUser *int64 `json:"runAsUser,omitempty" protobuf:"4" schema:"range=0|2147483647"`

	// RunAsGroup is the primary group ID of the processes: 0 to 2147483647.
	RunAsGroup *int64 `json:"runAsGroup,omitempty" protobuf:"8" schema:"range=0|2147483647"`

	// RunAsNonRoot, if true, prevents the start of the container as user 0.
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty" protobuf:"5"`

	// ReadOnlyRootFilesystem mounts the root file system read-only.
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty" protobuf:"6"`

	// AllowPrivilegeEscalation allows a process to gain more privileges than its parent. It must not be
	// false for privileged containers.
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty" protobuf:"7"`

	// ProcMount is Default, or Unmasked, which requires a user namespace.
	ProcMount *string `json:"procMount,omitempty" protobuf:"9" schema:"enum=Default|Unmasked"`

	// SeccompProfile restricts system calls.
	SeccompProfile *SeccompProfile `json:"seccompProfile,omitempty" protobuf:"11"`

	// AppArmorProfile is the AppArmor profile of the container.
	AppArmorProfile *AppArmorProfile `json:"appArmorProfile,omitempty" protobuf:"12"`
}

// Capabilities are privileges of processes.
type Capabilities struct {
	// Add lists capabilities to add.
	Add []string `json:"add,omitempty" protobuf:"1" schema:"listType=atomic"`

	// Drop lists capabilities to drop.
	Drop []string `json:"drop,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// SELinuxOptions are SELinux labels.
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
	// GMSACredentialSpecName is the name of the GMSA credential spec.
	GMSACredentialSpecName *string `json:"gmsaCredentialSpecName,omitempty" protobuf:"1" schema:"format=dns-subdomain"`

	// GMSACredentialSpec is the content of the credential spec; admission sets it.
	GMSACredentialSpec *string `json:"gmsaCredentialSpec,omitempty" protobuf:"2"`

	// RunAsUserName is the user of the processes, optionally with a domain.
	RunAsUserName *string `json:"runAsUserName,omitempty" protobuf:"3"`

	// HostProcess runs the container as a process of the node. It must be equal for all containers of a
	// pod.
	HostProcess *bool `json:"hostProcess,omitempty" protobuf:"4"`
}

// SeccompProfile is a seccomp profile.
type SeccompProfile struct {
	// Type is Localhost, RuntimeDefault or Unconfined.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Localhost|RuntimeDefault|Unconfined"`

	// LocalhostProfile is the profile file on the node. Set exactly for type Localhost.
	LocalhostProfile *string `json:"localhostProfile,omitempty" protobuf:"2"`
}

// AppArmorProfile is an AppArmor profile.
type AppArmorProfile struct {
	// Type is Localhost, RuntimeDefault or Unconfined.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Localhost|RuntimeDefault|Unconfined"`

	// LocalhostProfile is the profile loaded on the node. Set exactly for type Localhost.
	LocalhostProfile *string `json:"localhostProfile,omitempty" protobuf:"2"`
}

// Sysctl is a kernel parameter.
type Sysctl struct {
	// Name of the parameter.
	Name string `json:"name" protobuf:"1" schema:"required,format=sysctl-name"`

	// Value of the parameter.
	Value string `json:"value" protobuf:"2"`
}
