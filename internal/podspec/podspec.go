// Package podspec reads the specs of pods as trees: what the kinds and admission both
// ask of one.
package podspec

import (
	"slices"

	"orch.io/controlplane/api/meta"
)

// The lists of containers in a spec.
const (
	Containers = "containers"
	Init       = "initContainers"
	Ephemeral  = "ephemeralContainers"
)

// Of returns the containers of some lists of a spec, of all lists if none is named, in
// the order in which they start. Changes of them are changes of the spec.
func Of(spec *meta.Object, lists ...string) (out []*meta.Object) {
	if len(lists) == 0 {
		lists = []string{Init, Containers, Ephemeral}
	}
	for _, list := range lists {
		out = append(out, spec.Objects(list)...)
	}
	return out
}

// Lasting reports whether an init container keeps running beside the containers.
func Lasting(init *meta.Object) bool { return init.String("restartPolicy") == "Always" }

// Share is what is asked for and allowed of one resource, as text; empty: nothing said.
type Share struct{ Request, Limit string }

// QoS returns the class of quality of service that shares of cpu and memory give.
func QoS(shares []Share) string {
	some, guaranteed := false, true
	for _, s := range shares {
		some = some || s.Request != "" && s.Request != "0" || s.Limit != "" && s.Limit != "0"
		guaranteed = guaranteed && s.Limit != "" && s.Limit != "0" && s.Request == s.Limit
	}
	switch {
	case !some:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// Computing are the resources that all pods share, and that can change while they run.
func Computing() []string { return []string{"cpu", "memory"} }

// Shares returns the shares of the containers of a spec or, where it speaks of them, of
// the pod as a whole.
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

// Amounts are how much of each resource something has.
type Amounts = map[string]meta.Quantity

// Resources returns the limits or requests, whichever field names, of a container or a
// whole spec.
func Resources(of *meta.Object, field string) Amounts {
	return AmountsOf(of.Map("resources", field))
}

// AmountsOf returns the amounts in a part of an object. Texts that are none are left out.
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

// Sum returns the limits or requests of the containers of a spec together.
func Sum(spec *meta.Object, field string) Amounts {
	var containers, init []Amounts
	var lasting []bool
	for _, c := range spec.Objects(Containers) {
		containers = append(containers, Resources(c, field))
	}
	for _, c := range spec.Objects(Init) {
		init, lasting = append(init, Resources(c, field)), append(lasting, Lasting(c))
	}
	return Together(containers, init, lasting)
}

// Whole returns the limits or requests of a pod: what it says of itself before what its
// containers have together.
func Whole(spec *meta.Object, field string) Amounts {
	all := Sum(spec, field)
	for name, q := range Resources(spec, field) {
		all[name] = q
	}
	return all
}

// Together returns what containers have together: all that run at one time, and no less
// than any step of the start. lasting tells of each init container whether it keeps
// running.
func Together(containers, init []Amounts, lasting []bool) Amounts {
	sum, beside, start := Amounts{}, Amounts{}, Amounts{}
	for _, c := range containers {
		Add(sum, c)
	}
	for i, c := range init {
		step := Amounts{}
		Add(step, beside)
		Add(step, c)
		if lasting[i] {
			Add(beside, c)
		}
		Most(start, step)
	}
	Add(sum, beside)
	Most(sum, start)
	return sum
}

// Add adds amounts to others.
func Add(to, more Amounts) {
	for name, q := range more {
		to[name] = to[name].Add(q)
	}
}

// Most raises amounts to others that are more.
func Most(to, other Amounts) {
	for name, q := range other {
		if now, ok := to[name]; !ok || now.Cmp(q) < 0 {
			to[name] = q
		}
	}
}

// Tolerate adds a toleration, unless the spec has it, for however long.
func Tolerate(spec *meta.Object, toleration map[string]any) {
	t := meta.NewObject(toleration)
	same := func(have *meta.Object) bool {
		return !slices.ContainsFunc([]string{"key", "operator", "value", "effect"}, func(field string) bool { return have.String(field) != t.String(field) })
	}
	if !slices.ContainsFunc(spec.Objects("tolerations"), same) {
		spec.Set(append(spec.List("tolerations"), toleration), "tolerations")
	}
}

// MergeTolerations adds tolerations, and leaves of all those that the spec has then none
// that another one covers: of equal ones the first stays, of those that say the same in
// other words the last.
func MergeTolerations(spec *meta.Object, more ...*meta.Object) {
	all := append(spec.Objects("tolerations"), more...)
	longest := map[tolerance]int{} // which one of all
	for i, t := range all {
		of := toleranceOf(t)
		best, known := longest[of]
		switch {
		case !known || !lasts(all[best], t), lasts(t, all[best]) && !meta.Equal(all[best].Tree(), t.Tree()):
			longest[of] = i
		}
	}
	var list []any
	for i, t := range all {
		covers := func(wider tolerance) bool {
			by, is := longest[wider]
			return is && lasts(all[by], t)
		}
		if of := toleranceOf(t); longest[of] == i && !slices.ContainsFunc(of.wider(), covers) {
			list = append(list, meta.Clone(t.Tree()))
		}
	}
	if len(list) > 0 {
		spec.Set(list, "tolerations")
	}
}

// tolerance is which taints a toleration tolerates.
type tolerance struct{ key, effect, operator, value string }

func toleranceOf(t *meta.Object) tolerance {
	of := tolerance{t.String("key"), t.String("effect"), operator(t), t.String("value")}
	if of.operator == "Exists" {
		of.value = ""
	}
	return of
}

// wider returns the others that tolerate all that one tolerates and perhaps more.
func (of tolerance) wider() []tolerance {
	list := make([]tolerance, 0, 8)
	for _, key := range []string{of.key, ""} {
		for _, effect := range []string{of.effect, ""} {
			list = append(list, tolerance{key, effect, of.operator, of.value}, tolerance{key, effect, "Exists", ""})
		}
	}
	return slices.DeleteFunc(list, func(w tolerance) bool { return w == of })
}

// lasts reports whether a toleration holds no shorter than another one whose taints it
// tolerates.
func lasts(by, toleration *meta.Object) bool {
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

// Covers reports whether every taint that one toleration tolerates another one does too.
func Covers(by, toleration *meta.Object) bool {
	for _, field := range []string{"key", "effect"} {
		if v := by.String(field); v != "" && v != toleration.String(field) {
			return false
		}
	}
	if !lasts(by, toleration) {
		return false
	}
	return operator(by) == "Exists" || operator(toleration) == operator(by) && toleration.String("value") == by.String("value")
}
