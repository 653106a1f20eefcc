package core

import (
	"slices"
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

// allContainers checks the three lists of containers; a name stands once in
// all of them together.
func (r *podRules) allContainers(at *check.Path) {
	s, seen := r.spec, map[string]bool{}
	if len(s.Containers) == 0 {
		r.Required(at.Field("containers"), "")
	}
	for i := range s.Containers {
		p := at.Field("containers").Index(i)
		r.container(p, &s.Containers[i], seen)
		r.running(p, &s.Containers[i])
		if s.Containers[i].RestartPolicy != nil && len(s.Containers[i].RestartPolicyRules) == 0 {
			r.optional(p.Field("restartPolicy"), s.Containers[i].RestartPolicy, "Always", "OnFailure", "Never")
		}
	}
	for i := range s.InitContainers {
		p := at.Field("initContainers").Index(i)
		c := &s.InitContainers[i]
		r.container(p, c, seen)
		if c.RestartPolicy != nil && *c.RestartPolicy == "Always" {
			r.running(p, c)
			continue
		}
		r.absent(p, map[string]bool{
			"lifecycle": c.Lifecycle != nil, "livenessProbe": c.LivenessProbe != nil,
			"readinessProbe": c.ReadinessProbe != nil, "startupProbe": c.StartupProbe != nil,
		}, "may not be set for init containers without restartPolicy=Always")
	}
	for i := range s.EphemeralContainers {
		p := at.Field("ephemeralContainers").Index(i)
		e := &s.EphemeralContainers[i]
		r.container(p, &e.Container, seen)
		if t := e.TargetContainerName; t != "" && !slices.ContainsFunc(append(s.Containers, s.InitContainers...), func(c Container) bool { return c.Name == t }) {
			r.NotFound(p.Field("targetContainerName"), t)
		}
		r.absent(p, map[string]bool{
			"ports": len(e.Ports) > 0, "lifecycle": e.Lifecycle != nil, "livenessProbe": e.LivenessProbe != nil,
			"readinessProbe": e.ReadinessProbe != nil, "startupProbe": e.StartupProbe != nil,
			"resources": len(e.Resources.Limits)+len(e.Resources.Requests) > 0,
		}, "cannot be set for an Ephemeral Container")
	}
	r.hostPortConflicts(at.Field("containers"))
}

// absent forbids fields that are set.
func (r *podRules) absent(at *check.Path, set map[string]bool, why string) {
	for _, field := range []string{"lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "startupProbe"} {
		if set[field] {
			r.Forbidden(at.Field(field), why)
		}
	}
}

func (r *podRules) container(at *check.Path, c *Container, seen map[string]bool) {
	r.label(at.Field("name"), c.Name)
	if c.Name != "" && seen[c.Name] {
		r.Duplicate(at.Field("name"), c.Name)
	}
	seen[c.Name] = true
	switch {
	case c.Image == "":
		r.Required(at.Field("image"), "")
	case strings.TrimSpace(c.Image) != c.Image:
		r.Invalid(at.Field("image"), c.Image, "must not have leading or trailing whitespace")
	}
	r.RequiredOneOf(at.Field("terminationMessagePolicy"), c.TerminationMessagePolicy, "File", "FallbackToLogsOnError")
	r.ports(at.Field("ports"), c.Ports)
	r.env(at.Field("env"), c.Env)
	r.envFrom(at.Field("envFrom"), c.EnvFrom)
	r.mounts(at.Field("volumeMounts"), c)
	r.devices(at.Field("volumeDevices"), c)
	r.RequiredOneOf(at.Field("imagePullPolicy"), c.ImagePullPolicy, "Always", "IfNotPresent", "Never")
	r.resources(at.Field("resources"), &c.Resources)
	r.security(at.Field("securityContext"), c.SecurityContext)
}

func (r *podRules) ports(at *check.Path, ports []ContainerPort) {
	seen := map[string]bool{}
	for i, port := range ports {
		p := at.Index(i)
		if port.Name != "" {
			faults := check.PortName(port.Name)
			r.Format(p.Field("name"), port.Name, faults)
			if len(faults) == 0 && seen[port.Name] {
				r.Duplicate(p.Field("name"), port.Name)
			}
			seen[port.Name] = true
		}
		if port.ContainerPort == 0 {
			r.Required(p.Field("containerPort"), "")
		} else {
			r.portNumber(p.Field("containerPort"), int64(port.ContainerPort))
		}
		if port.HostPort != 0 {
			r.portNumber(p.Field("hostPort"), int64(port.HostPort))
		}
		r.RequiredOneOf(p.Field("protocol"), port.Protocol, "SCTP", "TCP", "UDP")
		if port.HostIP != "" {
			r.ip(p.Field("hostIP"), port.HostIP)
		}
	}
}

func (r *podRules) portNumber(at *check.Path, n int64) { r.Range(at, n, 1, 65535) }

// hostPortConflicts checks that no port of the node is asked for twice.
func (r *podRules) hostPortConflicts(at *check.Path) {
	type hostPort struct {
		ip, protocol string
		port         int32
	}
	seen := map[hostPort]bool{}
	for i, c := range r.spec.Containers {
		for j, p := range c.Ports {
			h := hostPort{p.HostIP, p.Protocol, p.HostPort}
			if p.HostPort != 0 && seen[h] {
				r.Duplicate(at.Index(i).Field("ports").Index(j).Field("hostPort"), p.HostPort)
			}
			seen[h] = true
		}
	}
}

func (r *podRules) mounts(at *check.Path, c *Container) {
	seen := map[string]bool{}
	for i, m := range c.VolumeMounts {
		p := at.Index(i)
		if m.Name == "" {
			r.Required(p.Field("name"), "")
		}
		if m.MountPath == "" {
			r.Required(p.Field("mountPath"), "")
		}
		if m.Name != "" && r.volumes[m.Name] == nil {
			r.NotFound(p.Field("name"), m.Name)
		}
		if seen[m.MountPath] {
			r.Invalid(p.Field("mountPath"), m.MountPath, "must be unique")
		}
		seen[m.MountPath] = true
		if m.SubPath != "" {
			r.relative(at.Field("subPath"), m.SubPath)
		}
		if m.SubPathExpr != "" {
			if m.SubPath != "" {
				r.Invalid(p.Field("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
			}
			r.relative(at.Field("subPathExpr"), m.SubPathExpr)
		}
		r.optional(at.Field("mountPropagation"), m.MountPropagation, "Bidirectional", "HostToContainer", "None")
		r.optional(p.Field("recursiveReadOnly"), m.RecursiveReadOnly, "Disabled", "Enabled", "IfPossible")
	}
}

func (r *podRules) devices(at *check.Path, c *Container) {
	seen := map[string]bool{}
	for i, d := range c.VolumeDevices {
		p := at.Index(i)
		v := r.volumes[d.Name]
		switch {
		case d.Name == "":
			r.Required(p.Field("name"), "")
		case v == nil:
			r.NotFound(p.Field("name"), d.Name)
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			r.Invalid(p.Field("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		switch {
		case d.DevicePath == "":
			r.Required(p.Field("devicePath"), "")
		case seen[d.DevicePath]:
			r.Invalid(p.Field("devicePath"), d.DevicePath, "must be unique")
		case slices.ContainsFunc(c.VolumeMounts, func(m VolumeMount) bool { return m.MountPath == d.DevicePath }):
			r.Invalid(p.Field("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts")
		}
		seen[d.DevicePath] = true
	}
}

func (r *podRules) resources(at *check.Path, q *ResourceRequirements) {
	r.amounts(at.Field("limits"), q.Limits)
	r.amounts(at.Field("requests"), q.Requests)
	for _, name := range sorted(q.Requests) {
		request := q.Requests[name]
		if limit, ok := q.Limits[name]; ok && request.Cmp(limit) > 0 {
			r.Invalid(at.Field("requests"), request, "must be less than or equal to "+name+" limit of "+limit.String())
		}
	}
	seen := map[ResourceClaim]bool{}
	for i, c := range q.Claims {
		p := at.Field("claims").Index(i)
		if seen[c] {
			r.Duplicate(p, c.Name)
		}
		seen[c] = true
		if !slices.ContainsFunc(r.spec.ResourceClaims, func(have PodResourceClaim) bool { return have.Name == c.Name }) {
			r.NotFound(p.Field("name"), c.Name)
		}
	}
}

// amounts checks the names and values of a resource list.
func (r *podRules) amounts(at *check.Path, list map[string]meta.Quantity) {
	for _, name := range sorted(list) {
		p, value := at.Key(name), list[name]
		r.Format(p, name, meta.CheckQualifiedName(name))
		if !strings.Contains(name, "/") && !knownResource(name) {
			r.Invalid(p, name, "must be a standard resource type or fully qualified")
		}
		if value.Sign() < 0 {
			r.Invalid(p, value, "must be greater than or equal to 0")
		}
		if strings.Contains(name, "/") && !value.Whole() {
			r.Invalid(p, value, "must be an integer")
		}
	}
}

func knownResource(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-")
}
