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

// FirstFew is a list as a column shows it, the first words and how many more
// there are.
func FirstFew(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ",")
	}
	return strings.Join(list[:few], ",") + " + " + strconv.Itoa(len(list)-few) + " more..."
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
