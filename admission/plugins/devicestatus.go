package plugins

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// The prefixes of the verbs on resourceclaims/driver, followed by the verb of the request: onItsNode is for
// service accounts on the node of the devices, onAnyNode for all users.
const (
	onItsNode = "associated-node:"
	onAnyNode = "arbitrary-node:"
)

// deviceStatusAccess separates the writers of the status of a ResourceClaim: schedulers write the allocation
// and reservedFor, drivers write the state of their own devices. In addition to the right to the status it
// requires a right to resourceclaims/binding for the former and to resourceclaims/driver, by the name of the
// driver, for the latter.
func deviceStatusAccess() admission.Plugin {
	return admission.Plugin{
		Name: "DeviceStatusAccess", Default: admission.Required,
		Rules: []admission.Rule{{
			Operations: []admission.Operation{admission.Update}, Groups: []string{wellknown.GroupDevices}, Resources: []string{"resourceclaims/status"},
		}},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			nodeName := env.Names.Wire(wellknown.ExtraNodeName)
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				f := bindingRight(ctx, env.Authorizer, r)
				f = append(f, driverRights(ctx, env.Authorizer, r, nodeName)...)
				if len(f) == 0 {
					return nil
				}
				return meta.Invalid(r.Kind.GroupKind(), r.Name, f)
			}
			return nil
		},
	}
}

func bindingRight(ctx context.Context, a auth.Authorizer, r *admission.Request) (f check.Violations) {
	now, was := r.Object.Map("status"), r.Old.Map("status")
	if meta.Equal(now["allocation"], was["allocation"]) && meta.Equal(r.Object.List("status", "reservedFor"), r.Old.List("status", "reservedFor")) {
		return nil
	}
	verb := r.Verb
	d, _, _ := a.Authorize(ctx, auth.Attributes{
		User: r.User, Verb: verb, Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, Subresource: "binding",
	})
	if d != auth.Allow {
		f.Forbidden(check.At("status", "allocation"), fmt.Sprintf("changing status.allocation or status.reservedFor requires the verb %q on resourceclaims/binding in all namespaces", verb))
	}
	return f
}

func driverRights(ctx context.Context, a auth.Authorizer, r *admission.Request, nodeName string) (f check.Violations) {
	if r.Object.Map("status", "allocation") == nil {
		return nil // deallocation removes the state of the devices
	}
	verbs := []string{onAnyNode + r.Verb}
	if node := r.User.Extra[nodeName]; len(node) == 1 && node[0] != "" && node[0] == nodeOfDevices(r.Object) {
		if _, _, ok := auth.SplitServiceAccount(r.User.Name); ok {
			verbs = append([]string{onItsNode + r.Verb}, verbs...)
		}
	}
	for _, driver := range changedDrivers(r.Object, r.Old) {
		if !slices.ContainsFunc(verbs, func(verb string) bool {
			d, _, _ := a.Authorize(ctx, auth.Attributes{
				User: r.User, Verb: verb, Group: r.Resource.Group, Version: r.Resource.Version,
				Resource: r.Resource.Resource, Subresource: "driver", Namespace: r.Namespace, Name: driver,
			})
			return d == auth.Allow
		}) {
			f.Forbidden(check.At("status", "devices"), fmt.Sprintf("changing status.devices requires one of the verbs %q on resourceclaims/driver %q", verbs, driver))
		}
	}
	return f
}

// changedDrivers returns the names, sorted, of the drivers that have a device with a different state.
func changedDrivers(now, was *meta.Object) []string {
	type device struct{ driver, pool, name, share string }
	devices := func(o *meta.Object) map[device]*meta.Object {
		all := map[device]*meta.Object{}
		for _, d := range o.Objects("status", "devices") {
			all[device{d.String("driver"), d.String("pool"), d.String("device"), d.String("shareID")}] = d
		}
		return all
	}
	before, drivers := devices(was), map[string]bool{}
	for key, d := range devices(now) {
		old, ok := before[key]
		if !ok || !meta.Equal(d.Tree(), old.Tree()) {
			drivers[key.driver] = true
		}
		delete(before, key)
	}
	for key := range before {
		drivers[key.driver] = true
	}
	return slices.Sorted(maps.Keys(drivers))
}

// nodeOfDevices returns the name of the node that the allocated devices belong to, empty if other nodes can
// use them.
func nodeOfDevices(claim *meta.Object) string {
	terms := claim.Objects("status", "allocation", "nodeSelector", "nodeSelectorTerms")
	if len(terms) != 1 || len(terms[0].List("matchExpressions")) > 0 {
		return ""
	}
	fields := terms[0].Objects("matchFields")
	if len(fields) != 1 || fields[0].String("key") != "metadata.name" || fields[0].String("operator") != "In" {
		return ""
	}
	values := fields[0].List("values")
	if len(values) != 1 {
		return ""
	}
	name, _ := values[0].(string)
	return name
}
