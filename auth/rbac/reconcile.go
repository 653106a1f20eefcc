package rbac

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Reconcile creates the default roles and bindings, and restores the rules and
// subjects that were removed from them. It keeps additions. Call it at each start.
//
// Reconcile skips objects whose autoupdate annotation is "false", kinds that the
// server does not serve, and objects that cannot be read or whose namespace cannot
// be read; after such an object is deleted, the next call creates it again. If an
// object fails, Reconcile continues; the error joins all failures.
func Reconcile(ctx context.Context, client client.Client, p names.Profile) error {
	list, bindings := defaults(p)
	group := p.Group(wellknown.GroupRBAC)
	var failed []error
	for _, d := range list {
		r := meta.GroupResource{Group: group, Resource: clusterRoles}
		if d.namespace != "" {
			r.Resource = roles
		}
		if err := restore(ctx, client, p, r, d.object(p), restoreRole); err != nil {
			failed = append(failed, fmt.Errorf("default role %s: %w", d.name, err))
		}
	}
	for _, d := range bindings {
		r := meta.GroupResource{Group: group, Resource: clusterRoleBindings}
		if d.namespace != "" {
			r.Resource = roleBindings
		}
		if err := restoreBinding(ctx, client, p, r, d.object(p)); err != nil {
			failed = append(failed, fmt.Errorf("default binding %s: %w", d.name, err))
		}
	}
	return errors.Join(failed...)
}

// restore creates want. If the object exists, restore adds the missing labels and
// annotations, and calls merge to add the missing rest of want to have.
func restore(ctx context.Context, c client.Client, p names.Profile, r meta.GroupResource, want *meta.Object, merge func(have, want *meta.Object)) error {
	key := meta.Key{Namespace: want.Namespace(), Name: want.Name()}
	if key.Namespace != "" {
		if _, err := c.Get(ctx, meta.GroupResource{Resource: "namespaces"}, meta.Key{Name: key.Namespace}); unreadable(err) {
			return nil
		}
	}
	_, err := c.Create(ctx, r, want.Clone())
	if unreadable(err) || unserved(err) {
		return nil
	}
	if !meta.IsAlreadyExists(err) {
		return err
	}
	_, err = c.Update(ctx, r, key, "", func(have *meta.Object) error {
		if autoupdateOff(have, p) {
			return nil
		}
		for _, field := range []string{"labels", "annotations"} {
			for k, v := range want.Map("metadata", field) {
				if _, ok := have.Get("metadata", field, k); !ok {
					have.Set(v, "metadata", field, k)
				}
			}
		}
		merge(have, want)
		return nil
	})
	return err
}

func unreadable(err error) bool {
	var e *client.UnreadableError
	return errors.As(err, &e)
}

// unserved reports whether err is NotFound for the kind, not for an object: its
// details then name no kind.
func unserved(err error) bool {
	var s *meta.Status
	return errors.As(err, &s) && s.Reason == meta.ReasonNotFound && (s.Details == nil || s.Details.Kind == "")
}

// autoupdateOff reports whether the object's annotation disables Reconcile.
func autoupdateOff(o *meta.Object, p names.Profile) bool {
	return o.Annotation(p.Wire(wellknown.RBACAutoupdate)) == "false"
}

// restoreRole adds the selectors or rules of want that have lacks. It compares
// rules by the rights that they permit, not literally.
func restoreRole(have, want *meta.Object) {
	if selectors := want.List("aggregationRule", "clusterRoleSelectors"); len(selectors) > 0 {
		there := have.List("aggregationRule", "clusterRoleSelectors")
		if all := union(there, selectors); len(all) > len(there) {
			have.Set(all, "aggregationRule", "clusterRoleSelectors")
		}
		return
	}
	missing, _ := uncovered(rulesOf(have), rulesOf(want))
	if len(missing) > 0 {
		have.Tree()["rules"] = append(have.List("rules"), rulesTree(compact(missing))...)
	}
}

// compact merges rules that differ only in their verbs.
func compact(rules []rule) []rule {
	var out []rule
	for _, r := range rules {
		joined := false
		for i := range out {
			o := out[i]
			o.Verbs = r.Verbs
			if o.covers(&r) && r.covers(&o) {
				out[i].Verbs = append(out[i].Verbs, r.Verbs...)
				joined = true
				break
			}
		}
		if !joined {
			out = append(out, r)
		}
	}
	return out
}

// restoreBinding is restore for bindings. If the binding refers to another role, it
// deletes and recreates the binding, allowReason a roleRef is immutable.
func restoreBinding(ctx context.Context, c client.Client, p names.Profile, r meta.GroupResource, want *meta.Object) error {
	key := meta.Key{Namespace: want.Namespace(), Name: want.Name()}
	have, err := c.Get(ctx, r, key)
	if err == nil && !autoupdateOff(have, p) && !meta.Equal(have.Map("roleRef"), want.Map("roleRef")) {
		if err := c.Delete(ctx, r, key, registry.DeleteOptions{UID: have.UID()}); err != nil && !meta.IsNotFound(err) {
			return err
		}
	}
	return restore(ctx, c, p, r, want, func(have, want *meta.Object) {
		there := have.List("subjects")
		if all := union(there, want.List("subjects")); len(all) > len(there) {
			have.Tree()["subjects"] = all
		}
	})
}

// union returns a copy of a with the elements of b that a lacks appended.
func union(a, b []any) []any {
	out := append([]any(nil), a...)
	for _, v := range b {
		found := false
		for _, have := range out {
			found = found || meta.Equal(have, v)
		}
		if !found {
			out = append(out, v)
		}
	}
	return out
}
