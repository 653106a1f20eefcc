package plugins

import (
	"context"
	"slices"

	"orch.io/controlplane/admission"
)

// denyServiceExternalIPs lets services have only those external addresses that they had
// before: whoever names an address gets what others send to it.
func denyServiceExternalIPs() admission.Plugin {
	return admission.Plugin{
		Name: "DenyServiceExternalIPs", Default: admission.Off,
		Rules: on("", []string{"services"}, admission.Create, admission.Update),
		Validate: func(_ context.Context, r *admission.Request) error {
			had := r.Old.Strings("spec", "externalIPs")
			for _, ip := range r.Object.Strings("spec", "externalIPs") {
				if !slices.Contains(had, ip) {
					return refusal([]string{"Use of external IPs is denied by admission control"})
				}
			}
			return nil
		},
	}
}
