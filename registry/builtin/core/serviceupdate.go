package core

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// prepareService prepares a service for the write: an update keeps allocated values that the request
// omits, the two forms of the address are synchronized, and fields of the old type are removed.
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

// warnOfService returns warnings about fields that have no effect for the service.
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

// keepAllotted copies allocated values of old that the request omits.
func keepAllotted(obj, old *meta.Object) {
	if hasClusterIP(obj) && hasClusterIP(old) {
		before := old.String("spec", "clusterIP")
		if before != "" {
			setDefault(obj, before, "spec", "clusterIP")
		}
		if list := old.List("spec", "clusterIPs"); len(list) > 0 && len(obj.List("spec", "clusterIPs")) == 0 && obj.String("spec", "clusterIP") == before {
			obj.Set(meta.Clone(list), "spec", "clusterIPs")
		}
	}
	if hasNodePorts(obj) && hasNodePorts(old) {
		keepNodePorts(obj, old)
	}
	if n := old.Int("spec", "healthCheckNodePort"); n != 0 && hasHealthCheckPort(obj) && hasHealthCheckPort(old) && obj.Int("spec", "healthCheckNodePort") == 0 {
		obj.Set(n, "spec", "healthCheckNodePort")
	}
}

// keepNodePorts copies the node ports of old to ports of the same name.
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

// pairAddresses synchronizes clusterIP and clusterIPs if the client changed only one of them.
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

// dropLeftovers removes fields that only the old type has, unless the caller changed them: then
// validation reports them.
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
	drop(hasClusterIP(old), hasClusterIP(obj), "ipFamilies", "ipFamilyPolicy")
	if same := sameField(obj, old, "clusterIPs"); same && sameField(obj, old, "clusterIP") {
		drop(hasClusterIP(old), hasClusterIP(obj), "clusterIP", "clusterIPs")
	}
	if hasNodePorts(old) && !hasNodePorts(obj) && sameNodePorts(obj, old) {
		for _, p := range portsOf(obj) {
			p.Delete("nodePort")
		}
	}
	drop(hasHealthCheckPort(old), hasHealthCheckPort(obj), "healthCheckNodePort")
	balanced := func(o *meta.Object) bool { return o.String("spec", "type") == LoadBalancerType }
	drop(balanced(old), balanced(obj), "allocateLoadBalancerNodePorts", "loadBalancerClass")
	drop(externallyReachable(old), externallyReachable(obj), "externalTrafficPolicy")
}

func sameField(obj, old *meta.Object, field string) bool {
	now, _ := obj.Get("spec", field)
	before, _ := old.Get("spec", field)
	return meta.Equal(now, before)
}

// sameNodePorts reports whether the node ports are unchanged.
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
