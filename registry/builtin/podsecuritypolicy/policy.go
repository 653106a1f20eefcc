// Package podsecuritypolicy defines the kind PodSecurityPolicy, which releases up to 1.24 served. It is
// for programs that still have such objects.
package podsecuritypolicy

import (
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PodSecurityPolicy restricts the security-relevant fields of pods whose creators, or service accounts,
// may use the policy.
type PodSecurityPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the restrictions and the defaults.
	Spec PodSecurityPolicySpec `json:"spec,omitempty" protobuf:"2"`
}

// PodSecurityPolicySpec lists restrictions and defaults for pods.
type PodSecurityPolicySpec struct {
	// Privileged allows privileged containers.
	Privileged bool `json:"privileged,omitempty" protobuf:"1"`
	// DefaultAddCapabilities are added to containers that do not drop them. They count as allowed.
	DefaultAddCapabilities []string `json:"defaultAddCapabilities,omitempty" protobuf:"2"`
	// RequiredDropCapabilities must be dropped by all containers; they are dropped by default.
	RequiredDropCapabilities []string `json:"requiredDropCapabilities,omitempty" protobuf:"3"`
	// AllowedCapabilities may be added by containers; * means all.
	AllowedCapabilities []string `json:"allowedCapabilities,omitempty" protobuf:"4"`
	// Volumes are the allowed volume sources, by the names of their fields in a volume; * means all.
	Volumes []string `json:"volumes,omitempty" protobuf:"5"`
	// HostNetwork allows pods to use the network of the node.
	HostNetwork bool `json:"hostNetwork,omitempty" protobuf:"6"`
	// HostPorts are the allowed ranges of host ports.
	HostPorts []HostPortRange `json:"hostPorts,omitempty" protobuf:"7"`
	// HostPID allows pods to use the process namespace of the node.
	HostPID bool `json:"hostPID,omitempty" protobuf:"8"`
	// HostIPC allows pods to use the IPC namespace of the node.
	HostIPC bool `json:"hostIPC,omitempty" protobuf:"9"`
	// SELinux restricts the SELinux labels.
	SELinux SELinuxStrategyOptions `json:"seLinux" protobuf:"10"`
	// RunAsUser restricts the user of containers.
	RunAsUser RunAsUserStrategyOptions `json:"runAsUser" protobuf:"11"`
	// RunAsGroup restricts the primary group of containers. Unset means no restriction.
	RunAsGroup *RunAsGroupStrategyOptions `json:"runAsGroup,omitempty" protobuf:"22"`
	// SupplementalGroups restricts the supplemental groups of pods.
	SupplementalGroups SupplementalGroupsStrategyOptions `json:"supplementalGroups" protobuf:"12"`
	// FSGroup restricts the group that owns the volumes of pods.
	FSGroup FSGroupStrategyOptions `json:"fsGroup" protobuf:"13"`
	// ReadOnlyRootFilesystem requires containers to have a read-only root file system, which is also
	// the default.
	ReadOnlyRootFilesystem bool `json:"readOnlyRootFilesystem,omitempty" protobuf:"14"`
	// DefaultAllowPrivilegeEscalation is the default of allowPrivilegeEscalation in containers.
	DefaultAllowPrivilegeEscalation *bool `json:"defaultAllowPrivilegeEscalation,omitempty" protobuf:"15"`
	// AllowPrivilegeEscalation allows containers to set allowPrivilegeEscalation; default true.
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty" protobuf:"16" schema:"default=true"`
	// AllowedHostPaths are the allowed paths of hostPath volumes. Empty means all.
	AllowedHostPaths []AllowedHostPath `json:"allowedHostPaths,omitempty" protobuf:"17"`
	// AllowedFlexVolumes are the allowed drivers of flex volumes. Empty means all. Volumes must allow
	// flexVolume, too.
	AllowedFlexVolumes []AllowedFlexVolume `json:"allowedFlexVolumes,omitempty" protobuf:"18"`
	// AllowedCSIDrivers are the allowed drivers of inline CSI volumes. Empty means all.
	AllowedCSIDrivers []AllowedCSIDriver `json:"allowedCSIDrivers,omitempty" protobuf:"23"`
	// AllowedUnsafeSysctls are the unsafe kernel parameters that pods may set; a trailing * matches any
	// suffix. At most 1024.
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty" protobuf:"19" schema:"maxItems=1024"`
	// ForbiddenSysctls are kernel parameters that pods must not set; a trailing * matches any suffix.
	// At most 1024, without overlap with allowedUnsafeSysctls.
	ForbiddenSysctls []string `json:"forbiddenSysctls,omitempty" protobuf:"20" schema:"maxItems=1024"`
	// AllowedProcMountTypes are the allowed types of the proc mount: Default or Unmasked. Empty means
	// Default.
	AllowedProcMountTypes []string `json:"allowedProcMountTypes,omitempty" protobuf:"21" schema:"items.enum=Default|Unmasked"`
	// RuntimeClass restricts the runtime class of pods. Unset means no restriction.
	RuntimeClass *RuntimeClassStrategyOptions `json:"runtimeClass,omitempty" protobuf:"24"`
}

