package core

import (
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// containers checks the containers; at least one is required. Names are unique over all three lists: a
// duplicate is reported in the later list.
func (r *podRules) containers(at *check.Path) {
	if len(r.spec.Containers) == 0 {
		r.Required(at, "")
		return
	}
	seen := map[string]bool{}
	for i := range r.spec.Containers {
		c, p := &r.spec.Containers[i], at.Index(i)
		r.container(p, c)
		r.uniqueName(p, c, seen)
		r.running(p, c)
		r.restarts(p, c)
	}
	r.hostPortConflicts(at, r.spec.Containers)
}

// initContainers checks the init containers. Only sidecars may have probes and lifecycle actions.
func (r *podRules) initContainers(at *check.Path) {
	seen := nameSet(r.spec.Containers)
	for i := range r.spec.InitContainers {
		c, p := &r.spec.InitContainers[i], at.Index(i)
		r.container(p, c)
		r.restarts(p, c)
		r.uniqueName(p, c, seen)
		r.hostPortConflicts(at, r.spec.InitContainers[i:i+1])
		if c.RestartPolicy != nil && *c.RestartPolicy == "Always" {
			r.running(p, c)
			continue
		}
		r.forbid(p, "may not be set for init containers without restartPolicy=Always", []setField{
			{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil},
			{"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
		})
	}
}

// ephemeralContainers checks the ephemeral containers, which have no ports, resources, probes or
// restarts.
func (r *podRules) ephemeralContainers(at *check.Path) {
	others := nameSet(r.spec.Containers, r.spec.InitContainers)
	seen := nameSet(r.spec.Containers, r.spec.InitContainers)
	const never = "cannot be set for an Ephemeral Container"
	for i := range r.spec.EphemeralContainers {
		e, p := &r.spec.EphemeralContainers[i], at.Index(i)
		r.container(p, &e.Container)
		r.uniqueName(p, &e.Container, seen)
		if t := e.TargetContainerName; t != "" && !others[t] {
			r.NotFound(p.Field("targetContainerName"), t)
		}
		q := e.Resources
		r.forbid(p, never, []setField{
			{"ports", len(e.Ports) > 0}, {"resources", len(q.Limits)+len(q.Requests)+len(q.Claims) > 0},
			{"resizePolicy", len(e.ResizePolicy) > 0}, {"restartPolicy", e.RestartPolicy != nil}, {"restartPolicyRules", len(e.RestartPolicyRules) > 0},
			{"livenessProbe", e.LivenessProbe != nil}, {"readinessProbe", e.ReadinessProbe != nil}, {"startupProbe", e.StartupProbe != nil},
			{"lifecycle", e.Lifecycle != nil},
		})
		for j, m := range e.VolumeMounts {
			r.forbid(p.Field("volumeMounts").Index(j), never, []setField{{"subPath", m.SubPath != ""}, {"subPathExpr", m.SubPathExpr != ""}})
		}
	}
}

func nameSet(lists ...[]Container) map[string]bool {
	set := map[string]bool{}
	for _, c := range slices.Concat(lists...) {
		set[c.Name] = true
	}
	return set
}

// uniqueName checks that the name of a container is not in seen, and adds it.
func (r *podRules) uniqueName(at *check.Path, c *Container, seen map[string]bool) {
	if seen[c.Name] {
		r.Duplicate(at.Field("name"), c.Name)
	}
	seen[c.Name] = true
}

// setField is a field, and whether it is set.
type setField struct {
	name string
	set  bool
}

// forbid reports the fields that are set.
func (r *podRules) forbid(at *check.Path, why string, fields []setField) {
	for _, f := range fields {
		if f.set {
			r.Forbidden(at.Field(f.name), why)
		}
	}
}

// container checks the fields that all containers may have.
func (r *podRules) container(at *check.Path, c *Container) {
	r.RequiredField(at, "image", c.Image)
	r.ports(at.Field("ports"), c.Ports)
	r.env(at.Field("env"), c.Env)
	r.envFrom(at.Field("envFrom"), c.EnvFrom)
	r.mounts(at.Field("volumeMounts"), c)
	r.devices(at.Field("volumeDevices"), c)
	r.resources(at.Field("resources"), &c.Resources)
	r.resizePolicies(at.Field("resizePolicy"), c.ResizePolicy)
	r.security(at.Field("securityContext"), c.SecurityContext)
}

// restarts checks the restart rules.
func (r *podRules) restarts(at *check.Path, c *Container) {
	rules := at.Field("restartPolicyRules")
	if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 {
		r.Required(at.Field("restartPolicy"), "must be set when there are rules")
	}
	for i, rule := range c.RestartPolicyRules {
		if rule.ExitCodes == nil {
			r.Required(rules.Index(i).Field("exitCodes"), "must be specified")
		}
	}
}

// resizePolicies checks the resize policies. Violations have the path of the list, except for
// duplicates, as at kube-apiserver.
func (r *podRules) resizePolicies(at *check.Path, list []ContainerResizePolicy) {
	seen := map[string]bool{}
	for i, p := range list {
		if seen[p.ResourceName] {
			r.Duplicate(at.Index(i), p.ResourceName)
		}
		seen[p.ResourceName] = true
		r.RequiredOneOf(at, p.ResourceName, schema.EnumOf[ContainerResizePolicy]("ResourceName")...)
		r.RequiredOneOf(at, p.RestartPolicy, schema.EnumOf[ContainerResizePolicy]("RestartPolicy")...)
		if r.spec.RestartPolicy == "Never" && p.RestartPolicy != "NotRequired" {
			r.Invalid(at, p.RestartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'")
		}
	}
}

func (r *podRules) ports(at *check.Path, ports []ContainerPort) {
	seen := map[string]bool{}
	for i, port := range ports {
		p := at.Index(i)
		if port.Name != "" {
			if len(check.PortName(port.Name)) == 0 && seen[port.Name] {
				r.Duplicate(p.Field("name"), port.Name)
			}
			seen[port.Name] = true
		}
	}
}

// hostPortConflicts reports duplicate host ports.
func (r *podRules) hostPortConflicts(at *check.Path, containers []Container) {
	type hostPort struct {
		ip, protocol string
		port         int32
	}
	seen := map[hostPort]bool{}
	for i, c := range containers {
		for j, p := range c.Ports {
			h := hostPort{p.HostIP, p.Protocol, p.HostPort}
			if p.HostPort != 0 && seen[h] {
				r.Duplicate(at.Index(i).Field("ports").Index(j).Field("hostPort"), p.HostPort)
			}
			seen[h] = true
		}
	}
}

// mounts checks the volume mounts. Some violations have the path of the list, as at kube-apiserver.
func (r *podRules) mounts(at *check.Path, c *Container) {
	seen := map[string]bool{}
	for i, m := range c.VolumeMounts {
		p, v := at.Index(i), r.volumes[m.Name]
		if v == nil {
			r.NotFound(p.Field("name"), m.Name)
		}
		if v != nil && v.Image != nil && len(m.BindMountOptions) > 0 {
			r.Forbidden(p.Field("bindMountOptions"), "may not be set for a volume that is an image")
		}
		if seen[m.MountPath] {
			r.Invalid(p.Field("mountPath"), m.MountPath, "must be unique")
		}
		seen[m.MountPath] = true
		if slices.ContainsFunc(c.VolumeDevices, func(d VolumeDevice) bool { return d.Name == m.Name }) {
			r.Invalid(p.Field("name"), m.Name, "must not already exist in volumeDevices")
		}
		if slices.ContainsFunc(c.VolumeDevices, func(d VolumeDevice) bool { return d.DevicePath == m.MountPath }) {
			r.Invalid(p.Field("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices")
		}
		if m.SubPath != "" {
			r.relative(at.Field("subPath"), m.SubPath)
		}
		if m.SubPathExpr != "" {
			if m.SubPath != "" {
				r.Invalid(p.Field("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
			}
			r.relative(at.Field("subPathExpr"), m.SubPathExpr)
		}
		r.propagation(at, c, m)
	}
}

func (r *podRules) propagation(at *check.Path, c *Container, m VolumeMount) {
	r.OptionalOneOf(at.Field("mountPropagation"), m.MountPropagation, schema.EnumOf[VolumeMount]("MountPropagation")...)
	privileged := c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	if p := m.MountPropagation; p != nil && *p == "Bidirectional" && !privileged {
		r.Forbidden(at.Field("mountPropagation"), "Bidirectional mount propagation is available only to privileged containers")
	}
	at = at.Field("recursiveReadOnly")
	r.OptionalOneOf(at, m.RecursiveReadOnly, schema.EnumOf[VolumeMount]("RecursiveReadOnly")...)
	if p := m.RecursiveReadOnly; p == nil || *p != "Enabled" && *p != "IfPossible" {
		return
	}
	if !m.ReadOnly {
		r.Forbidden(at, "may only be specified when readOnly is true")
	}
	if m.MountPropagation != nil && *m.MountPropagation != "None" {
		r.Forbidden(at, "may only be specified when mountPropagation is None or not specified")
	}
}

func (r *podRules) devices(at *check.Path, c *Container) {
	names, paths := map[string]bool{}, map[string]bool{}
	for i, d := range c.VolumeDevices {
		p, v := at.Index(i), r.volumes[d.Name]
		if names[d.Name] {
			r.Invalid(p.Field("name"), d.Name, "must be unique")
		}
		switch {
		case v == nil:
			r.NotFound(p.Field("name"), d.Name)
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			r.Invalid(p.Field("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if paths[d.DevicePath] {
			r.Invalid(p.Field("devicePath"), d.DevicePath, "must be unique")
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.Name == d.Name }) {
			r.Invalid(p.Field("name"), d.Name, "must not already exist in volumeMounts")
		}
		if slices.ContainsFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.MountPath == d.DevicePath }) {
			r.Invalid(p.Field("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts")
		}
		names[d.Name], paths[d.DevicePath] = d.Name != "", true
	}
}

// relative checks a path that must not leave a volume.
func (r *podRules) relative(at *check.Path, path string) {
	r.Format(at, path, check.RelativePath(path))
}

// labelKeys checks the label keys that extend a selector.
func (r *podRules) labelKeys(at *check.Path, keys []string, s *meta.LabelSelector) {
	if len(keys) > 0 && s == nil {
		r.Forbidden(at, "must not be specified when labelSelector is not set")
	}
}
