// Package podsecuritypolicy holds the kind PodSecurityPolicy of older releases, for programs that
// have such objects.
package podsecuritypolicy

import (
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PodSecurityPolicy says what pods may ask for, of those whose makers may use it.
type PodSecurityPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what pods may ask for.
	Spec PodSecurityPolicySpec `json:"spec,omitempty" protobuf:"2"`
}

// PodSecurityPolicySpec is what pods may ask for.
type PodSecurityPolicySpec struct {
	// Privileged lets containers be privileged.
	Privileged bool `json:"privileged,omitempty" protobuf:"1"`
	// DefaultAddCapabilities are capabilities that containers get unless they drop them.
	DefaultAddCapabilities []string `json:"defaultAddCapabilities,omitempty" protobuf:"2"`
	// RequiredDropCapabilities are capabilities that are taken from containers.
	RequiredDropCapabilities []string `json:"requiredDropCapabilities,omitempty" protobuf:"3"`
	// AllowedCapabilities are capabilities that containers may add; * is all.
	AllowedCapabilities []string `json:"allowedCapabilities,omitempty" protobuf:"4"`
	// Volumes are the sources that volumes may have, by the names of their fields in a pod;
	// * is all.
	Volumes []string `json:"volumes,omitempty" protobuf:"5"`
	// HostNetwork lets pods use the network of the node.
	HostNetwork bool `json:"hostNetwork,omitempty" protobuf:"6"`
	// HostPorts are the ports of the node that containers may have.
	HostPorts []HostPortRange `json:"hostPorts,omitempty" protobuf:"7"`
	// HostPID lets pods see the processes of the node.
	HostPID bool `json:"hostPID,omitempty" protobuf:"8"`
	// HostIPC lets pods share memory and semaphores with the node.
	HostIPC bool `json:"hostIPC,omitempty" protobuf:"9"`
	// SELinux is which SELinux labels pods may have.
	SELinux SELinuxStrategyOptions `json:"seLinux" protobuf:"10"`
	// RunAsUser is as which users containers may run.
	RunAsUser RunAsUserStrategyOptions `json:"runAsUser" protobuf:"11"`
	// RunAsGroup is as which groups containers may run; unset: as any.
	RunAsGroup *RunAsGroupStrategyOptions `json:"runAsGroup,omitempty" protobuf:"22"`
	// SupplementalGroups are the further groups that pods may have.
	SupplementalGroups SupplementalGroupsStrategyOptions `json:"supplementalGroups" protobuf:"12"`
	// FSGroup is the groups that the volumes of pods may have.
	FSGroup FSGroupStrategyOptions `json:"fsGroup" protobuf:"13"`
	// ReadOnlyRootFilesystem makes containers run with a root file system that they cannot
	// write.
	ReadOnlyRootFilesystem bool `json:"readOnlyRootFilesystem,omitempty" protobuf:"14"`
	// DefaultAllowPrivilegeEscalation is whether processes may gain rights in containers
	// that do not say.
	DefaultAllowPrivilegeEscalation *bool `json:"defaultAllowPrivilegeEscalation,omitempty" protobuf:"15"`
	// AllowPrivilegeEscalation lets containers ask that processes may gain rights: true
	// unless set.
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty" protobuf:"16" schema:"default=true"`
	// AllowedHostPaths are the paths of the node that volumes may show; none: all.
	AllowedHostPaths []AllowedHostPath `json:"allowedHostPaths,omitempty" protobuf:"17"`
	// AllowedFlexVolumes are the flex volumes that may be used, if volumes has them; none: all.
	AllowedFlexVolumes []AllowedFlexVolume `json:"allowedFlexVolumes,omitempty" protobuf:"18"`
	// AllowedCSIDrivers are the drivers of volumes that stand in a pod itself; none: all.
	AllowedCSIDrivers []AllowedCSIDriver `json:"allowedCSIDrivers,omitempty" protobuf:"23"`
	// AllowedUnsafeSysctls are the unsafe kernel parameters that pods may set, by name; what
	// ends in * is the begin of names; at most 1024.
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty" protobuf:"19" schema:"maxItems=1024"`
	// ForbiddenSysctls are the kernel parameters that pods may not set, by name; what ends
	// in * is the begin of names; at most 1024.
	ForbiddenSysctls []string `json:"forbiddenSysctls,omitempty" protobuf:"20" schema:"maxItems=1024"`
	// AllowedProcMountTypes are how the directory proc may be mounted: Default or Unmasked;
	// none: Default.
	AllowedProcMountTypes []string `json:"allowedProcMountTypes,omitempty" protobuf:"21" schema:"items.enum=Default|Unmasked"`
	// RuntimeClass is the runtime classes that pods may have; unset: all.
	RuntimeClass *RuntimeClassStrategyOptions `json:"runtimeClass,omitempty" protobuf:"24"`
}

