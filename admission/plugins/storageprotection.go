package plugins

import (
	"context"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/internal/wellknown"
)

// storageProtection adds finalizers to new claims, volumes and volume attributes classes that keep them while
// they are in use. Controllers of the server remove them.
func storageProtection() admission.Plugin {
	return admission.Plugin{
		Name: "StorageObjectInUseProtection",
		Rules: slices.Concat(
			on("", []string{"persistentvolumeclaims", "persistentvolumes"}, admission.Create),
			on(wellknown.GroupStorage, []string{"volumeattributesclasses"}, admission.Create)),
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			finalizers := map[string]string{
				"persistentvolumeclaims":  env.Names.Wire(wellknown.ClaimProtection),
				"persistentvolumes":       env.Names.Wire(wellknown.VolumeProtection),
				"volumeattributesclasses": env.Names.Wire(wellknown.ClassProtection),
			}
			p.Mutate = func(_ context.Context, r *admission.Request) error {
				finalizer, have := finalizers[r.Resource.Resource], r.Object.Finalizers()
				if !slices.Contains(have, finalizer) {
					r.Object.SetFinalizers(append(have, finalizer))
				}
				return nil
			}
			return nil
		},
	}
}
