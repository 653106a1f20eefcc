package plugins

import (
	"context"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// deviceAdminAccess refuses claims with admin access, which shares devices that are in use, unless their
// namespace has the label that permits it. The validation of the kinds cannot check that, because it does not
// see the namespace.
func deviceAdminAccess() admission.Plugin {
	return admission.Plugin{
		Name: "DeviceAdminAccess", Default: admission.Required,
		Rules: slices.Concat(
			on(wellknown.GroupDevices, []string{"resourceclaims", "resourceclaimtemplates"}, admission.Create),
			on(wellknown.GroupDevices, []string{"resourceclaims/status"}, admission.Update)),
		Validate: func(ctx context.Context, r *admission.Request) error {
			fields := adminAccess(r)
			if len(fields) == 0 {
				return nil
			}
			namespace, err := r.Server.Find(ctx, "", "namespaces", meta.Key{Name: r.Namespace})
			if err != nil {
				return err
			}
			label := r.Server.Wire(wellknown.DeviceAdminAccess)
			if namespace.Labels()[label] == "true" {
				return nil
			}
			var f check.Violations
			for _, at := range fields {
				f.Forbidden(at, "admin access to devices requires the `"+label+": true` label on the containing namespace")
			}
			return meta.Invalid(r.Kind.GroupKind(), r.Name, f)
		},
	}
}

// adminAccess returns the paths of the fields that request admin access or, in a new allocation, grant it.
func adminAccess(r *admission.Request) (fields []*check.Path) {
	if r.Subresource == "status" {
		if r.Old.Map("status", "allocation") != nil {
			return nil // an allocation does not change
		}
		for i, result := range r.Object.Objects("status", "allocation", "devices", "results") {
			if result.Bool("adminAccess") {
				fields = append(fields, check.At("status", "allocation", "devices", "results").Index(i).Field("adminAccess"))
			}
		}
		return fields
	}
	path := []string{"spec", "devices", "requests"}
	if r.Resource.Resource == "resourceclaimtemplates" {
		path = append([]string{"spec"}, path...)
	}
	for i, request := range r.Object.Objects(path...) {
		if request.Bool("exactly", "adminAccess") {
			at := check.At("spec", "devices", "requests") // The reference reports this path for claims and for templates.
			fields = append(fields, at.Index(i).Field("adminAccess"))
		}
	}
	return fields
}
