package plugins

import (
	"context"

	"orch.io/controlplane/admission"
)

// alwaysAdmit refuses nothing. It is there for those who name it.
func alwaysAdmit() admission.Plugin {
	return admission.Plugin{
		Name: "AlwaysAdmit", Default: admission.Off, Deprecated: "it does nothing",
		Validate: func(context.Context, *admission.Request) error { return nil },
	}
}