// AllowedHostPath is an allowed path of hostPath volumes.
type AllowedHostPath struct {
	// PathPrefix allows the path and all paths below it.
	PathPrefix string `json:"pathPrefix,omitempty" protobuf:"1" schema:"required,optional,format=inner-path"`
	// ReadOnly requires read-only mounts.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"2"`
}

// AllowedFlexVolume is an allowed driver of flex volumes.
type AllowedFlexVolume struct {
	// Driver of the volume.
	Driver string `json:"driver" protobuf:"1" schema:"required"`
}

// AllowedCSIDriver is an allowed driver of inline CSI volumes.
type AllowedCSIDriver struct {
	// Name of the driver.
	Name string `json:"name" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
}

// HostPortRange is a range of host ports.
type HostPortRange struct {
	// Min is the first port of the range.
	Min int32 `json:"min" protobuf:"1" schema:"range=0|65535"`
	// Max is the last port of the range; not less than min.
	Max int32 `json:"max" protobuf:"2" schema:"range=0|65535"`
}

// IDRange is a range of user or group IDs.
type IDRange struct {
	// Min is the first ID of the range.
	Min int64 `json:"min" protobuf:"1" schema:"min=0"`
	// Max is the last ID of the range; not less than min.
	Max int64 `json:"max" protobuf:"2" schema:"min=0"`
}

// SELinuxStrategyOptions restricts the SELinux labels.
type SELinuxStrategyOptions struct {
	// Rule is MustRunAs, which requires seLinuxOptions, or RunAsAny.
	Rule string `json:"rule" protobuf:"1" schema:"enum=MustRunAs|RunAsAny"`
	// SELinuxOptions are the required labels for MustRunAs.
	SELinuxOptions *core.SELinuxOptions `json:"seLinuxOptions,omitempty" protobuf:"2"`
}

// RunAsUserStrategyOptions restricts the user of containers.
type RunAsUserStrategyOptions struct {
	// Rule is MustRunAs, which requires an ID in the ranges, MustRunAsNonRoot, or RunAsAny.
	Rule string `json:"rule" protobuf:"1" schema:"enum=MustRunAs|MustRunAsNonRoot|RunAsAny"`
	// Ranges of user IDs, for MustRunAs. The lowest ID of the first range is the default.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// RunAsGroupStrategyOptions restricts the primary group of containers.
type RunAsGroupStrategyOptions struct {
	// Rule is MustRunAs, which requires an ID in the ranges, MayRunAs, which requires it if an ID is
	// set, or RunAsAny.
	Rule string `json:"rule" protobuf:"1" schema:"enum=MayRunAs|MustRunAs|RunAsAny"`
	// Ranges of group IDs. For MustRunAs, the lowest ID of the first range is the default.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// SupplementalGroupsStrategyOptions restricts the supplemental groups of pods.
type SupplementalGroupsStrategyOptions struct {
	// Rule is MustRunAs, which requires IDs in the ranges, MayRunAs, which requires it if IDs are set,
	// or RunAsAny.
	Rule string `json:"rule,omitempty" protobuf:"1" schema:"required,optional,enum=MayRunAs|MustRunAs|RunAsAny"`
	// Ranges of group IDs. For MustRunAs, the lowest ID of the first range is the default.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// FSGroupStrategyOptions restricts the group that owns the volumes of pods.
type FSGroupStrategyOptions struct {
	// Rule is MustRunAs, which requires an ID in the ranges, MayRunAs, which requires it if an ID is
	// set, or RunAsAny.
	Rule string `json:"rule,omitempty" protobuf:"1" schema:"required,optional,enum=MayRunAs|MustRunAs|RunAsAny"`
	// Ranges of group IDs. For MustRunAs, the lowest ID of the first range is the default.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// RuntimeClassStrategyOptions restricts the runtime class of pods.
type RuntimeClassStrategyOptions struct {
	// AllowedRuntimeClassNames are the allowed classes; * means all and must be the only entry. Empty
	// allows no class.
	AllowedRuntimeClassNames []string `json:"allowedRuntimeClassNames" protobuf:"1" schema:"optional"`
	// DefaultRuntimeClassName is the default class. It must be allowed.
	DefaultRuntimeClassName *string `json:"defaultRuntimeClassName,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
}

