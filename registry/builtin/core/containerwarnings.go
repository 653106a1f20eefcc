package core

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// containers warns about fields of containers, and about conflicting ports within the pod.
func (w *podWarnings) containers() {
	var ports []portAt
	for _, list := range []string{"initContainers", "containers"} {
		for i, c := range w.spec.Objects(list) {
			at := w.at.Field(list).Index(i)
			w.container(at, c)
			for j, p := range c.Objects("ports") {
				ports = append(ports, portAt{
					at: at.Field("ports").Index(j), name: p.String("name"), protocol: p.String("protocol"), hostIP: p.String("hostIP"),
					hostPort: p.Int("hostPort"), number: p.Int("containerPort"),
				})
			}
		}
	}
	w.ports(ports)
}

// container warns about annotations that fields replaced, fractional bytes, and environment variables
// that hide another of the same name.
func (w *podWarnings) container(at *check.Path, c *meta.Object) {
	if c.Map("securityContext", "seccompProfile") == nil {
		w.annotation(w.names.Wire(wellknown.SeccompContainer)+c.String("name"), seccompReplaced)
	}
	w.appArmor(c)
	for _, name := range []string{"memory", "ephemeral-storage"} {
		for _, list := range []string{"limits", "requests"} {
			w.fractionalBytes(at.Field("resources").Field(list), c.Map("resources", list), name)
		}
	}
	seen := map[string]bool{}
	for i, v := range c.Objects("env") {
		name, value := v.String("name"), v.String("value")
		reference := "$(" + name + ")"
		extends := v.Map("valueFrom") == nil && value != reference && strings.Contains(value, reference)
		if seen[name] && !extends {
			w.warn(at.Field("env").Index(i), fmt.Sprintf("hides previous definition of %q, which may be dropped when using apply", name))
		}
		seen[name] = true
	}
}

// appArmor warns about an AppArmor annotation that has no corresponding field. In a Pod, unlike in a
// pod template, the field of a container was already set from the annotation.
func (w *podWarnings) appArmor(c *meta.Object) {
	key := w.names.Wire(wellknown.AppArmorProfile) + c.String("name")
	text, _ := w.annotations[key].(string)
	if w.pod {
		if w.spec.String("os", "name") == "windows" {
			return
		}
	} else if c.Map("securityContext", "appArmorProfile") != nil {
		return
	}
	podProfile := w.spec.Map("securityContext", "appArmorProfile")
	if podProfile == nil || !meta.Equal(podProfile, appArmorProfile(text)) {
		w.annotation(key, appArmorReplaced)
	}
}

// portAt is a port of a container with its path.
type portAt struct {
	at                     *check.Path
	name, protocol, hostIP string
	hostPort, number       int64
}

// ports warns about duplicate and overlapping ports and about duplicate names.
func (w *podWarnings) ports(ports []portAt) {
	for i, p := range ports {
		if p.hostIP != "" && p.hostPort == 0 {
			w.warn(p.at, fmt.Sprintf("hostIP set without hostPort: {Name:%s HostPort:0 ContainerPort:%d Protocol:%s HostIP:%s}", p.name, p.number, p.protocol, p.hostIP))
		}
		for _, other := range ports[:i] {
			if clash := p.clash(other); clash != "" {
				w.warn(p.at, clash+" port definition with "+other.at.String())
			}
		}
	}
	first := map[string]*check.Path{}
	for _, p := range ports {
		switch other := first[p.name]; {
		case p.name == "":
		case other == nil:
			first[p.name] = p.at
		default:
			w.warn(p.at, fmt.Sprintf("duplicate port name %q with %s, services and probes that select ports by name will use %s", p.name, other, other))
		}
	}
}

// clash returns the conflict of two ports of a pod, or "" if they can coexist.
func (p portAt) clash(other portAt) string {
	switch {
	case p.number != other.number || p.protocol != other.protocol:
		return ""
	case p.hostIP == other.hostIP && p.hostPort == other.hostPort:
		return "duplicate"
	case p.hostPort == 0 || other.hostPort == 0:
		return "overlapping"
	case p.hostPort == other.hostPort && (p.hostIP == "") != (other.hostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}
