// Package quota holds what objects ask for and how many there are to the quotas of
// their namespaces: what an object uses, what a quota allows, and a Ledger that takes
// what a write asks for before it is made.
package quota

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// Amounts are how much of each resource, by the names that quotas give them.
type Amounts = podspec.Amounts

var (
	pods     = meta.GroupResource{Resource: "pods"}
	services = meta.GroupResource{Resource: "services"}
	claims   = meta.GroupResource{Resource: "persistentvolumeclaims"}
	quotas   = meta.GroupResource{Resource: "resourcequotas"}
)

// counted are the resources of the core group that have their plural for a name, too.
var counted = []string{
	"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
}

// terms are the names of resources in quotas under one profile.
type terms struct {
	names        names.Profile
	storageClass string // between a class and what of it is bounded
	deviceClass  string
	devices      meta.GroupResource // claims of devices
	features     *features.Set
}

func newTerms(p names.Profile, set *features.Set) terms {
	return terms{
		names: p, features: set, storageClass: "." + p.Group(names.QuotaStorageClass) + "/", deviceClass: "." + p.Group(names.QuotaDeviceClass) + "/devices",
		devices: meta.GroupResource{Group: p.Group(names.GroupDevices), Resource: "resourceclaims"},
	}
}

// user returns the resource whose objects use what a name stands for; the zero one if
// nothing does.
func (t *terms) user(name string) meta.GroupResource {
	if of, ok := strings.CutPrefix(name, "count/"); ok {
		plural, group, _ := strings.Cut(of, ".")
		if plural == "events" && (group == "" || group == t.names.Group(names.GroupEvents)) {
			return meta.GroupResource{} // they tell of what happens, and never count
		}
		return meta.GroupResource{Group: group, Resource: plural}
	}
	switch {
	case slices.Contains(counted, name):
		return meta.GroupResource{Resource: name}
	case name == "services.nodeports", name == "services.loadbalancers":
		return services
	case name == "requests.storage", strings.HasSuffix(name, t.storageClass+"requests.storage"), strings.HasSuffix(name, t.storageClass+claims.Resource):
		return claims
	case strings.HasSuffix(name, t.deviceClass):
		return t.devices
	case t.computes(name):
		return pods
	}
	return meta.GroupResource{}
}

// computes reports whether a name stands for something that containers use.
func (t *terms) computes(name string) bool {
	of, request := strings.CutPrefix(name, "requests.")
	if !request {
		of, _ = strings.CutPrefix(name, "limits.")
	}
	return shared(of) || hugePages(of) && (request || of == name) || request && t.extended(of)
}

// shared reports whether a resource is one that pods have a share of.
func shared(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

func hugePages(name string) bool { return strings.HasPrefix(name, "hugepages-") }

// extended reports whether a resource of containers is somebody else's.
func (t *terms) extended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, t.names.Wire(names.NativeResource))
}

func number(n int64) meta.Quantity { return meta.NewQuantity(n, meta.DecimalSI) }

// alike reports whether all objects of a resource use the same: one of each of its names.
func (t *terms) alike(r meta.GroupResource) bool {
	return r != pods && r != services && r != claims && r != t.devices
}

// extract returns what usage and selectors look at, and who the object is.
func (t *terms) extract(r meta.GroupResource, o *meta.Object) *meta.Object {
	if !t.alike(r) {
		return o.Clone()
	}
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": o.Name(), "namespace": o.Namespace(), "uid": o.UID()}})
}

// usage returns what an object uses.
func (t *terms) usage(r meta.GroupResource, o *meta.Object, now time.Time) Amounts {
	used := Amounts{"count/" + r.String(): number(1)}
	switch r {
	case pods:
		t.usePod(used, o, now)
		return used
	case services:
		useService(used, o)
	case claims:
		t.useClaim(used, o)
	case t.devices:
		t.useDevices(used, o)
	}
	if r.Group == "" && slices.Contains(counted, r.Resource) {
		used[r.Resource] = number(1)
	}
	return used
}

// usePod adds what a pod uses while it lasts.
func (t *terms) usePod(used Amounts, pod *meta.Object, now time.Time) {
	if phase := pod.String("status", "phase"); phase == "Succeeded" || phase == "Failed" || lost(pod, now) {
		return
	}
	used["pods"] = number(1)
	for name, q := range whole(pod, "requests") {
		switch {
		case shared(name), hugePages(name):
			used[name], used["requests."+name] = q, q
		case t.extended(name):
			used["requests."+name] = q
		}
	}
	for name, q := range whole(pod, "limits") {
		if shared(name) {
			used["limits."+name] = q
		}
	}
}

