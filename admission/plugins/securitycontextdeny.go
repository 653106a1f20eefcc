package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// securityContextDeny refuses pods that set users, groups or SELinux labels.
func securityContextDeny() admission.Plugin {
	return admission.Plugin{
		Name: "SecurityContextDeny", Default: admission.Off,
		Rules: on("", []string{"pods", "pods/ephemeralcontainers"}, admission.Create, admission.Update),
		Validate: func(_ context.Context, r *admission.Request) error {
			if r.Old != nil && meta.Equal(r.Old.Map("spec"), r.Object.Map("spec")) {
				return nil
			}
			spec := meta.NewObject(r.Object.Map("spec"))
			for _, of := range []struct{ field, name string }{
				{"supplementalGroups", "SupplementalGroups"}, {"seLinuxOptions", "SELinuxOptions"}, {"runAsUser", "RunAsUser"}, {"fsGroup", "FSGroup"},
			} {
				if _, set := spec.Get("securityContext", of.field); set {
					return errors.New("pod.Spec.SecurityContext." + of.name + " is forbidden")
				}
			}
			for _, c := range podspec.Of(spec) {
				for _, of := range []struct{ field, name string }{{"seLinuxOptions", "SELinuxOptions"}, {"runAsUser", "RunAsUser"}} {
					if _, set := c.Get("securityContext", of.field); set {
						return errors.New("SecurityContext." + of.name + " is forbidden")
					}
				}
			}
			return nil
		},
	}
}
