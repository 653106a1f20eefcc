package plugins

import (
	"context"
	"slices"

	"orch.io/controlplane/admission"
)

// denyServiceExternalIPs refuses new external addresses of a service, which would divert the traffic to these
// addresses to the service. Addresses that the service already had may stay.
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
