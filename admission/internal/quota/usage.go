// Package quota enforces ResourceQuotas: it computes the usage of an object and adds it to the statuses of the quotas
// of its namespace before the object is stored. See Ledger.
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
	"orch.io/controlplane/internal/wellknown"
)

// Amounts are quantities by their names in quotas.
type Amounts = podspec.Amounts

var (
	pods     = meta.GroupResource{Resource: "pods"}
	services = meta.GroupResource{Resource: "services"}
	claims   = meta.GroupResource{Resource: "persistentvolumeclaims"}
	quotas   = meta.GroupResource{Resource: "resourcequotas"}
)

// counted are the core resources that are counted by their plural, in addition to count/plural.
var counted = []string{
	"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
}

// naming maps names in quotas to usage, for a profile.
type naming struct {
	names        names.Profile
	storageClass string             // separates a StorageClass and the name
	deviceClass  string             // suffix of a DeviceClass
	devices      meta.GroupResource // ResourceClaims
	features     *features.Set
}

func newNaming(p names.Profile, set *features.Set) naming {
	return naming{
		names: p, features: set, storageClass: "." + p.Group(wellknown.QuotaStorageClass) + "/", deviceClass: "." + p.Group(wellknown.QuotaDeviceClass) + "/devices",
		devices: meta.GroupResource{Group: p.Group(wellknown.GroupDevices), Resource: "resourceclaims"},
	}
}

// resourceOf returns the resource of the objects that a name counts, or the zero GroupResource if the name is unknown.
func (n *naming) resourceOf(name string) meta.GroupResource {
	if of, ok := strings.CutPrefix(name, "count/"); ok {
		plural, group, _ := strings.Cut(of, ".")
		if plural == "events" && (group == "" || group == n.names.Group(wellknown.GroupEvents)) {
			return meta.GroupResource{} // events are not counted
		}
		return meta.GroupResource{Group: group, Resource: plural}
	}
	switch {
	case slices.Contains(counted, name):
		return meta.GroupResource{Resource: name}
	case name == "services.nodeports", name == "services.loadbalancers":
		return services
	case name == "requests.storage", strings.HasSuffix(name, n.storageClass+"requests.storage"), strings.HasSuffix(name, n.storageClass+claims.Resource):
		return claims
	case strings.HasSuffix(name, n.deviceClass):
		return n.devices
	case n.isCompute(name):
		return pods
	}
	return meta.GroupResource{}
}

// isCompute reports whether a name is a request or limit of a container resource.
func (n *naming) isCompute(name string) bool {
	of, request := strings.CutPrefix(name, "requests.")
	if !request {
		of, _ = strings.CutPrefix(name, "limits.")
	}
	return shared(of) || hugePages(of) && (request || of == name) || request && n.extended(of)
}

// shared reports whether a resource is cpu, memory or ephemeral storage.
func shared(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

func hugePages(name string) bool { return strings.HasPrefix(name, "hugepages-") }

// extended reports whether a resource of containers is an extended resource.
func (n *naming) extended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, n.names.Wire(wellknown.NativeResource))
}

func number(n int64) meta.Quantity { return meta.NewQuantity(n, meta.DecimalSI) }

// countsOnly reports whether the usage of a resource is only the number of its objects.
func (n *naming) countsOnly(r meta.GroupResource) bool {
	return r != pods && r != services && r != claims && r != n.devices
}

// extract returns a copy of the parts of an object that usage and selectors read.
func (n *naming) extract(r meta.GroupResource, o *meta.Object) *meta.Object {
	if !n.countsOnly(r) {
		return o.Clone()
	}
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": o.Name(), "namespace": o.Namespace(), "uid": o.UID()}})
}

