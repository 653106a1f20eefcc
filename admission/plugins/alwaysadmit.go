package plugins

import (
	"context"

	"orch.io/controlplane/admission"
)

// alwaysAdmit admits every request. It exists for configurations that name it.
func alwaysAdmit() admission.Plugin {
	return admission.Plugin{
		Name: "AlwaysAdmit", Default: admission.Off, Deprecated: "it does nothing",
		Validate: func(context.Context, *admission.Request) error { return nil },
	}
}
