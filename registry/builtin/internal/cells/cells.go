// Package cells formats values for the printer columns of several kinds.
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

// Few is the number of entries of a list that a column shows.
const Few = 3

// FirstFew returns the first entries of a list and the number of the others, such as "a,b,c + 2
// more...".
func FirstFew(list []string) string {
	return FewOf(list[:min(len(list), Few)], len(list))
}

// FewOf formats a list of count entries that begins with first, as FirstFew does.
func FewOf(first []string, count int) string {
	text := strings.Join(first, ",")
	if count > len(first) {
		text += " + " + strconv.Itoa(count-len(first)) + " more..."
	}
	return text
}

// Balancer returns the addresses in status.loadBalancer, sorted and without duplicates: the IP of each
// ingress point, or its host name if it has no IP.
func Balancer(o *meta.Object) []string {
	var out []string
	for _, in := range o.Objects("status", "loadBalancer", "ingress") {
		out = append(out, cmp.Or(in.String("ip"), in.String("hostname")))
	}
	slices.Sort(out)
	return slices.Compact(slices.DeleteFunc(out, func(s string) bool { return s == "" }))
}

// Labels formats labels as a selector, or returns <none>.
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
