package core

import (
	"strings"

	"orch.io/controlplane/registry/meta"
)

// defaultPod fills in what the schema's defaults cannot say. It works on the
// tree, since templates and pods are written often.
func defaultPod(obj *meta.Object) {
	spec := obj.Map("spec")
	if spec == nil {
		return
	}
	DefaultPodSpec(spec)
	for _, c := range containersOf(spec, "containers", "initContainers") {
		requestLimits(c)
		if spec["hostNetwork"] == true {
			hostPorts(c)
		}
	}
	if _, ok := spec["enableServiceLinks"]; !ok {
		spec["enableServiceLinks"] = true
	}
	if ip := obj.String("status", "podIP"); ip != "" && firstIP(obj.List("status", "podIPs")) != ip {
		obj.Set([]any{map[string]any{"ip": ip}}, "status", "podIPs")
	}
}

func firstIP(list []any) string {
	if len(list) == 0 {
		return ""
	}
	m, _ := list[0].(map[string]any)
	ip, _ := m["ip"].(string)
	return ip
}

// DefaultPodSpec fills in what the schema's defaults cannot say, for the spec of
// a pod as well as of a template.
func DefaultPodSpec(spec map[string]any) {
	if spec["securityContext"] == nil {
		spec["securityContext"] = map[string]any{}
	}
	account, old := spec["serviceAccountName"], spec["serviceAccount"]
	switch {
	case account != nil:
		spec["serviceAccount"] = account
	case old != nil:
		spec["serviceAccountName"] = old
	}
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		if m, ok := v.(map[string]any); ok && !sourced(m) {
			m["emptyDir"] = map[string]any{}
		}
	}
	for _, c := range containersOf(spec, "containers", "initContainers", "ephemeralContainers") {
		if p, _ := c["imagePullPolicy"].(string); p == "" {
			image, _ := c["image"].(string)
			c["imagePullPolicy"] = pullPolicy(image)
		}
	}
}

// sourced reports whether a volume says where it comes from.
func sourced(volume map[string]any) bool {
	for field := range volume {
		if field != "name" {
			return true
		}
	}
	return false
}

// containersOf returns the containers in some lists of a spec.
func containersOf(spec map[string]any, lists ...string) []map[string]any {
	var out []map[string]any
	for _, name := range lists {
		list, _ := spec[name].([]any)
		for _, v := range list {
			if c, ok := v.(map[string]any); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// pullPolicy returns the default for an image: one that may change under its
// name is always pulled.
func pullPolicy(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	name, digest, _ := strings.Cut(name, "@")
	_, tag, _ := strings.Cut(name, ":")
	if tag == "latest" || tag == "" && digest == "" && image != "" {
		return "Always"
	}
	return "IfNotPresent"
}

// requestLimits requests what is limited and not requested.
func requestLimits(container map[string]any) {
	c := meta.NewObject(container)
	requests := c.Map("resources", "requests")
	for name, most := range c.Map("resources", "limits") {
		if _, ok := requests[name]; !ok {
			c.Set(most, "resources", "requests", name)
		}
	}
}

// hostPorts gives the ports of a container in the node's network their number
// there.
func hostPorts(container map[string]any) {
	ports, _ := container["ports"].([]any)
	for _, v := range ports {
		if p, ok := v.(map[string]any); ok && p["hostPort"] == nil {
			p["hostPort"] = p["containerPort"]
		}
	}
}