// lost reports whether a pod should have been gone for long.
func lost(pod *meta.Object, now time.Time) bool {
	_, graceful := pod.Get("metadata", "deletionGracePeriodSeconds")
	grace := time.Duration(pod.Int("metadata", "deletionGracePeriodSeconds")) * time.Second
	return graceful && pod.Terminating() && now.After(pod.DeletionTimestamp().Add(grace))
}

// whole returns the requests or limits of a pod with its overhead. While a container is
// being resized, the more of what it has and what it is to have counts.
func whole(pod *meta.Object, field string) Amounts {
	spec := meta.NewObject(pod.Map("spec"))
	all := podspec.Whole(spec, field)
	if len(pod.List("status", "containerStatuses")) > 0 || len(pod.List("status", "initContainerStatuses")) > 0 {
		all = podspec.Whole(meta.NewObject(resizing(pod, field)), field)
	}
	for name, q := range podspec.AmountsOf(spec.Map("overhead")) {
		if have, ok := all[name]; ok || field == "requests" {
			all[name] = have.Add(q)
		}
	}
	return all
}

// resizing returns the spec of a pod whose containers have no less than their statuses
// tell.
func resizing(pod *meta.Object, field string) map[string]any {
	spec := meta.NewObject(pod.Map("spec")).Clone()
	for list, statuses := range map[string]string{podspec.Containers: "containerStatuses", podspec.Init: "initContainerStatuses"} {
		has := map[string]*meta.Object{}
		for _, s := range pod.Objects("status", statuses) {
			has[s.String("name")] = s
		}
		for _, c := range spec.Objects(list) {
			s := has[c.String("name")]
			more := podspec.AmountsOf(s.Map("resources", field))
			if field == "requests" {
				podspec.Most(more, podspec.AmountsOf(s.Map("allocatedResources")))
			}
			wants := podspec.Resources(c, field)
			for name, q := range more {
				if want, ok := wants[name]; ok && q.Cmp(want) > 0 {
					c.Set(q.String(), "resources", field, name)
				}
			}
		}
	}
	return spec.Tree()
}

// useService adds the ports on nodes and the balancer of a service.
func useService(used Amounts, service *meta.Object) {
	ports := service.Objects("spec", "ports")
	onNodes := 0
	allocates, said := service.Get("spec", "allocateLoadBalancerNodePorts")
	switch kind := service.String("spec", "type"); {
	case kind == "NodePort", kind == "LoadBalancer" && (!said || allocates == true):
		onNodes = len(ports)
	case kind == "LoadBalancer":
		for _, port := range ports {
			if port.Int("nodePort") != 0 {
				onNodes++
			}
		}
	}
	used["services.nodeports"] = number(int64(onNodes))
	used["services.loadbalancers"] = number(0)
	if service.String("spec", "type") == "LoadBalancer" {
		used["services.loadbalancers"] = number(1)
	}
}

// useClaim adds the storage of a claim, in whole bytes, also by its class.
func (t *terms) useClaim(used Amounts, claim *meta.Object) {
	size, asked := podspec.AmountsOf(claim.Map("spec", "resources", "requests"))["storage"]
	has, ok := podspec.AmountsOf(claim.Map("status", "allocatedResources"))["storage"]
	if ok && has.Cmp(size) > 0 && t.features.Enabled(features.RecoverVolumeExpansionFailure) {
		size, asked = has, true
	}
	if asked && !size.Whole() {
		size = meta.NewQuantity(size.Value(), meta.BinarySI)
	}
	class, old := claim.Annotations()[t.names.Wire(names.StorageClassBeta)]
	if !old {
		class = claim.String("spec", "storageClassName")
	}
	if class != "" {
		used[class+t.storageClass+claims.Resource] = number(1)
	}
	if asked {
		used["requests.storage"] = size
	}
	if asked && class != "" {
		used[class+t.storageClass+"requests.storage"] = size
	}
}

// mostDevices is what a claim of all devices that there are counts as.
const mostDevices = 32

// useDevices adds the devices that a claim may get, by their classes.
func (t *terms) useDevices(used Amounts, claim *meta.Object) {
	for _, request := range claim.Objects("spec", "devices", "requests") {
		most := Amounts{} // of those of which it gets one
		for _, one := range append(request.Objects("firstAvailable"), meta.NewObject(request.Map("exactly")), request) {
			class := one.String("deviceClassName")
			if class == "" {
				continue
			}
			count := cmp.Or(one.Int("count"), 1)
			if one.String("allocationMode") == "All" {
				count = mostDevices
			}
			podspec.Most(most, Amounts{class + t.deviceClass: number(count)})
		}
		podspec.Add(used, most)
	}
}
