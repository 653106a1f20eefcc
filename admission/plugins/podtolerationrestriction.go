package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// Tolerations configures the plugin PodTolerationRestriction for namespaces without its annotations: Default
// is added to pods, Whitelist is the tolerations that they may have. An empty Whitelist allows all.
type Tolerations struct {
	Default   []map[string]any `json:"default,omitempty"`
	Whitelist []map[string]any `json:"whitelist,omitempty"`
}

// podTolerationRestriction merges the default tolerations of a namespace into its new pods, and refuses
// tolerations that are not on its whitelist.
func podTolerationRestriction() admission.Plugin {
	return admission.Plugin{
		Name: "PodTolerationRestriction", Default: admission.Off,
		Config:      Tolerations{},
		ConfigKinds: []meta.GroupVersionKind{{Group: wellknown.GroupTolerations, Version: "v1alpha1", Kind: "Configuration"}},
		Rules:       on("", []string{"pods"}, admission.Create, admission.Update),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			config := env.Config.(Tolerations)
			defaults, err := config.read(config.Default)
			if err != nil {
				return err
			}
			whitelist, err := config.read(config.Whitelist)
			if err != nil {
				return err
			}
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				if r.Old != nil {
					return nil
				}
				given, err := namespaceTolerations(ctx, r, wellknown.DefaultTolerations, defaults)
				if err != nil {
					return err
				}
				spec := meta.NewObject(r.Object.Map("spec"))
				if len(given) > 0 {
					podspec.MergeTolerations(spec, given...)
				}
				if podspec.QoS(podspec.Shares(spec.Tree())) != "BestEffort" {
					podspec.MergeTolerations(spec, meta.NewObject(map[string]any{"key": env.Wire(wellknown.TaintMemoryPressure), "operator": "Exists", "effect": "NoSchedule"}))
				}
				return nil
			}
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				allowed, err := namespaceTolerations(ctx, r, wellknown.AllowedTolerations, whitelist)
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

// namespaceTolerations returns the tolerations in an annotation of the namespace, or fallback if it is
// missing. An empty annotation is an empty list.
func namespaceTolerations(ctx context.Context, r *admission.Request, annotation string, fallback []*meta.Object) ([]*meta.Object, error) {
	namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
	if err != nil {
		return nil, err
	}
	switch text, found := namespace.Annotations()[r.Server.Wire(annotation)]; {
	case !found:
		return fallback, nil
	case text == "":
		return nil, nil
	default:
		list, err := tolerationsIn([]byte(text))
		if err != nil {
			err = fmt.Errorf("annotation %s of namespace %s: %w", r.Server.Wire(annotation), r.Namespace, err)
		}
		return list, err
	}
}

// read converts tolerations to objects, by way of JSON, so that integers have the type that they have in a
// request.
func (Tolerations) read(list []map[string]any) ([]*meta.Object, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return tolerationsIn(text)
}

// tolerationsIn parses a JSON list of tolerations.
func tolerationsIn(text []byte) (list []*meta.Object, err error) {
	tree, err := meta.ParseJSON(text)
	if err != nil || tree == nil {
		return nil, err
	}
	items, ok := tree.([]any)
	for _, item := range items {
		fields, is := item.(map[string]any)
		list, ok = append(list, meta.NewObject(fields)), ok && is
	}
	if !ok {
		return nil, errors.New("not a list of tolerations")
	}
	return list, nil
}
