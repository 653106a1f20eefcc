package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// TolerationSeconds configures the plugin DefaultTolerationSeconds: how many seconds a pod stays on a node
// that is not ready or not reachable, if the pod has no toleration of its own for that taint. Both are 300 by
// default.
type TolerationSeconds struct {
	NotReady    int64 `json:"notReady"`
	Unreachable int64 `json:"unreachable"`
}

// defaultTolerationSeconds adds tolerations that let pods stay for some time on a node that failed.
func defaultTolerationSeconds() admission.Plugin {
	return admission.Plugin{
		Name:   "DefaultTolerationSeconds",
		Config: TolerationSeconds{NotReady: 300, Unreachable: 300},
		Rules:  on("", []string{"pods"}, admission.Create, admission.Update),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			seconds := env.Config.(TolerationSeconds)
			if seconds.NotReady < 0 || seconds.Unreachable < 0 {
				return errors.New("notReady and unreachable must not be negative")
			}
			p.Mutate = func(_ context.Context, r *admission.Request) error {
				spec := meta.NewObject(r.Object.Map("spec"))
				for _, of := range []struct {
					taint   string
					seconds int64
				}{{wellknown.TaintNotReady, seconds.NotReady}, {wellknown.TaintUnreachable, seconds.Unreachable}} {
					key := env.Wire(of.taint)
					if !hasTolerationFor(spec, key, "NoExecute") {
						podspec.Tolerate(spec, map[string]any{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": of.seconds})
					}
				}
				return nil
			}
			return nil
		},
	}
}

// hasTolerationFor reports whether a pod has a toleration that selects the taint; an empty key or effect
// selects all.
func hasTolerationFor(spec *meta.Object, key, effect string) bool {
	for _, t := range spec.Objects("tolerations") {
		if k, e := t.String("key"), t.String("effect"); (k == key || k == "") && (e == effect || e == "") {
			return true
		}
	}
	return false
}
