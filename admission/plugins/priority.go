package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// priority sets the priority and the preemption policy of new pods from their PriorityClass, refuses a second default
// class, and refuses the deletion of system classes. Updates of pods keep the values.
func priority() admission.Plugin {
	return admission.Plugin{
		Name: "Priority",
		Rules: append(on("", []string{"pods"}, admission.Create, admission.Update),
			on(wellknown.GroupScheduling, []string{"priorityclasses"}, admission.Create, admission.Update, admission.Delete)...),
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
				if strings.HasPrefix(r.Name, "system-") { // validation allows this prefix for system classes only
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

// prioritize fills in the values of the pod's class, and refuses a pod that has other values.
func prioritize(ctx context.Context, r *admission.Request) error {
	name := r.Object.String("spec", "priorityClassName")
	class, err := classNamed(ctx, r, name)
	switch {
	case err != nil:
		return err
	case class == nil && name != "":
		if !r.Server.Serves(wellknown.GroupScheduling, "priorityclasses") {
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
	if set := r.Object.String("spec", "preemptionPolicy"); set != "" && set != preemption {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
			set, preemption)
	}
	r.Object.Set(value, "spec", "priority")
	r.Object.Set(preemption, "spec", "preemptionPolicy")
	return nil
}

// classNamed returns the class with the name, or the default class if the name is empty. It returns nil if the class
// does not exist.
func classNamed(ctx context.Context, r *admission.Request, name string) (*meta.Object, error) {
	if name == "" {
		return defaultPriority(ctx, r)
	}
	return r.Server.Find(ctx, wellknown.GroupScheduling, "priorityclasses", meta.Key{Name: name})
}

// defaultPriority returns the default class, or nil if no class is the default. If several classes were made the
// default concurrently, it returns the class with the least value.
func defaultPriority(ctx context.Context, r *admission.Request) (least *meta.Object, err error) {
	classes, err := r.Server.List(ctx, wellknown.GroupScheduling, "priorityclasses", "")
	for _, class := range classes {
		if class.Bool("globalDefault") && (least == nil || class.Int("value") < least.Int("value")) {
			least = class
		}
	}
	return least, err
}
