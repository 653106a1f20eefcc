// Package podspec answers questions about pod specs in the form of trees, for the kinds and for
// admission.
package podspec

import (
	"slices"

	"orch.io/controlplane/api/meta"
)

// Names of the container lists of a pod spec.
const (
	Containers = "containers"
	Init       = "initContainers"
	Ephemeral  = "ephemeralContainers"
)

// Of returns the containers of the given lists, or of all lists if none is given, in the order in which they
// start. The results share memory with spec.
func Of(spec *meta.Object, lists ...string) (out []*meta.Object) {
	if len(lists) == 0 {
		lists = []string{Init, Containers, Ephemeral}
	}
	for _, list := range lists {
		out = append(out, spec.Objects(list)...)
	}
	return out
}

// IsSidecar reports whether an init container keeps running next to the containers.
func IsSidecar(init *meta.Object) bool { return init.String("restartPolicy") == "Always" }

// Share is the request and the limit of a resource as text; "" means unset.
type Share struct{ Request, Limit string }

// QoS returns the QoS class for the requests and limits of cpu and memory: Guaranteed if each limit is
// set and equals its request, BestEffort if nothing is set, else Burstable.
func QoS(shares []Share) string {
	anySet, guaranteed := false, true
	for _, s := range shares {
		anySet = anySet || s.Request != "" && s.Request != "0" || s.Limit != "" && s.Limit != "0"
		guaranteed = guaranteed && s.Limit != "" && s.Limit != "0" && s.Request == s.Limit
	}
	switch {
	case !anySet:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// Computing returns the resources that count for the QoS class and that can be resized in a running
// pod.
func Computing() []string { return []string{"cpu", "memory"} }

// Shares returns the shares of the containers or, if the spec has pod-level resources, of the pod.
func Shares(spec map[string]any) (out []Share) {
	of := meta.NewObject(spec)
	parts := Of(of, Containers, Init)
	if of.Map("resources") != nil {
		parts = []*meta.Object{of}
	}
	for _, c := range parts {
		for _, name := range Computing() {
			out = append(out, Share{c.String("resources", "requests", name), c.String("resources", "limits", name)})
		}
	}
	return out
}

// Amounts maps resource names to quantities.
type Amounts = map[string]meta.Quantity

// Resources returns the limits or requests of a container or of a pod spec; field is "limits" or
// "requests".
func Resources(of *meta.Object, field string) Amounts {
	return AmountsOf(of.Map("resources", field))
}

// AmountsOf parses a map of quantities. It skips values that are not quantities.
func AmountsOf(texts map[string]any) Amounts {
	have := make(Amounts, len(texts))
	for name, v := range texts {
		text, _ := v.(string)
		if q, err := meta.ParseQuantity(text); err == nil {
			have[name] = q
		}
	}
	return have
}

// Sum returns the total limits or requests of the containers of a spec; see Together.
func Sum(spec *meta.Object, field string) Amounts {
	var containers, init []Amounts
	var sidecars []bool
	for _, c := range spec.Objects(Containers) {
		containers = append(containers, Resources(c, field))
	}
	for _, c := range spec.Objects(Init) {
		init, sidecars = append(init, Resources(c, field)), append(sidecars, IsSidecar(c))
	}
	return Together(containers, init, sidecars)
}

// Whole returns the effective limits or requests of a pod: pod-level resources override the total of
// the containers.
func Whole(spec *meta.Object, field string) Amounts {
	all := Sum(spec, field)
	for name, q := range Resources(spec, field) {
		all[name] = q
	}
	return all
}

// Together returns the amounts that a pod needs: the sum over containers and sidecars, or the peak
// during initialization if that is larger. Init containers run one after the other; each needs its own
// amount plus the amounts of the sidecars started before it. sidecars has an entry for each init
// container.
func Together(containers, init []Amounts, sidecars []bool) Amounts {
	sum, running, peak := Amounts{}, Amounts{}, Amounts{}
	for _, c := range containers {
		Add(sum, c)
	}
	for i, c := range init {
		current := Amounts{}
		Add(current, running)
		Add(current, c)
		if sidecars[i] {
			Add(running, c)
		}
		Most(peak, current)
	}
	Add(sum, running)
	Most(sum, peak)
	return sum
}

// Add adds more to the amounts in to.
func Add(to, more Amounts) {
	for name, q := range more {
		to[name] = to[name].Add(q)
	}
}

// Most raises each amount in to to that in other, if it is larger.
func Most(to, other Amounts) {
	for name, q := range other {
		if now, ok := to[name]; !ok || now.Cmp(q) < 0 {
			to[name] = q
		}
	}
}

// Tolerate adds a toleration unless the spec has the same, ignoring tolerationSeconds.
func Tolerate(spec *meta.Object, toleration map[string]any) {
	t := meta.NewObject(toleration)
	same := func(have *meta.Object) bool {
		return !slices.ContainsFunc([]string{"key", "operator", "value", "effect"}, func(field string) bool { return have.String(field) != t.String(field) })
	}
	if !slices.ContainsFunc(spec.Objects("tolerations"), same) {
		spec.Set(append(spec.List("tolerations"), toleration), "tolerations")
	}
}

// MergeTolerations adds tolerations to the spec and removes each toleration that another covers. Of
// equal tolerations the first stays; of tolerations that are equivalent but not equal the last stays.
// The time is linear in the number of tolerations.
func MergeTolerations(spec *meta.Object, more ...*meta.Object) {
	all := append(spec.Objects("tolerations"), more...)
	longest := map[tolerance]int{} // index of the toleration with the longest duration
	for i, t := range all {
		of := toleranceOf(t)
		best, known := longest[of]
		switch {
		case !known || !lastsAtLeast(all[best], t), lastsAtLeast(t, all[best]) && !meta.Equal(all[best].Tree(), t.Tree()):
			longest[of] = i
		}
	}
	var list []any
	for i, t := range all {
		covers := func(wider tolerance) bool {
			by, is := longest[wider]
			return is && lastsAtLeast(all[by], t)
		}
		if of := toleranceOf(t); longest[of] == i && !slices.ContainsFunc(of.wider(), covers) {
			list = append(list, meta.Clone(t.Tree()))
		}
	}
	if len(list) > 0 {
		spec.Set(list, "tolerations")
	}
}

// tolerance identifies the taints that a toleration matches.
type tolerance struct{ key, effect, operator, value string }

func toleranceOf(t *meta.Object) tolerance {
	of := tolerance{t.String("key"), t.String("effect"), operator(t), t.String("value")}
	if of.operator == "Exists" {
		of.value = ""
	}
	return of
}

// wider returns the tolerances that match at least the same taints, except of itself.
func (of tolerance) wider() []tolerance {
	list := make([]tolerance, 0, 8)
	for _, key := range []string{of.key, ""} {
		for _, effect := range []string{of.effect, ""} {
			list = append(list, tolerance{key, effect, of.operator, of.value}, tolerance{key, effect, "Exists", ""})
		}
	}
	return slices.DeleteFunc(list, func(w tolerance) bool { return w == of })
}

// lastsAtLeast reports whether by tolerates its taints for at least as long as toleration does.
func lastsAtLeast(by, toleration *meta.Object) bool {
	if _, bound := by.Get("tolerationSeconds"); !bound || by.String("effect") != "NoExecute" {
		return true
	}
	_, also := toleration.Get("tolerationSeconds")
	return also && toleration.Int("tolerationSeconds") <= by.Int("tolerationSeconds")
}

func operator(toleration *meta.Object) string {
	if op := toleration.String("operator"); op != "" {
		return op
	}
	return "Equal"
}

// Covers reports whether by tolerates each taint that toleration tolerates, for at least as long.
func Covers(by, toleration *meta.Object) bool {
	for _, field := range []string{"key", "effect"} {
		if v := by.String(field); v != "" && v != toleration.String(field) {
			return false
		}
	}
	if !lastsAtLeast(by, toleration) {
		return false
	}
	return operator(by) == "Exists" || operator(toleration) == operator(by) && toleration.String("value") == by.String("value")
}
