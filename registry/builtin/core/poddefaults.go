package core

import (
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// defaultPod sets the defaults that schema tags cannot express. It works on the tree, because pods are
// written often and a typed view costs more.
func defaultPod(w *registry.Change[meta.Object]) {
	obj := w.New
	spec := obj.Map("spec")
	if spec == nil {
		return
	}
	DefaultPodSpec(spec)
	for _, c := range containersOf(spec, "containers", "initContainers") {
		requestLimits(c)
		if spec["hostNetwork"] == true {
			defaultHostPorts(c)
		}
	}
	defaultPodResources(meta.NewObject(spec))
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

// DefaultPodSpec sets the defaults that schema tags cannot express, in the spec of a pod or of a
// template. A nil spec is ignored.
func DefaultPodSpec(spec map[string]any) {
	if spec == nil {
		return
	}
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
		m, _ := v.(map[string]any)
		if m != nil && !hasSource(m) {
			m["emptyDir"] = map[string]any{}
		}
		if i, _ := m["image"].(map[string]any); i != nil {
			defaultPull(i, "pullPolicy", "reference")
		}
	}
	for _, c := range containersOf(spec, "containers", "initContainers", "ephemeralContainers") {
		defaultPull(c, "imagePullPolicy", "image")
	}
}

// hasSource reports whether a volume has a source.
func hasSource(volume map[string]any) bool {
	for field := range volume {
		if field != "name" {
			return true
		}
	}
	return false
}

// containersOf returns the containers in the given lists of a spec.
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

// defaultPull sets the pull policy in the field policy: Always if the image may change under the name
// in the field image, else IfNotPresent.
func defaultPull(m map[string]any, policy, image string) {
	if p, _ := m[policy].(string); p != "" {
		return
	}
	name, _ := m[image].(string)
	if m[policy] = "IfNotPresent"; mayChange(name) {
		m[policy] = "Always"
	}
}

// mayChange reports whether the name of an image has no tag or the tag latest. It is false for
// malformed names and for image IDs.
func mayChange(image string) bool {
	name, _, digested := strings.Cut(image, "@")
	last := strings.LastIndexByte(name, '/') + 1
	_, tag, tagged := strings.Cut(name[last:], ":")
	if tagged {
		name = strings.TrimSuffix(name, ":"+tag)
	}
	return imageName(name) && (tag == "latest" || !tagged && !digested)
}

// imageName reports whether a name without tag and digest is well-formed: an optional host and path
// segments, at most 255 bytes with the default host.
func imageName(name string) bool {
	const longest, id, host, library = 255, 64, len("docker.io/"), len("library/")
	parts, size := strings.Split(name, "/"), len(name)
	switch first := parts[0]; {
	case len(parts) == 1:
		size += host + library
	case strings.ContainsAny(first, ".:") || first == "localhost" || first != strings.ToLower(first):
		parts = parts[1:]
	default:
		size += host
	}
	if size > longest || strings.Trim(name, "./-") != name || len(name) == id && strings.Trim(name, "0123456789abcdef") == "" {
		return false
	}
	for _, p := range parts {
		if !imagePart(p) {
			return false
		}
	}
	return true
}

// imagePart reports whether a segment of an image name consists of lower-case letters and digits,
// joined by '.', '_', '__' or dashes.
func imagePart(part string) bool {
	word := func(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }
	between := strings.FieldsFunc(part, word)
	for _, s := range between {
		if s != "." && s != "_" && s != "__" && strings.Trim(s, "-") != "" {
			return false
		}
	}
	ends := strings.TrimFunc(part, func(r rune) bool { return !word(r) })
	return part != "" && ends == part
}

// requestLimits sets missing requests to the limits.
func requestLimits(container map[string]any) {
	c := meta.NewObject(container)
	requests := c.Map("resources", "requests")
	for name, limit := range c.Map("resources", "limits") {
		if _, ok := requests[name]; !ok {
			c.Set(limit, "resources", "requests", name)
		}
	}
}

// defaultHostPorts sets missing host ports of a container in the network of the node to the container
// ports.
func defaultHostPorts(container map[string]any) {
	ports, _ := container["ports"].([]any)
	for _, v := range ports {
		if p, ok := v.(map[string]any); ok && p["hostPort"] == nil {
			p["hostPort"] = p["containerPort"]
		}
	}
}
