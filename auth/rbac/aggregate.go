package rbac

import (
	"context"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
)

// Aggregator returns a controller that sets the rules of each ClusterRole with an
// aggregationRule to the union of the rules of the ClusterRoles that its selectors
// match.
func Aggregator(c client.Client, p names.Profile) client.Controller {
	g := &aggregator{c, p}
	return client.Controller{
		Name:     "clusterrole-aggregation",
		Types:    []meta.GroupResource{g.resource()},
		MapEvent: func(client.Event) []string { return []string{"all"} },
		Reconcile: func(ctx context.Context, _ client.Client, _ string) (time.Duration, error) {
			ctx = actor.Take(ctx)
			err := g.reconcile(ctx)
			if meta.IsNotFound(err) || meta.IsConflict(err) {
				return 0, nil
			}
			return 0, err
		},
	}
}

type aggregator struct {
	client client.Client
	names  names.Profile
}

func (g *aggregator) resource() meta.GroupResource {
	return meta.GroupResource{Group: g.names.Group(wellknown.GroupRBAC), Resource: clusterRoles}
}

// reconcile updates the rules of all aggregated roles. An aggregated role can be
// selected by another role, so reconcile repeats until nothing changes, at most
// as many times as there are roles.
func (g *aggregator) reconcile(ctx context.Context) error {
	list, err := g.client.List(ctx, g.resource(), "")
	if err != nil {
		return err
	}
	sortByName(list)
	for range list {
		changed := false
		for i, o := range list {
			if !aggregates(o) {
				continue
			}
			rules := aggregated(o, list)
			if sameRules(o, rules) {
				continue
			}
			stored, err := g.client.Update(ctx, g.resource(), meta.Key{Name: o.Name()}, "", func(live *meta.Object) error {
				live.Tree()["rules"] = rules
				return nil
			})
			if meta.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			list[i], changed = stored, true
		}
		if !changed {
			break
		}
	}
	return nil
}

// aggregated returns the rules of the other roles in list that the selectors of o
// match, without duplicates. list is sorted by name, so the result is stable.
func aggregated(o *meta.Object, list []*meta.Object) []any {
	var selectors []*meta.Object
	for _, s := range o.List("aggregationRule", "clusterRoleSelectors") {
		if m, ok := s.(map[string]any); ok {
			selectors = append(selectors, meta.NewObject(m))
		}
	}
	var rules []any
	for _, part := range list {
		if part.Name() == o.Name() {
			continue
		}
		labels := part.Labels()
		if slices.ContainsFunc(selectors, func(s *meta.Object) bool { return selects(s, labels) }) {
			rules = union(rules, part.List("rules"))
		}
	}
	return rules
}

func sameRules(o *meta.Object, rules []any) bool {
	have := o.List("rules")
	return len(have) == len(rules) && (len(rules) == 0 || meta.Equal(have, rules))
}

// selects evaluates a label selector. A malformed selector selects nothing.
func selects(s *meta.Object, labels map[string]string) bool {
	for k, v := range s.Map("matchLabels") {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for _, e := range s.List("matchExpressions") {
		m, ok := e.(map[string]any)
		if !ok || !requirementHolds(meta.NewObject(m), labels) {
			return false
		}
	}
	return true
}

// requirementHolds evaluates an expression of matchExpressions.
func requirementHolds(e *meta.Object, labels map[string]string) bool {
	have, ok := labels[e.String("key")]
	in := ok && slices.Contains(e.Strings("values"), have)
	switch e.String("operator") {
	case "In":
		return in
	case "NotIn":
		return !in
	case "Exists":
		return ok
	case "DoesNotExist":
		return !ok
	}
	return false
}

func sortByName(list []*meta.Object) {
	slices.SortFunc(list, func(a, b *meta.Object) int { return strings.Compare(a.Name(), b.Name()) })
}
