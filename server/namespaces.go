package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// builtinLoops are the background loops that every server has.
func (s *Server) builtinLoops() []Loop {
	loops := []Loop{s.namespaceLoop(), garbageLoop(), expiryLoop()}
	if s.definitions.cache != nil {
		loops = append(loops, s.definitionLoop())
	}
	return loops
}

// namespaceLoop empties namespaces that are being deleted, and lets them go
// when nothing is left (conventions, Scope and naming rules, 2). An object that
// was admitted before the deletion began may come after its namespace went:
// that is deleted too.
func (s *Server) namespaceLoop() Loop {
	m := &mortality{terminating: map[string]bool{}, gone: map[string]time.Time{}}
	finalizer := s.names.Wire(names.NamespaceFinalizer)
	return Loop{
		Name: "namespace", Identity: true, Forget: m.forget, Observe: m.observe,
		Reconcile: func(ctx context.Context, cl registry.Client, name string) (time.Duration, error) {
			ns, err := cl.Get(ctx, namespacesResource, meta.Key{Name: name})
			switch _, gone := m.gone[name]; {
			case meta.IsNotFound(err) && gone:
				_, err = deleteContent(ctx, cl, name)
				return 0, err
			case meta.IsNotFound(err), err == nil && !ns.Terminating():
				return 0, nil
			case err != nil:
				return 0, err
			}
			return 0, emptyNamespace(ctx, cl, name, finalizer)
		},
	}
}

// mortality is what the loop knows of namespaces. It changes while nothing is
// reconciled.
type mortality struct {
	terminating map[string]bool
	gone        map[string]time.Time // that went a short time ago
}

// straggle is longer than a write can be on its way.
const straggle = 10 * time.Minute

func (m *mortality) forget() {
	clear(m.terminating)
	clear(m.gone)
}

func (m *mortality) observe(c registry.Change) []string {
	if c.Resource != namespacesResource {
		_, gone := m.gone[c.Key.Namespace]
		if m.terminating[c.Key.Namespace] || gone && c.Old == nil {
			return []string{c.Key.Namespace}
		}
		return nil
	}
	name := c.Key.Name
	delete(m.terminating, name)
	switch {
	case c.Object == nil:
		now := time.Now()
		maps.DeleteFunc(m.gone, func(_ string, at time.Time) bool { return now.Sub(at) > straggle })
		m.gone[name] = now
		return []string{name}
	case c.Object.Terminating():
		m.terminating[name] = true
		return []string{name}
	}
	delete(m.gone, name)
	return nil
}

// emptyNamespace deletes what is in a namespace, and lets the namespace go if
// nothing is left. Objects whose finalizers hold them bring the loop back when
// they go.
func emptyNamespace(ctx context.Context, cl registry.Client, name, finalizer string) error {
	left, err := deleteContent(ctx, cl, name)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return tellRemaining(ctx, cl, name, left)
	}
	_, err = cl.Update(ctx, namespacesResource, meta.Key{Name: name}, "finalize", func(ns *meta.Object) error {
		rest := slices.DeleteFunc(ns.Strings("spec", "finalizers"), func(f string) bool { return f == finalizer })
		ns.Set(anyList(rest), "spec", "finalizers")
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}

// deleteContent deletes the objects in a namespace and returns what stays.
func deleteContent(ctx context.Context, cl registry.Client, name string) (left []remaining, err error) {
	for _, t := range cl.Types() {
		if !t.Namespaced || t.Virtual() {
			continue
		}
		n, err := deleteAll(ctx, cl, t, name)
		if err != nil {
			return nil, fmt.Errorf("deleting %s in %s: %w", t.GroupResource(), name, err)
		}
		if n.objects > 0 {
			left = append(left, n)
		}
	}
	return left, nil
}

// remaining is what of one type waits for its finalizers.
type remaining struct {
	resource   meta.GroupResource
	objects    int
	finalizers map[string]int
}

func deleteAll(ctx context.Context, cl registry.Client, t *registry.Type, namespace string) (remaining, error) {
	left := remaining{resource: t.GroupResource(), finalizers: map[string]int{}}
	objects, err := cl.List(ctx, t.GroupResource(), namespace)
	if err != nil {
		return left, err
	}
	for _, o := range objects {
		if !o.Terminating() {
			err := cl.Delete(ctx, t.GroupResource(), meta.Key{Namespace: o.Namespace(), Name: o.Name()}, registry.DeleteOptions{Propagation: "Background"})
			if err != nil && !meta.IsNotFound(err) {
				return left, err
			}
		}
	}
	if len(objects) == 0 {
		return left, nil
	}
	if objects, err = cl.List(ctx, t.GroupResource(), namespace); err != nil {
		return left, err
	}
	left.objects = len(objects)
	for _, o := range objects {
		for _, f := range o.Finalizers() {
			left.finalizers[f]++
		}
	}
	return left, nil
}

// tellRemaining writes into the namespace's status what it waits for.
func tellRemaining(ctx context.Context, cl registry.Client, name string, left []remaining) error {
	var content, holders []string
	for _, l := range left {
		content = append(content, fmt.Sprintf("%s has %d resource instances", l.resource, l.objects))
		for f, n := range l.finalizers {
			holders = append(holders, fmt.Sprintf("%s in %d resource instances", f, n))
		}
	}
	slices.Sort(holders)
	_, err := cl.Update(ctx, namespacesResource, meta.Key{Name: name}, "status", func(ns *meta.Object) error {
		setCondition(ns, "NamespaceContentRemaining", "SomeResourcesRemain", fmt.Sprintf("Some resources are remaining: %v", content))
		if len(holders) > 0 {
			setCondition(ns, "NamespaceFinalizersRemaining", "SomeFinalizersRemain", fmt.Sprintf("Some content in the namespace has finalizers remaining: %v", holders))
		}
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}

// setCondition puts a condition with status True into status.conditions; the
// time moves only when the condition was not there.
func setCondition(o *meta.Object, kind, reason, message string) {
	list := slices.Clone(o.List("status", "conditions"))
	c := map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": meta.FormatTime(time.Now())}
	i := slices.IndexFunc(list, func(v any) bool { m, _ := v.(map[string]any); return m["type"] == kind })
	if i < 0 {
		list = append(list, c)
	} else {
		if old, _ := list[i].(map[string]any); old["status"] == "True" {
			c["lastTransitionTime"] = old["lastTransitionTime"]
		}
		list[i] = c
	}
	o.Set(list, "status", "conditions")
}