// usage returns the usage of an object by all its names.
func (n *naming) usage(r meta.GroupResource, o *meta.Object, now time.Time) Amounts {
	used := Amounts{"count/" + r.String(): number(1)}
	switch r {
	case pods:
		n.usePod(used, o, now)
		return used
	case services:
		useService(used, o)
	case claims:
		n.useClaim(used, o)
	case n.devices:
		n.useDevices(used, o)
	}
	if r.Group == "" && slices.Contains(counted, r.Resource) {
		used[r.Resource] = number(1)
	}
	return used
}

// usePod adds the usage of a pod, if it has not finished.
func (n *naming) usePod(used Amounts, pod *meta.Object, now time.Time) {
	if phase := pod.String("status", "phase"); phase == "Succeeded" || phase == "Failed" || graceExpired(pod, now) {
		return
	}
	used["pods"] = number(1)
	for name, q := range podTotal(pod, "requests") {
		switch {
		case shared(name), hugePages(name):
			used[name], used["requests."+name] = q, q
		case n.extended(name):
			used["requests."+name] = q
		}
	}
	for name, q := range podTotal(pod, "limits") {
		if shared(name) {
			used["limits."+name] = q
		}
	}
}

// graceExpired reports whether a pod is terminating and its grace period has passed.
func graceExpired(pod *meta.Object, now time.Time) bool {
	_, graceful := pod.Get("metadata", "deletionGracePeriodSeconds")
	grace := time.Duration(pod.Int("metadata", "deletionGracePeriodSeconds")) * time.Second
	return graceful && pod.Terminating() && now.After(pod.DeletionTimestamp().Add(grace))
}

// podTotal returns the requests or limits of a pod with its overhead. For a container that is being resized, the larger
// of the allocated and the desired amount counts.
func podTotal(pod *meta.Object, field string) Amounts {
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

// resizing returns the spec of a pod, in which each container has at least the resources of its status.
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

// useService adds the node ports and the load balancer of a service.
func useService(used Amounts, service *meta.Object) {
	ports := service.Objects("spec", "ports")
	onNodes := 0
	allocates, set := service.Get("spec", "allocateLoadBalancerNodePorts")
	switch kind := service.String("spec", "type"); {
	case kind == "NodePort", kind == "LoadBalancer" && (!set || allocates == true):
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

// useClaim adds the storage of a claim in whole bytes, in total and for its class.
func (n *naming) useClaim(used Amounts, claim *meta.Object) {
	size, asked := podspec.AmountsOf(claim.Map("spec", "resources", "requests"))["storage"]
	has, ok := podspec.AmountsOf(claim.Map("status", "allocatedResources"))["storage"]
	if ok && has.Cmp(size) > 0 && n.features.Enabled(features.RecoverVolumeExpansionFailure) {
		size, asked = has, true
	}
	if asked && !size.IsInteger() {
		size = meta.NewQuantity(size.Value(), meta.BinarySI)
	}
	class, old := claim.Annotations()[n.names.Wire(wellknown.StorageClassBeta)]
	if !old {
		class = claim.String("spec", "storageClassName")
	}
	if class != "" {
		used[class+n.storageClass+claims.Resource] = number(1)
	}
	if asked {
		used["requests.storage"] = size
	}
	if asked && class != "" {
		used[class+n.storageClass+"requests.storage"] = size
	}
}

// mostDevices is the number of devices counted for a request for all devices.
const mostDevices = 32

// useDevices adds the maximum number of devices that can be allocated to a claim, by class.
func (n *naming) useDevices(used Amounts, claim *meta.Object) {
	for _, request := range claim.Objects("spec", "devices", "requests") {
		most := Amounts{} // maximum over the alternatives, because only a single alternative is allocated
		for _, alternative := range append(request.Objects("firstAvailable"), meta.NewObject(request.Map("exactly")), request) {
			class := alternative.String("deviceClassName")
			if class == "" {
				continue
			}
			count := cmp.Or(alternative.Int("count"), 1)
			if alternative.String("allocationMode") == "All" {
				count = mostDevices
			}
			podspec.Most(most, Amounts{class + n.deviceClass: number(count)})
		}
		podspec.Add(used, most)
	}
}
