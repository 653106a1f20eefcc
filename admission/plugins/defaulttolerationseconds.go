package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// TolerationSeconds says for how many seconds pods that do not say it themselves stay on a
// node that is not ready or that nobody can reach. It configures the plugin
// DefaultTolerationSeconds, whose default is 300 for both.
type TolerationSeconds struct {
	NotReady    int64 `json:"notReady"`
	Unreachable int64 `json:"unreachable"`
}

// defaultTolerationSeconds lets pods stay for some time on a node that failed.
func defaultTolerationSeconds() admission.Plugin {
	return admission.Plugin{
		Name:   "DefaultTolerationSeconds",
		Config: TolerationSeconds{NotReady: 300, Unreachable: 300},
		Rules:  on("", []string{"pods"}, admission.Create, admission.Update),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			seconds := env.Config.(TolerationSeconds)
			if seconds.NotReady < 0 || seconds.Unreachable < 0 {
				return errors.New("the seconds are negative")
			}
			p.Mutate = func(_ context.Context, r *admission.Request) error {
				spec := meta.NewObject(r.Object.Map("spec"))
				for _, of := range []struct {
					taint   string
					seconds int64
				}{{names.TaintNotReady, seconds.NotReady}, {names.TaintUnreachable, seconds.Unreachable}} {
					key := env.Wire(of.taint)
					if !saysOfTaint(spec, key, "NoExecute") {
						podspec.Tolerate(spec, map[string]any{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": of.seconds})
					}
				}
				return nil
			}
			return nil
		},
	}
}

// saysOfTaint reports whether a pod has a toleration that is about a taint.
func saysOfTaint(spec *meta.Object, key, effect string) bool {
	for _, t := range spec.Objects("tolerations") {
		if k, e := t.String("key"), t.String("effect"); (k == key || k == "") && (e == effect || e == "") {
			return true
		}
	}
	return false
}
