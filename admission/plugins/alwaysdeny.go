package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth"
)

// alwaysDeny refuses everything but what the server itself needs from the start.
func alwaysDeny() admission.Plugin {
	return admission.Plugin{
		Name: "AlwaysDeny", Default: admission.Off, Deprecated: "it has no use but for tests",
		Validate: func(_ context.Context, r *admission.Request) error {
			if r.User.Name == auth.ServerUser {
				return nil
			}
			return errors.New("admission control is denying all modifications")
		},
	}
}
