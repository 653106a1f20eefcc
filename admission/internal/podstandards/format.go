package podstandards

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
)

// containersWhere returns the names of the containers for which is returns true.
func (p *Pod) containersWhere(is func(c *meta.Object) bool) (list []string) {
	for _, c := range p.containers {
		if is(c) {
			list = append(list, c.String("name"))
		}
	}
	return list
}

// subjectsWhere names the pod, the containers or both for which is returns true, or returns "".
func (p *Pod) subjectsWhere(is func(of *meta.Object) bool) string {
	pod, list := is(p.Spec), p.containersWhere(is)
	switch {
	case pod && len(list) > 0:
		return "pod and " + containers(list)
	case pod:
		return "pod"
	case len(list) > 0:
		return containers(list)
	}
	return ""
}

// forbiddenProfile reports whether a pod or container has a profile in the given field that is neither
// RuntimeDefault nor Localhost, and adds its type to bad.
func forbiddenProfile(of *meta.Object, field string, bad map[string]bool) bool {
	if !has(of, "securityContext", field) {
		return false
	}
	kind := of.String("securityContext", field, "type")
	forbidden := !slices.Contains([]string{"RuntimeDefault", "Localhost"}, kind)
	if forbidden {
		bad[kind] = true
	}
	return forbidden
}

func has(of *meta.Object, path ...string) bool {
	v, _ := of.Get(path...)
	return v != nil
}

func containers(list []string) string { return plural("container", len(list)) + " " + quoted(list) }

func containersUse(list []string) string {
	if len(list) == 1 {
		return containers(list) + " uses "
	}
	return containers(list) + " use "
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// maxListed limits the names, and the values, in the text of a violation.
const maxListed = 200

// quoted joins words in quotation marks. It does not escape them, as kube-apiserver does not.
func quoted(words []string) string { return `"` + joined(words, `", "`) + `"` }

// listed joins words without quotation marks.
func listed(words []string) string { return joined(words, ", ") }

func joined(words []string, by string) string {
	return strings.Join(words[:min(len(words), maxListed)], by)
}
