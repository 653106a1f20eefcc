package core

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// prepareService fits a service to be written: an update need not repeat what
// was allotted, the two forms of the address follow each other, and what a
// former type left behind goes.
func prepareService(w *registry.Change[meta.Object]) {
	obj, old := w.New, w.Old
	if obj.String("spec", "type") == ExternalNameType {
		obj.Delete("spec", "internalTrafficPolicy")
	}
	if old == nil {
		if ip := obj.String("spec", "clusterIP"); ip != "" && len(obj.List("spec", "clusterIPs")) == 0 {
			obj.Set([]any{ip}, "spec", "clusterIPs")
		}
		return
	}
	keepAllotted(obj, old)
	pairAddresses(obj, old)
	dropLeftovers(obj, old)
	if obj.String("spec", "type") != LoadBalancerType {
		obj.Set(map[string]any{}, "status", "loadBalancer")
	}
}

// warnOfService warns of fields that have no meaning for a service.
func warnOfService(w *registry.Change[meta.Object]) []string {
	obj := w.New
	var texts []string
	ignored := func(field, why string) {
		texts = append(texts, "spec."+field+" is ignored when "+why)
	}
	kind := obj.String("spec", "type")
	if obj.String("spec", "clusterIP") == noAddress {
		if len(obj.List("spec", "externalIPs")) > 0 {
			ignored("externalIPs", "spec.clusterIP is \"None\"")
		}
		if obj.String("spec", "sessionAffinity") != "None" {
			ignored("sessionAffinity", "spec.clusterIP is \"None\"")
		}
		if obj.String("spec", "loadBalancerIP") != "" {
			ignored("loadBalancerIP", "spec.clusterIP is \"None\"")
		}
	}
	if kind != ExternalNameType && obj.String("spec", "externalName") != "" {
		ignored("externalName", "spec.type is not \"ExternalName\"")
	}
	if kind == ExternalNameType && len(obj.List("spec", "externalIPs")) > 0 {
		ignored("externalIPs", "spec.type is \"ExternalName\"")
	}
	if kind != ExternalNameType && obj.String("spec", "clusterIP") != noAddress && len(obj.List("spec", "externalIPs")) > 0 {
		texts = append(texts, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if obj.String("spec", "trafficDistribution") == "PreferClose" {
		texts = append(texts, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`)
	}
	return texts
}

// keepAllotted gives an update what was allotted to the service and is left out.
func keepAllotted(obj, old *meta.Object) {
	if addressed(obj) && addressed(old) {
		before := old.String("spec", "clusterIP")
		if before != "" {
			fill(obj, before, "spec", "clusterIP")
		}
		if list := old.List("spec", "clusterIPs"); len(list) > 0 && len(obj.List("spec", "clusterIPs")) == 0 && obj.String("spec", "clusterIP") == before {
			obj.Set(meta.Clone(list), "spec", "clusterIPs")
		}
	}
	if onNodes(obj) && onNodes(old) {
		keepNodePorts(obj, old)
	}
	if n := old.Int("spec", "healthCheckNodePort"); n != 0 && healthChecked(obj) && healthChecked(old) && obj.Int("spec", "healthCheckNodePort") == 0 {
		obj.Set(n, "spec", "healthCheckNodePort")
	}
}

// keepNodePorts gives the ports of a service back the numbers on the nodes that
// they had, by their names.
func keepNodePorts(obj, old *meta.Object) {
	before, used := map[string]int64{}, map[int64]bool{}
	for _, p := range portsOf(old) {
		before[p.String("name")] = p.Int("nodePort")
	}
	for _, p := range portsOf(obj) {
		used[p.Int("nodePort")] = true
	}
	for _, p := range portsOf(obj) {
		n := before[p.String("name")]
		if p.Int("nodePort") == 0 && n != 0 && !used[n] {
			p.Set(n, "nodePort")
			used[n] = true
		}
	}
}

// pairAddresses lets the address and the list of addresses follow each other,
// where a client that knows only one of them changed it.
func pairAddresses(obj, old *meta.Object) {
	ip, before := obj.String("spec", "clusterIP"), old.String("spec", "clusterIP")
	list, was := obj.List("spec", "clusterIPs"), old.List("spec", "clusterIPs")
	switch {
	case len(list) == 0 && len(was) > 0 && ip == before:
		obj.Set(meta.Clone(was), "spec", "clusterIPs")
	case ip == before || len(list) > 0 && !meta.Equal(list, was):
	case ip == "":
		obj.Delete("spec", "clusterIPs")
	default:
		obj.Set([]any{ip}, "spec", "clusterIPs")
	}
}

// dropLeftovers takes out what only the former type of a service had, unless the
// caller changed it, too: then validation speaks of it.
func dropLeftovers(obj, old *meta.Object) {
	drop := func(had, has bool, fields ...string) {
		for _, f := range fields {
			now, _ := obj.Get("spec", f)
			before, _ := old.Get("spec", f)
			if had && !has && meta.Equal(now, before) {
				obj.Delete("spec", f)
			}
		}
	}
	drop(addressed(old), addressed(obj), "ipFamilies", "ipFamilyPolicy")
	if same := sameField(obj, old, "clusterIPs"); same && sameField(obj, old, "clusterIP") {
		drop(addressed(old), addressed(obj), "clusterIP", "clusterIPs")
	}
	if onNodes(old) && !onNodes(obj) && sameNodePorts(obj, old) {
		for _, p := range portsOf(obj) {
			p.Delete("nodePort")
		}
	}
	drop(healthChecked(old), healthChecked(obj), "healthCheckNodePort")
	balanced := func(o *meta.Object) bool { return o.String("spec", "type") == LoadBalancerType }
	drop(balanced(old), balanced(obj), "allocateLoadBalancerNodePorts", "loadBalancerClass")
	drop(outside(old), outside(obj), "externalTrafficPolicy")
}

func sameField(obj, old *meta.Object, field string) bool {
	now, _ := obj.Get("spec", field)
	before, _ := old.Get("spec", field)
	return meta.Equal(now, before)
}

// sameNodePorts reports whether a caller left the numbers on the nodes alone.
func sameNodePorts(obj, old *meta.Object) bool {
	numbers := func(o *meta.Object) map[int64]bool {
		set := map[int64]bool{}
		for _, p := range portsOf(o) {
			if n := p.Int("nodePort"); n != 0 {
				set[n] = true
			}
		}
		return set
	}
	now, before := numbers(obj), numbers(old)
	for n := range now {
		if !before[n] {
			return false
		}
	}
	return len(now) == len(before)
}
