package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// VolumeLabels returns the topology labels of a new PersistentVolume, such as its region and zone, by their
// names on the wire, and no labels for a volume that it does not know. It joins several zones by two
// underscores. It is the configuration of the plugin PersistentVolumeLabel, which needs it because the server
// itself has no cloud provider.
type VolumeLabels func(ctx context.Context, volume *meta.Object) (map[string]string, error)

// persistentVolumeLabel sets topology labels on new volumes, and requires the same topology of the nodes that
// use them.
func persistentVolumeLabel() admission.Plugin {
	return admission.Plugin{
		Name: "PersistentVolumeLabel", Default: admission.Off,
		Rules:  on("", []string{"persistentvolumes"}, admission.Create),
		Config: VolumeLabels(nil),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			find := env.Config.(VolumeLabels)
			if find == nil {
				return errors.New("no cloud provider: configure the plugin with a plugins.VolumeLabels function")
			}
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				labels, err := find(ctx, r.Object)
				if err != nil {
					return fmt.Errorf("error querying volume %s: %w", r.Name, err)
				}
				for key, value := range labels {
					r.Object.Set(value, "metadata", "labels", key)
				}
				requireNodes(r, labels)
				return nil
			}
			return nil
		},
	}
}

// requireNodes adds the labels to the required node affinity of the volume, unless the affinity already has a
// requirement for any of them.
func requireNodes(r *admission.Request, labels map[string]string) {
	zones := []string{r.Server.Wire(wellknown.LabelZone), r.Server.Wire(wellknown.LabelZoneBeta)}
	path := []string{"spec", "nodeAffinity", "required", "nodeSelectorTerms"}
	terms := r.Object.Objects(path...)
	for _, term := range terms {
		for _, of := range term.Objects("matchExpressions") {
			if _, known := labels[of.String("key")]; known {
				return
			}
		}
	}
	if len(labels) == 0 {
		return
	}
	if len(terms) == 0 {
		terms = []*meta.Object{meta.NewObject(map[string]any{})}
	}
	list := make([]any, len(terms))
	for i, term := range terms {
		rules := slices.Clone(term.List("matchExpressions"))
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			values := []string{labels[key]}
			if slices.Contains(zones, key) {
				values = strings.Split(labels[key], "__")
				slices.Sort(values)
			}
			rules = append(rules, map[string]any{"key": key, "operator": "In", "values": meta.StringList(values)})
		}
		term.Set(rules, "matchExpressions")
		list[i] = term.Tree()
	}
	r.Object.Set(list, path...)
}
