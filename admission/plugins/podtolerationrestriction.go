package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// Tolerations configures the plugin PodTolerationRestriction for namespaces without its
// annotations: what their pods get, and what pods may have; of neither, nothing is said.
type Tolerations struct {
	Default   []map[string]any `json:"default,omitempty"`
	Whitelist []map[string]any `json:"whitelist,omitempty"`
}

// podTolerationRestriction merges the tolerations of a namespace into its pods, and lets
// them have no others than those on its list.
func podTolerationRestriction() admission.Plugin {
	return admission.Plugin{
		Name: "PodTolerationRestriction", Default: admission.Off,
		Config:      Tolerations{},
		ConfigKinds: []meta.GroupVersionKind{{Group: names.GroupTolerations, Version: "v1alpha1", Kind: "Configuration"}},
		Rules:       on("", []string{"pods"}, admission.Create, admission.Update),
		Setup: func(p *admission.Plugin, env admission.Env) error {
			config := env.Config.(Tolerations)
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				if r.Old != nil {
					return nil
				}
				defaults, err := namespaceTolerations(ctx, r, names.DefaultTolerations, config.Default)
				if err != nil {
					return err
				}
				spec := meta.NewObject(r.Object.Map("spec"))
				for _, t := range defaults {
					podspec.Tolerate(spec, t.Clone().Tree())
				}
				if podspec.QoS(podspec.Shares(spec.Tree())) != "BestEffort" {
					podspec.Tolerate(spec, map[string]any{"key": env.Wire(names.TaintMemoryPressure), "operator": "Exists", "effect": "NoSchedule"})
				}
				return nil
			}
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				if r.Old != nil && meta.Equal(r.Old.List("spec", "tolerations"), r.Object.List("spec", "tolerations")) {
					return nil
				}
				allowed, err := namespaceTolerations(ctx, r, names.AllowedTolerations, config.Whitelist)
				if err != nil || len(allowed) == 0 {
					return err
				}
				for _, t := range r.Object.Objects("spec", "tolerations") {
					if !slices.ContainsFunc(allowed, func(by *meta.Object) bool { return podspec.Covers(by, t) }) {
						return errors.New("pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist")
					}
				}
				return nil
			}
			return nil
		},
	}
}

// namespaceTolerations returns the tolerations in an annotation of a namespace, or others
// if it has none.
func namespaceTolerations(ctx context.Context, r *admission.Request, annotation string, otherwise []map[string]any) (list []*meta.Object, err error) {
	namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
	if err != nil {
		return nil, err
	}
	if text := namespace.Annotation(r.Server.Wire(annotation)); text != "" {
		otherwise = nil
		if err := json.Unmarshal([]byte(text), &otherwise); err != nil {
			return nil, fmt.Errorf("annotation %s of namespace %s: %w", r.Server.Wire(annotation), r.Namespace, err)
		}
	}
	for _, t := range otherwise {
		list = append(list, meta.NewObject(t))
	}
	return list, nil
}
