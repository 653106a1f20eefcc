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
	"orch.io/controlplane/api/names"
)

// VolumeLabels tells the labels of a new PersistentVolume that say where it is, such as its
// region and zone, by their names on the wire; none of one that it does not know. Several
// zones are one value with two underscores between them. It is the configuration of the
// plugin PersistentVolumeLabel: a server itself knows no cloud.
type VolumeLabels func(ctx context.Context, volume *meta.Object) (map[string]string, error)

// persistentVolumeLabel puts on new volumes the labels that say where they are, and keeps
// the pods that use them there.
func persistentVolumeLabel() admission.Plugin {
	return admission.Plugin{
		Name: "PersistentVolumeLabel", Default: admission.Off,
		Rules:  on("", []string{"persistentvolumes"}, admission.Create),
		Config: VolumeLabels(nil),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			find := env.Config.(VolumeLabels)
			if find == nil {
				return errors.New("the server knows no cloud: the program must configure a function that does, a plugins.VolumeLabels")
			}
			p.Mutate = func(ctx context.Context, r *admission.Request) error {
				labels, err := find(ctx, r.Object)
				if err != nil {
					return fmt.Errorf("error querying volume %s: %w", r.Name, err)
				}
				for key, value := range labels {
					r.Object.Set(value, "metadata", "labels", key)
				}
				keepNear(r, labels)
				return nil
			}
			return nil
		},
	}
}

// keepNear adds labels to what a volume requires of nodes, unless it says something of
// them itself.
func keepNear(r *admission.Request, labels map[string]string) {
	zones := []string{r.Server.Wire(names.LabelZone), r.Server.Wire(names.LabelZoneBeta)}
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