// AllowedHostPath is a path of the node that volumes may show.
type AllowedHostPath struct {
	// PathPrefix is the path, with all that is below it.
	PathPrefix string `json:"pathPrefix,omitempty" protobuf:"1" schema:"required,optional,format=inner-path"`
	// ReadOnly wants the volume to be mounted for reading alone.
	ReadOnly bool `json:"readOnly,omitempty" protobuf:"2"`
}

// AllowedFlexVolume is a flex volume that may be used.
type AllowedFlexVolume struct {
	// Driver of the volume.
	Driver string `json:"driver" protobuf:"1" schema:"required"`
}

// AllowedCSIDriver is a driver of volumes that stand in a pod itself.
type AllowedCSIDriver struct {
	// Name of the driver.
	Name string `json:"name" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
}

// HostPortRange is ports of the node.
type HostPortRange struct {
	// Min is the first port.
	Min int32 `json:"min" protobuf:"1" schema:"range=0|65535"`
	// Max is the last port.
	Max int32 `json:"max" protobuf:"2" schema:"range=0|65535"`
}

// IDRange is ids of users or groups.
type IDRange struct {
	// Min is the first id.
	Min int64 `json:"min" protobuf:"1" schema:"min=0"`
	// Max is the last id.
	Max int64 `json:"max" protobuf:"2" schema:"min=0"`
}

// SELinuxStrategyOptions is which SELinux labels pods may have.
type SELinuxStrategyOptions struct {
	// Rule is MustRunAs, those of seLinuxOptions, or RunAsAny.
	Rule string `json:"rule" protobuf:"1" schema:"enum=MustRunAs|RunAsAny"`
	// SELinuxOptions are the labels, for MustRunAs.
	SELinuxOptions *core.SELinuxOptions `json:"seLinuxOptions,omitempty" protobuf:"2"`
}

// RunAsUserStrategyOptions is as which users containers may run.
type RunAsUserStrategyOptions struct {
	// Rule is MustRunAs, one of the ranges, MustRunAsNonRoot, all but root, or RunAsAny.
	Rule string `json:"rule" protobuf:"1" schema:"enum=MustRunAs|MustRunAsNonRoot|RunAsAny"`
	// Ranges of users, for MustRunAs.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// RunAsGroupStrategyOptions is as which groups containers may run.
type RunAsGroupStrategyOptions struct {
	// Rule is MustRunAs, one of the ranges, MayRunAs, one of them if any is asked for, or
	// RunAsAny.
	Rule string `json:"rule" protobuf:"1" schema:"enum=MayRunAs|MustRunAs|RunAsAny"`
	// Ranges of groups, for MustRunAs and MayRunAs.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// SupplementalGroupsStrategyOptions is the further groups that pods may have.
type SupplementalGroupsStrategyOptions struct {
	// Rule is MustRunAs, some of the ranges, MayRunAs, some of them if any is asked for, or
	// RunAsAny.
	Rule string `json:"rule,omitempty" protobuf:"1" schema:"required,optional,enum=MayRunAs|MustRunAs|RunAsAny"`
	// Ranges of groups, for MustRunAs and MayRunAs.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// FSGroupStrategyOptions is the groups that the volumes of pods may have.
type FSGroupStrategyOptions struct {
	// Rule is MustRunAs, one of the ranges, MayRunAs, one of them if any is asked for, or
	// RunAsAny.
	Rule string `json:"rule,omitempty" protobuf:"1" schema:"required,optional,enum=MayRunAs|MustRunAs|RunAsAny"`
	// Ranges of groups, for MustRunAs and MayRunAs.
	Ranges []IDRange `json:"ranges,omitempty" protobuf:"2"`
}

// RuntimeClassStrategyOptions is the runtime classes that pods may have.
type RuntimeClassStrategyOptions struct {
	// AllowedRuntimeClassNames are the classes; * alone is all, none: a pod may have none.
	AllowedRuntimeClassNames []string `json:"allowedRuntimeClassNames" protobuf:"1" schema:"optional"`
	// DefaultRuntimeClassName is the class of pods that name none. It is one of those that
	// are allowed.
	DefaultRuntimeClassName *string `json:"defaultRuntimeClassName,omitempty" protobuf:"2" schema:"format=dns-subdomain"`
}

// Policies returns the kind PodSecurityPolicy, which the field's servers had up to
// 1.24. The newest release serves it where the admission plugin of that name is enabled.
// Without that what the policies say has no effect.
func Policies() *registry.Kind {
	words := func(path ...string) func(*meta.Object) any {
		return func(o *meta.Object) any { return strings.Join(o.Strings(append([]string{"spec"}, path...)...), ",") }
	}
	flag := func(field string) func(*meta.Object) any {
		return func(o *meta.Object) any { return strconv.FormatBool(o.Bool("spec", field)) }
	}
	first := older.Same[PodSecurityPolicy]("v1beta1", "1.2", "1.11", "1.16", names.GroupPolicy+"/v1beta1")
	first.Group = names.GroupFormer
	return registry.Of(registry.Definition[PodSecurityPolicy]{
		Group: names.GroupPolicy, Version: "v1beta1", Scope: registry.Cluster, Plural: "podsecuritypolicies", ShortNames: []string{"psp"},
		Lifetime: registry.Lifetime{Introduced: "1.10", Deprecated: "1.21", Removed: "1.25"},
		Versions: []registry.VersionOf[PodSecurityPolicy]{first},
		Columns: []registry.Column{
			{Name: "Priv", Type: "string", Doc: "Whether containers may be privileged.", Cell: flag("privileged")},
			{Name: "Caps", Type: "string", Doc: "The capabilities that containers may add.", Cell: words("allowedCapabilities")},
			registry.Text("Selinux", "Which SELinux labels pods may have.", "spec", "seLinux", "rule"),
			registry.Text("RunAsUser", "As which users containers may run.", "spec", "runAsUser", "rule"),
			registry.Text("FsGroup", "The groups that volumes may have.", "spec", "fsGroup", "rule"),
			registry.Text("SupGroup", "The further groups that pods may have.", "spec", "supplementalGroups", "rule"),
			{Name: "ReadOnlyRootFs", Type: "string", Doc: "Whether root file systems are for reading alone.", Cell: flag("readOnlyRootFilesystem")},
			{Name: "Volumes", Type: "string", Doc: "The sources that volumes may have.", Cell: words("volumes")},
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
		checkRanges(&w.Faults, at.Field(r.field), r.list)
	}
	if s.RunAsGroup != nil {
		checkRanges(&w.Faults, at.Field("runAsGroup"), s.RunAsGroup.Ranges)
	}
	for i, p := range s.HostPorts {
		if p.Min > p.Max {
			w.Invalid(at.Field("hostPorts").Index(i), p.Max, "max must be greater than or equal to min")
		}
	}
	checkCapabilities(&w.Faults, at, s)
	if d, a := s.DefaultAllowPrivilegeEscalation, s.AllowPrivilegeEscalation; d != nil && a != nil && *d && !*a {
		w.Invalid(at.Field("defaultAllowPrivilegeEscalation"), true, "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true")
	}
	checkSysctls(&w.Faults, at, s)
	if s.RuntimeClass != nil {
		checkClasses(&w.Faults, at.Field("runtimeClass"), s.RuntimeClass)
	}
}

func checkRanges(f *check.Faults, at *check.Path, list []IDRange) {
	for i, r := range list {
		if r.Min > r.Max {
			f.Invalid(at.Field("ranges").Index(i), r.Max, "max must be greater than or equal to min")
		}
	}
}

// checkCapabilities checks that none is taken from containers which they get or may add.
func checkCapabilities(f *check.Faults, at *check.Path, s *PodSecurityPolicySpec) {
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

// maxSysctls is what the schema allows of each list.
const maxSysctls = 1024

// checkSysctls checks names of kernel parameters, and that none is both allowed and
// forbidden, unless there are too many to compare each with each.
func checkSysctls(f *check.Faults, at *check.Path, s *PodSecurityPolicySpec) {
	covered := func(pattern, name string) bool {
		begin, all := strings.CutSuffix(pattern, "*")
		return pattern == name || all && strings.HasPrefix(name, begin)
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
			if begin := strings.TrimRight(strings.TrimSuffix(name, "*"), "./"); begin != "" || name == "" {
				f.Format(at, name, check.SysctlName(begin))
			}
			for _, other := range sysctls.other {
				if covered(other, name) || covered(name, other) {
					f.Invalid(at, name, "sysctl overlaps with "+other)
				}
			}
		}
	}
}

func checkClasses(f *check.Faults, at *check.Path, c *RuntimeClassStrategyOptions) {
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