// Policies returns the kind PodSecurityPolicy. Releases up to 1.24 serve it; in later releases it is
// served only if the admission plugin of that name is enabled. Without the plugin, policies have no
// effect.
func Policies() *registry.Kind {
	joined := func(path ...string) func(*meta.Object) any {
		return func(o *meta.Object) any { return strings.Join(o.Strings(append([]string{"spec"}, path...)...), ",") }
	}
	flag := func(field string) func(*meta.Object) any {
		return func(o *meta.Object) any { return strconv.FormatBool(o.Bool("spec", field)) }
	}
	first := older.Same[PodSecurityPolicy]("v1beta1", "1.2", "1.11", "1.16", wellknown.GroupPolicy+"/v1beta1")
	first.Group = wellknown.GroupFormer
	return registry.Of(registry.Definition[PodSecurityPolicy]{
		Group: wellknown.GroupPolicy, Version: "v1beta1", Scope: registry.Cluster, Plural: "podsecuritypolicies", ShortNames: []string{"psp"},
		Lifetime: registry.Lifetime{Introduced: "1.10", Deprecated: "1.21", Removed: "1.25"},
		Versions: []registry.VersionOf[PodSecurityPolicy]{first},
		Columns: []registry.Column{
			{Name: "Priv", Type: "string", Doc: "Whether containers may be privileged.", Cell: flag("privileged")},
			{Name: "Caps", Type: "string", Doc: "The capabilities that containers may add.", Cell: joined("allowedCapabilities")},
			registry.TextColumn("Selinux", "The strategy for SELinux labels.", "spec", "seLinux", "rule"),
			registry.TextColumn("RunAsUser", "The strategy for the user of containers.", "spec", "runAsUser", "rule"),
			registry.TextColumn("FsGroup", "The strategy for the group of volumes.", "spec", "fsGroup", "rule"),
			registry.TextColumn("SupGroup", "The strategy for supplemental groups.", "spec", "supplementalGroups", "rule"),
			{Name: "ReadOnlyRootFs", Type: "string", Doc: "Whether root file systems must be read-only.", Cell: flag("readOnlyRootFilesystem")},
			{Name: "Volumes", Type: "string", Doc: "The allowed volume sources.", Cell: joined("volumes")},
		},
		Validate:  validateSecurityPolicy,
		Reference: &compat.Reference{NoGeneration: true},
	})
}

