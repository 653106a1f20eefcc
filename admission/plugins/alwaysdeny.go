package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth"
)

// alwaysDeny refuses every write, except the writes of the server itself, which it needs to start.
func alwaysDeny() admission.Plugin {
	return admission.Plugin{
		Name: "AlwaysDeny", Default: admission.Off, Deprecated: "it is useful for tests only",
		Validate: func(_ context.Context, r *admission.Request) error {
			if r.User.Name == auth.ServerUser {
				return nil
			}
			return errors.New("admission control is denying all modifications")
		},
	}
}
