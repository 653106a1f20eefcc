// Package cells writes values as the columns of several kinds show them.
package cells

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
)

// Few is how many words of a list a column shows.
const Few = 3

// FirstFew is a list as a column shows it, the first words and how many more
// there are.
func FirstFew(list []string) string {
	return FewOf(list[:min(len(list), Few)], len(list))
}

// FewOf is a list as FirstFew shows it, of its first words and how many there are.
func FewOf(first []string, count int) string {
	text := strings.Join(first, ",")
	if count > len(first) {
		text += " + " + strconv.Itoa(count-len(first)) + " more..."
	}
	return text
}

// Balancer is where an object is reached by its status.loadBalancer: the addresses, or
// names where there is no address, in order.
func Balancer(o *meta.Object) []string {
	var out []string
	for _, in := range o.Objects("status", "loadBalancer", "ingress") {
		out = append(out, cmp.Or(in.String("ip"), in.String("hostname")))
	}
	slices.Sort(out)
	return slices.Compact(slices.DeleteFunc(out, func(s string) bool { return s == "" }))
}

// Labels writes labels as a selector does.
func Labels(labels map[string]any) string {
	if len(labels) == 0 {
		return "<none>"
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, fmt.Sprintf("%s=%v", k, labels[k]))
	}
	return strings.Join(out, ",")
}