func validateSecurityPolicy(w *registry.Change[PodSecurityPolicy]) {
	s, at := &w.New.Spec, check.At("spec")
	for _, r := range []struct {
		field string
		list  []IDRange
	}{{"runAsUser", s.RunAsUser.Ranges}, {"supplementalGroups", s.SupplementalGroups.Ranges}, {"fsGroup", s.FSGroup.Ranges}} {
		checkRanges(&w.Violations, at.Field(r.field), r.list)
	}
	if s.RunAsGroup != nil {
		checkRanges(&w.Violations, at.Field("runAsGroup"), s.RunAsGroup.Ranges)
	}
	for i, p := range s.HostPorts {
		if p.Min > p.Max {
			w.Invalid(at.Field("hostPorts").Index(i), p.Max, "max must be greater than or equal to min")
		}
	}
	checkCapabilities(&w.Violations, at, s)
	if d, a := s.DefaultAllowPrivilegeEscalation, s.AllowPrivilegeEscalation; d != nil && a != nil && *d && !*a {
		w.Invalid(at.Field("defaultAllowPrivilegeEscalation"), true, "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true")
	}
	checkSysctls(&w.Violations, at, s)
	if s.RuntimeClass != nil {
		checkClasses(&w.Violations, at.Field("runtimeClass"), s.RuntimeClass)
	}
}

func checkRanges(f *check.Violations, at *check.Path, list []IDRange) {
	for i, r := range list {
		if r.Min > r.Max {
			f.Invalid(at.Field("ranges").Index(i), r.Max, "max must be greater than or equal to min")
		}
	}
}

// checkCapabilities checks that no capability that must be dropped is added by default or allowed.
func checkCapabilities(f *check.Violations, at *check.Path, s *PodSecurityPolicySpec) {
	drop := map[string]bool{}
	for _, c := range s.RequiredDropCapabilities {
		drop[c] = true
	}
	for _, given := range []struct {
		field string
		list  []string
	}{{"defaultAddCapabilities", s.DefaultAddCapabilities}, {"allowedCapabilities", s.AllowedCapabilities}} {
		for _, c := range given.list {
			if drop[c] {
				f.Invalid(at.Field(given.field), c, "capability is listed in "+given.field+" and requiredDropCapabilities")
			}
		}
	}
}

// maxSysctls is the limit of both lists in the schema.
const maxSysctls = 1024

// checkSysctls checks the names of kernel parameters, and that allowed and forbidden patterns do not
// overlap. Lists above the limit, which the schema reports, are not compared, because the comparison is
// quadratic.
func checkSysctls(f *check.Violations, at *check.Path, s *PodSecurityPolicySpec) {
	covered := func(pattern, name string) bool {
		prefix, wildcard := strings.CutSuffix(pattern, "*")
		return pattern == name || wildcard && strings.HasPrefix(name, prefix)
	}
	forbidden := s.ForbiddenSysctls
	if max(len(forbidden), len(s.AllowedUnsafeSysctls)) > maxSysctls {
		forbidden = nil
	}
	for _, sysctls := range []struct {
		field       string
		list, other []string
	}{{"allowedUnsafeSysctls", s.AllowedUnsafeSysctls, forbidden}, {"forbiddenSysctls", s.ForbiddenSysctls, nil}} {
		for i, name := range sysctls.list {
			at := at.Field(sysctls.field).Index(i)
			if prefix := strings.TrimRight(strings.TrimSuffix(name, "*"), "./"); prefix != "" || name == "" {
				f.Format(at, name, check.SysctlName(prefix))
			}
			for _, other := range sysctls.other {
				if covered(other, name) || covered(name, other) {
					f.Invalid(at, name, "sysctl overlaps with "+other)
				}
			}
		}
	}
}

func checkClasses(f *check.Violations, at *check.Path, c *RuntimeClassStrategyOptions) {
	allowed := at.Field("allowedRuntimeClassNames")
	for i, name := range c.AllowedRuntimeClassNames {
		switch {
		case name != "*":
			f.Format(allowed.Index(i), name, meta.CheckDNSSubdomain(name))
		case len(c.AllowedRuntimeClassNames) > 1:
			f.Invalid(allowed, name, "if '*' is present, must not specify other RuntimeClass names")
		}
	}
	f.Unique(allowed, c.AllowedRuntimeClassNames)
	if d := c.DefaultRuntimeClassName; d != nil && !slices.Contains(c.AllowedRuntimeClassNames, *d) && !slices.Contains(c.AllowedRuntimeClassNames, "*") {
		f.Required(allowed, "default "+strconv.Quote(*d)+" must be present in allowedRuntimeClassNames")
	}
}
