package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// priority gives new pods the number and the preemption of their class, lets one class
// alone be the default, and keeps those of the system. Pods keep what they have.
func priority() admission.Plugin {
	return admission.Plugin{
		Name: "Priority",
		Rules: append(on("", []string{"pods"}, admission.Create, admission.Update),
			on(names.GroupScheduling, []string{"priorityclasses"}, admission.Create, admission.Update, admission.Delete)...),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			switch {
			case r.Resource.Resource != "pods":
				return nil
			case r.Old != nil:
				for _, field := range []string{"priority", "preemptionPolicy"} {
					if _, set := r.Object.Get("spec", field); !set {
						r.Object.CopyField(r.Old, "spec", field)
					}
				}
				return nil
			}
			return prioritize(ctx, r)
		},
		Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete {
				if strings.HasPrefix(r.Name, "system-") { // which no other class is called
					return errors.New("this is a system priority class and cannot be deleted")
				}
				return nil
			}
			if r.Resource.Resource != "priorityclasses" || !r.Object.Bool("globalDefault") {
				return nil
			}
			class, err := defaultPriority(ctx, r)
			if err == nil && class != nil && class.Name() != r.Name {
				return fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist", class.Name())
			}
			return err
		},
	}
}

// prioritize fills in what the class of a pod says, and refuses a pod that says otherwise.
func prioritize(ctx context.Context, r *admission.Request) error {
	name := r.Object.String("spec", "priorityClassName")
	class, err := classNamed(ctx, r, name)
	switch {
	case err != nil:
		return err
	case class == nil && name != "":
		if !r.Server.Serves(names.GroupScheduling, "priorityclasses") {
			return nil
		}
		return fmt.Errorf("no PriorityClass with name %s was found", name)
	case class != nil:
		r.Object.Set(class.Name(), "spec", "priorityClassName")
	}
	value, preemption := class.Int("value"), class.String("preemptionPolicy")
	if preemption == "" {
		preemption = "PreemptLowerPriority"
	}
	if _, set := r.Object.Get("spec", "priority"); set && r.Object.Int("spec", "priority") != value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name",
			r.Object.Int("spec", "priority"), value)
	}
	if said := r.Object.String("spec", "preemptionPolicy"); said != "" && said != preemption {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
			said, preemption)
	}
	r.Object.Set(value, "spec", "priority")
	r.Object.Set(preemption, "spec", "preemptionPolicy")
	return nil
}

// classNamed returns the class of a name, or that for pods that name none; nil: there is none.
func classNamed(ctx context.Context, r *admission.Request, name string) (*meta.Object, error) {
	if name == "" {
		return defaultPriority(ctx, r)
	}
	return r.Server.Find(ctx, names.GroupScheduling, "priorityclasses", meta.Key{Name: name})
}

// defaultPriority returns the class for pods that name none, or nil: of several that came
// at one time, the least.
func defaultPriority(ctx context.Context, r *admission.Request) (least *meta.Object, err error) {
	classes, err := r.Server.List(ctx, names.GroupScheduling, "priorityclasses", "")
	for _, class := range classes {
		if class.Bool("globalDefault") && (least == nil || class.Int("value") < least.Int("value")) {
			least = class
		}
	}
	return least, err
}
