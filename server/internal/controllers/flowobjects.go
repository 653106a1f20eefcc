package controllers

import (
	"math/bits"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/flowcontrol"
)

// Limits of a level, whatever its object requests. The queues of a level use memory, and the hash from which a hand
// is dealt has maxHandBits bits.
const (
	maxShares   = 1 << 20
	maxQueues   = 10_000
	maxWaiting  = 10_000
	maxHandBits = 60
)

var distinguishers = map[flowcontrol.Distinguisher]string{flowcontrol.ByUser: "ByUser", flowcontrol.ByNamespace: "ByNamespace"}

// stringList returns a list of strings in the representation of object trees.
func stringList(list []string) []any { return meta.StringList(list) }

// levelObject returns the PriorityLevelConfiguration of a level.
func levelObject(p names.Profile, l flowcontrol.PriorityLevel) *meta.Object {
	spec := map[string]any{"type": "Exempt", "exempt": map[string]any{"nominalConcurrencyShares": int64(0), "lendablePercent": int64(0)}}
	if !l.Exempt {
		response := map[string]any{"type": "Reject"}
		if q := l.Queuing; q != nil {
			response = map[string]any{"type": "Queue", "queuing": map[string]any{
				"queues": int64(q.Queues), "handSize": int64(q.HandSize), "queueLengthLimit": int64(q.QueueLength),
			}}
		}
		limited := map[string]any{"nominalConcurrencyShares": int64(l.Shares), "lendablePercent": int64(l.Lendable), "limitResponse": response}
		if l.Borrowing != nil {
			limited["borrowingLimitPercent"] = int64(*l.Borrowing)
		}
		spec = map[string]any{"type": "Limited", "limited": limited}
	}
	return flowObject(p, "PriorityLevelConfiguration", l.Name, spec)
}

// schemaObject returns the FlowSchema of a schema.
func schemaObject(p names.Profile, s flowcontrol.FlowSchema) *meta.Object {
	spec := map[string]any{"priorityLevelConfiguration": map[string]any{"name": s.Level}, "matchingPrecedence": int64(s.Precedence)}
	if s.Distinguisher != flowcontrol.None {
		spec["distinguisherMethod"] = map[string]any{"type": distinguishers[s.Distinguisher]}
	}
	var rules []any
	for _, r := range s.Rules {
		rule := map[string]any{"subjects": subjectTrees(r.Subjects)}
		var resources, paths []any
		for _, rr := range r.Resources {
			tree := map[string]any{"verbs": stringList(rr.Verbs), "apiGroups": stringList(rr.Groups), "resources": stringList(rr.Resources), "namespaces": stringList(rr.Namespaces)}
			if rr.Cluster {
				tree["clusterScope"] = true
			}
			resources = append(resources, tree)
		}
		for _, pr := range r.Paths {
			paths = append(paths, map[string]any{"verbs": stringList(pr.Verbs), "nonResourceURLs": stringList(pr.Paths)})
		}
		if resources != nil {
			rule["resourceRules"] = resources
		}
		if paths != nil {
			rule["nonResourceRules"] = paths
		}
		rules = append(rules, rule)
	}
	spec["rules"] = rules
	return flowObject(p, "FlowSchema", s.Name, spec)
}

func subjectTrees(list []flowcontrol.Subject) (out []any) {
	for _, s := range list {
		switch {
		case s.User != "":
			out = append(out, map[string]any{"kind": "User", "user": map[string]any{"name": s.User}})
		case s.Group != "":
			out = append(out, map[string]any{"kind": "Group", "group": map[string]any{"name": s.Group}})
		default:
			out = append(out, map[string]any{"kind": "ServiceAccount", "serviceAccount": map[string]any{"namespace": s.Namespace, "name": s.ServiceAccount}})
		}
	}
	return out
}

func flowObject(p names.Profile, kind, name string, spec map[string]any) *meta.Object {
	o := meta.NewObject(map[string]any{"metadata": map[string]any{
		"name": name, "annotations": map[string]any{p.Wire(wellknown.FlowAutoupdate): "true"},
	}, "spec": spec})
	o.SetGVK(meta.GroupVersionKind{Group: p.Group(wellknown.GroupFlowControl), Version: "v1", Kind: kind})
	return o
}

// level returns the level of a PriorityLevelConfiguration, within the limits.
func level(o *meta.Object) flowcontrol.PriorityLevel {
	at := func(path ...string) int { return int(o.Int(append([]string{"spec", "limited"}, path...)...)) }
	l := flowcontrol.PriorityLevel{
		Name: o.Name(), UID: o.UID(), Exempt: o.String("spec", "type") == "Exempt",
		Shares: min(at("nominalConcurrencyShares"), maxShares), Lendable: at("lendablePercent"),
	}
	if v, ok := o.Get("spec", "limited", "borrowingLimitPercent"); ok && v != nil {
		percent := at("borrowingLimitPercent")
		l.Borrowing = &percent
	}
	if o.String("spec", "limited", "limitResponse", "type") == "Queue" {
		of := func(field string) int { return at("limitResponse", "queuing", field) }
		q := &flowcontrol.Queuing{Queues: min(of("queues"), maxQueues), HandSize: of("handSize"), QueueLength: min(of("queueLengthLimit"), maxWaiting)}
		q.HandSize = max(1, min(q.HandSize, q.Queues, maxHandBits/max(1, bits.Len(uint(q.Queues-1)))))
		l.Queuing = q
	}
	return l
}

// schema returns the schema of a FlowSchema.
func schema(o *meta.Object) flowcontrol.FlowSchema {
	s := flowcontrol.FlowSchema{
		Name: o.Name(), UID: o.UID(), Precedence: int(o.Int("spec", "matchingPrecedence")), Level: o.String("spec", "priorityLevelConfiguration", "name"),
	}
	for d, word := range distinguishers {
		if o.String("spec", "distinguisherMethod", "type") == word {
			s.Distinguisher = d
		}
	}
	for _, r := range o.Objects("spec", "rules") {
		var rule flowcontrol.Rule
		for _, sub := range r.Objects("subjects") {
			rule.Subjects = append(rule.Subjects, flowcontrol.Subject{
				User: sub.String("user", "name"), Group: sub.String("group", "name"),
				Namespace: sub.String("serviceAccount", "namespace"), ServiceAccount: sub.String("serviceAccount", "name"),
			})
		}
		for _, rr := range r.Objects("resourceRules") {
			rule.Resources = append(rule.Resources, flowcontrol.ResourceRule{
				Verbs: rr.Strings("verbs"), Groups: rr.Strings("apiGroups"), Resources: rr.Strings("resources"),
				Cluster: rr.Bool("clusterScope"), Namespaces: rr.Strings("namespaces"),
			})
		}
		for _, pr := range r.Objects("nonResourceRules") {
			rule.Paths = append(rule.Paths, flowcontrol.PathRule{Verbs: pr.Strings("verbs"), Paths: pr.Strings("nonResourceURLs")})
		}
		s.Rules = append(s.Rules, rule)
	}
	return s
}
