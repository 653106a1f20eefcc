package policy

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/wellknown"
)

// policies has the policies of a plugin in a server. Its methods are safe for concurrent use.
type policies struct {
	env    admission.PluginContext
	log    *slog.Logger
	kind   meta.GroupResource
	audit  string // key of the audit annotation for validation failures
	counts *counts
	index  *client.Index[*table]
	bound  atomic.Pointer[[]bound]
}

// table has all policies and bindings by name.
type table struct {
	policies map[string]*policy
	bindings map[string]*binding
}

// bound is a policy that has bindings, sorted by name.
type bound struct {
	*policy
	by []*binding
}

// open returns the policies of a resource, with an index that follows the changes of the policies and their bindings.
func open(env admission.PluginContext, resource string, counts *counts) *policies {
	s := &policies{env: env, log: env.Log, audit: env.Names.Wire(wellknown.AuditPolicyFailure), counts: counts}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	group := env.Names.Group(wellknown.GroupRegistration)
	kind := meta.GroupResource{Group: group, Resource: resource}
	s.kind = kind
	bindings := meta.GroupResource{Group: group, Resource: strings.TrimSuffix(resource, "ies") + "ybindings"}
	s.bound.Store(&[]bound{})
	s.index = client.NewIndex(env.Client, []meta.GroupResource{kind, bindings},
		func() *table { return &table{map[string]*policy{}, map[string]*binding{}} },
		func(t *table, e client.Event) {
			switch {
			case e.Resource != kind && e.Object == nil:
				delete(t.bindings, e.Key.Name)
			case e.Resource != kind:
				t.bindings[e.Key.Name] = bind(e.Object)
			case e.Object == nil:
				delete(t.policies, e.Key.Name)
			case e.Old == nil || !meta.Equal(e.Old.Map("spec"), e.Object.Map("spec")) || t.policies[e.Key.Name] == nil:
				t.policies[e.Key.Name] = compile(e.Object, env.Names)
			}
		})
	s.index.Publish(func(t *table) {
		list := t.bound()
		counts.show(list)
		s.bound.Store(&list)
	})
	metrics.For(env.Metrics).Before(s.index.Update)
	return s
}

func (s *policies) close() {
	s.index.Close()
	s.counts.show(nil)
}

// bound returns the policies that have bindings, sorted by name.
func (t *table) bound() (list []bound) {
	for _, p := range t.policies {
		b := bound{policy: p}
		for _, by := range t.bindings {
			if by.policy == p.name {
				b.by = append(b.by, by)
			}
		}
		if len(b.by) > 0 {
			slices.SortFunc(b.by, func(a, b *binding) int { return strings.Compare(a.name, b.name) })
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b bound) int { return strings.Compare(a.name, b.name) })
	return list
}
