// Package podspec reads the specs of pods as trees: what the kinds and admission both
// ask of one.
package podspec

import "orch.io/controlplane/api/meta"

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
		add(sum, c)
	}
	for i, c := range init {
		step := Amounts{}
		add(step, beside)
		add(step, c)
		if lasting[i] {
			add(beside, c)
		}
		most(start, step)
	}
	add(sum, beside)
	most(sum, start)
	return sum
}

func add(to, more Amounts) {
	for name, q := range more {
		to[name] = to[name].Add(q)
	}
}

func most(to, other Amounts) {
	for name, q := range other {
		if now, ok := to[name]; !ok || now.Cmp(q) < 0 {
			to[name] = q
		}
	}
}
