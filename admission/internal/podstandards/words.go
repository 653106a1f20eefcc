package podstandards

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
)

// those returns the names of the containers of which something is true.
func (p *Pod) those(is func(c *meta.Object) bool) (list []string) {
	for _, c := range p.containers {
		if is(c) {
			list = append(list, c.String("name"))
		}
	}
	return list
}

// setters names the pod, its containers or both of which something is true; empty: neither.
func (p *Pod) setters(is func(of *meta.Object) bool) string {
	pod, list := is(p.Spec), p.those(is)
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

// forbiddenProfile reports whether a pod or container has a profile, by the name of its
// field, that confines nothing, and puts its type into bad.
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

func using(list []string) string {
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

// maxWords bounds how many names, and values, one violation tells.
const maxWords = 200

// quoted returns words in quotation marks, which those within do not change.
func quoted(words []string) string { return `"` + joined(words, `", "`) + `"` }

// listed returns words as they are.
func listed(words []string) string { return joined(words, ", ") }

func joined(words []string, by string) string {
	return strings.Join(words[:min(len(words), maxWords)], by)
}
