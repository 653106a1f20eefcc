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

// NodeSelectors configures the plugin PodNodeSelector. Selectors maps a namespace to the node labels that its
// pods may select, as "key=value,key=value". The key clusterDefaultNodeSelector has the labels that are added
// to pods of namespaces without the annotation.
type NodeSelectors struct {
	Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
}

const clusterDefault = "clusterDefaultNodeSelector"

// podNodeSelector adds the node selector of the namespace to new pods, and refuses pods whose selector conflicts
// with it.
func podNodeSelector() admission.Plugin {
	return admission.Plugin{
		Name: "PodNodeSelector", Default: admission.Off,
		Config: NodeSelectors{},
		Rules:  on("", []string{"pods"}, admission.Create),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			selectors := map[string]map[string]string{}
			for namespace, text := range env.Config.(NodeSelectors).Selectors {
				labels, err := labelsIn(text)
				if err != nil {
					return fmt.Errorf("%s: %w", namespace, err)
				}
				selectors[namespace] = labels
			}
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				labels, err := namespaceNodes(ctx, r, selectors[clusterDefault])
				if err != nil {
					return err
				}
				for key, v := range labels {
					if value, set := r.Object.Get("spec", "nodeSelector", key); set && value != v {
						return errors.New("pod node label selector conflicts with its namespace node label selector")
					}
					r.Object.Set(v, "spec", "nodeSelector", key)
				}
				return nil
			}
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				labels, err := namespaceNodes(ctx, r, selectors[clusterDefault])
				if err != nil {
					return err
				}
				for key, v := range labels {
					if r.Object.String("spec", "nodeSelector", key) != v {
						return errors.New("pod node label selector conflicts with its namespace node label selector")
					}
				}
				allowed, bound := selectors[r.Namespace]
				for key := range r.Object.Map("spec", "nodeSelector") {
					if v, ok := allowed[key]; bound && len(allowed) > 0 && (!ok || v != r.Object.String("spec", "nodeSelector", key)) {
						return errors.New("pod node label selector labels conflict with its namespace whitelist")
					}
				}
				return nil
			}
			return nil
		},
	}
}

// namespaceNodes returns the node labels in the annotation of the namespace, or defaults if it has no
// annotation.
func namespaceNodes(ctx context.Context, r *admission.Request, defaults map[string]string) (map[string]string, error) {
	namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
	if err != nil {
		return nil, err
	}
	text, found := namespace.Annotations()[r.Server.Wire(wellknown.NodeSelector)]
	if !found {
		return defaults, nil
	}
	return labelsIn(text)
}

// labelsIn parses labels of the form "key=value,key=value".
func labelsIn(text string) (map[string]string, error) {
	labels := map[string]string{}
	if strings.TrimSpace(text) == "" {
		return labels, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || len(meta.CheckQualifiedName(key)) > 0 || len(meta.CheckLabelValue(value)) > 0 {
			return nil, fmt.Errorf("invalid selector: %q", text)
		}
		labels[key] = value
	}
	return labels, nil
}
