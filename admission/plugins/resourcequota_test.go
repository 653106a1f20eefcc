package plugins_test

import (
	"fmt"
	"testing"

	"orch.io/controlplane/admission"
)

// quotaOf returns the body of a quota.
func quotaOf(name, hard, rest string) string {
	return `{metadata: {name: ` + name + `}, spec: {hard: {` + hard + `}` + rest + `}}`
}

// podWith returns the body of a pod whose container has the given resources.
func podWith(name, resources string) string {
	return `{metadata: {name: ` + name + `}, spec: {containers: [{name: c, image: i, resources: {` + resources + `}}]}}`
}

// TestResourceQuotaOfPods checks that the number of pods and their resources are bounded as soon as the quota
// exists, also for resizes.
func TestResourceQuotaOfPods(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST pods", body: podWith("z", `requests: {cpu: 100m}`), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("q", `pods: 3, requests.cpu: 500m, limits.memory: 1Gi, cpu: 1, requests.nvidia.com/gpu: 1, hugepages-2Mi: 4Mi, ephemeral-storage: 1Gi`, ``), want: `201`},
		step{do: "POST pods", body: `{metadata: {name: a}, spec: {initContainers: [{name: i, image: i}], containers: [{name: c, image: i}, {name: d, image: i, resources: {requests: {cpu: 1m}}}]}}`,
			want: `403 pods "a" is forbidden: failed quota: q: must specify cpu for: c,i; limits.memory for: c,d,i; requests.cpu for: c,i`},
		step{do: "POST pods", body: podWith("b", `limits: {cpu: 600m, memory: 2Gi}`),
			want: `403 pods "b" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=600m, used: limits.memory=0,requests.cpu=100m, limited: limits.memory=1Gi,requests.cpu=500m`},
		step{do: "POST pods", body: podWith("g", `limits: {cpu: 10m, memory: 2Mi, nvidia.com/gpu: 2}`),
			want: `403 exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1`},
		step{do: "POST pods", body: podWith("g", `limits: {cpu: 10m, memory: 2Mi, hugepages-2Mi: 6Mi}`),
			want: `403 exceeded quota: q, requested: hugepages-2Mi=6Mi, used: hugepages-2Mi=0, limited: hugepages-2Mi=4Mi`},
		step{do: "POST pods", body: podWith("g", `limits: {cpu: 10m, memory: 2Mi, ephemeral-storage: 2Gi}`),
			want: `403 exceeded quota: q, requested: ephemeral-storage=2Gi, used: ephemeral-storage=0, limited: ephemeral-storage=1Gi`},
		step{do: "POST pods?dryRun=All", body: podWith("o", `limits: {cpu: 100m, memory: 10Mi}`), want: `201`},
		step{do: "POST pods", body: podWith("o", `limits: {cpu: 100m, memory: 10Mi}`), want: `201`},
		step{do: "POST pods", body: podWith("o", `limits: {cpu: 100m, memory: 10Mi}`), want: `409 already exists`},
		step{do: "GET resourcequotas/q", want: `200 {status: {hard: {pods: "3", requests.cpu: 500m}, used: {pods: "2", requests.cpu: 200m, cpu: 200m, limits.memory: 10Mi, requests.nvidia.com/gpu: "0"}}}`},
		step{do: "PATCH pods/o/resize", body: `{spec: {containers: [{name: c, resources: {limits: {cpu: 700m, memory: 10Mi}, requests: {cpu: 700m, memory: 10Mi}}}]}}`,
			want: `403 pods "o" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=200m, limited: requests.cpu=500m`},
		step{do: "PATCH pods/o/resize", body: `{spec: {containers: [{name: c, resources: {limits: {cpu: 300m, memory: 10Mi}, requests: {cpu: 300m, memory: 10Mi}}}]}}`, want: `200`},
		step{do: "GET resourcequotas/q", want: `200 {status: {used: {pods: "2", requests.cpu: 400m}}}`},
		step{do: "POST pods", body: podWith("p", `limits: {cpu: 1m, memory: 1Mi}`), want: `201`},
		step{do: "POST pods", body: podWith("r", `limits: {cpu: 1m, memory: 1Mi}`), want: `403 pods "r" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`},
		step{do: "POST replicationcontrollers", body: `{metadata: {name: r}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`, want: `201`},
	)
}

// TestResourceQuotaOfObjects checks that objects of every kind are counted, including custom kinds and legacy
// names such as services.
func TestResourceQuotaOfObjects(t *testing.T) {
	s := newServer(t, admission.Options{})
	runSteps(t, s,
		step{do: "POST resourcequotas", body: quotaOf("q", `secrets: 1, configmaps: 2, count/configmaps: 1, count/deployments.apps: 0, count/widgets.example.com: 1, resourcequotas: 2`, ``), want: `201`},
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201`},
		step{do: "POST configmaps", body: `{metadata: {name: b}}`, want: `403 configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1`},
		step{do: "PATCH configmaps/a", body: `{data: {a: b}}`, want: `200`},
		step{do: "POST secrets", body: `{metadata: {name: a}}`, want: `201`},
		step{do: "POST secrets", body: `{metadata: {generateName: b}}`, want: `403 is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1`},
		step{do: "POST /apis/apps/v1/namespaces/default/deployments", body: `{metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
			want: `403 exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0`},
		step{do: "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: `{metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget},
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`, want: `201`},
	)
	s.Settle()
	runSteps(t, s,
		step{do: "POST /apis/example.com/v1/namespaces/default/widgets", body: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}`, want: `201`},
		step{do: "POST /apis/example.com/v1/namespaces/default/widgets", body: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: b}}`, want: `403 widgets.example.com "b" is forbidden: exceeded quota: q, requested: count/widgets.example.com=1, used: count/widgets.example.com=1, limited: count/widgets.example.com=1`},
		step{do: "POST resourcequotas", body: quotaOf("r", `secrets: 5`, ``), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("s", `secrets: 5`, ``), want: `403 exceeded quota: q, requested: resourcequotas=1, used: resourcequotas=2, limited: resourcequotas=2`},
		step{do: "PATCH resourcequotas/q", body: `{spec: {hard: {secrets: 9, resourcequotas: 9}}}`, want: `200`},
		step{do: "POST secrets", body: `{metadata: {name: b}}`, want: `201`},
		step{do: "PATCH resourcequotas/r", body: `{spec: {hard: {secrets: 3, count/secrets: 4}}}`, want: `200`},
		step{do: "POST secrets", body: `{metadata: {name: c}}`, want: `201`},
		step{do: "POST secrets", body: `{metadata: {name: d}}`, want: `403 exceeded quota: r, requested: secrets=1, used: secrets=3, limited: secrets=3`},
		step{do: "GET resourcequotas/q", want: `200 {status: {used: {secrets: "3", configmaps: "1", resourcequotas: "2", count/widgets.example.com: "1"}}}`},
	)
}

// TestResourceQuotaOfServicesAndClaims checks node ports, load balancers, storage by class, and increases by
// updates.
func TestResourceQuotaOfServicesAndClaims(t *testing.T) {
	claim := func(name, class, size string) string {
		return `{metadata: {name: ` + name + `}, spec: {accessModes: [ReadWriteOnce], storageClassName: ` + class + `, resources: {requests: {storage: ` + size + `}}}}`
	}
	service := func(name, rest string) string {
		return `{metadata: {name: ` + name + `}, spec: {ports: [{name: a, port: 80}, {name: b, port: 81}]` + rest + `}}`
	}
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /apis/storage.k8s.io/v1/storageclasses", body: `{metadata: {name: gold}, provisioner: x.y/z, allowVolumeExpansion: true}`, want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("q", `services: 3, services.nodeports: 3, services.loadbalancers: 1, requests.storage: 6Gi, persistentvolumeclaims: 9,
			gold.storageclass.storage.k8s.io/requests.storage: 2Gi, gold.storageclass.storage.k8s.io/persistentvolumeclaims: 2`, ``), want: `201`},
		step{do: "POST services", body: service("a", `, type: NodePort`), want: `201`},
		step{do: "POST services", body: service("b", ``), want: `201`},
		step{do: "PATCH services/b", body: `{spec: {type: NodePort}}`, want: `403 exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3`},
		step{do: "PATCH services/b", body: `{spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false}}`, want: `200`},
		step{do: "POST services", body: service("c", `, type: LoadBalancer, allocateLoadBalancerNodePorts: false`), want: `403 exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=1, limited: services.loadbalancers=1`},
		step{do: "GET resourcequotas/q", want: `200 {status: {used: {services: "2", services.nodeports: "2", services.loadbalancers: "1"}}}`},
		step{do: "POST persistentvolumeclaims", body: claim("a", "gold", "1500Mi"), want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim("b", "gold", "1Gi"), want: `403 exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=1Gi, used: gold.storageclass.storage.k8s.io/requests.storage=1500Mi, limited: gold.storageclass.storage.k8s.io/requests.storage=2Gi`},
		step{do: "POST persistentvolumeclaims", body: claim("c", "iron", "4Gi"), want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim("d", "iron", "1Gi"), want: `403 exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=5596Mi, limited: requests.storage=6Gi`},
		step{do: "POST persistentvolumeclaims", body: claim("e", "gold", "1Mi"), want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim("f", "gold", "1Mi"), want: `403 requested: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1, used: gold.storageclass.storage.k8s.io/persistentvolumeclaims=2, limited: gold.storageclass.storage.k8s.io/persistentvolumeclaims=2`},
		step{do: "PATCH persistentvolumeclaims/a/status", body: `{status: {phase: Bound}}`, want: `200`},
		step{do: "PATCH persistentvolumeclaims/a", body: `{metadata: {labels: {a: b}}}`, want: `200`},
		step{do: "PATCH persistentvolumeclaims/a", body: `{spec: {resources: {requests: {storage: 2100Mi}}}}`, want: `403 exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=600Mi,requests.storage=600Mi, used: gold.storageclass.storage.k8s.io/requests.storage=1501Mi,requests.storage=5597Mi, limited: gold.storageclass.storage.k8s.io/requests.storage=2Gi,requests.storage=6Gi`},
		step{do: "PATCH persistentvolumeclaims/a", body: `{spec: {resources: {requests: {storage: 1600Mi}}}}`, want: `200`},
		step{do: "GET resourcequotas/q", want: `200 {status: {used: {gold.storageclass.storage.k8s.io/requests.storage: 1601Mi, persistentvolumeclaims: "3"}}}`},
	)
}

// TestResourceQuotaScopes checks that a quota counts only the objects that match all of its scopes.
func TestResourceQuotaScopes(t *testing.T) {
	pod := func(name, rest string) string {
		return `{metadata: {name: ` + name + `}, spec: {containers: [{name: c, image: i}]` + rest + `}}`
	}
	selector := func(expression string) string { return `, scopeSelector: {matchExpressions: [{` + expression + `}]}` }
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /apis/scheduling.k8s.io/v1/priorityclasses", body: `{metadata: {name: high}, value: 9}`, want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("ends", `pods: 0`, `, scopes: [Terminating]`), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("lasts", `pods: 1`, `, scopes: [NotTerminating, BestEffort]`), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("needs", `pods: 0`, `, scopes: [NotBestEffort]`), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("high", `pods: 0`, selector(`scopeName: PriorityClass, operator: In, values: [high]`)), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("abroad", `pods: 0`, selector(`scopeName: CrossNamespacePodAffinity, operator: Exists`)), want: `201`},
		step{do: "POST pods", body: pod("a", `, activeDeadlineSeconds: 5`), want: `403 exceeded quota: ends, requested: pods=1, used: pods=0, limited: pods=0`},
		step{do: "POST pods", body: pod("a", `, priorityClassName: high`), want: `403 exceeded quota: high, requested: pods=1, used: pods=0, limited: pods=0`},
		step{do: "POST pods", body: pod("a", `, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a.b/c, namespaceSelector: {}, labelSelector: {}}]}}`), want: `403 exceeded quota: abroad, requested: pods=1, used: pods=0, limited: pods=0`},
		step{do: "POST pods", body: podWith("a", `requests: {memory: 1Mi}`), want: `403 exceeded quota: needs, requested: pods=1, used: pods=0, limited: pods=0`},
		step{do: "POST pods", body: pod("a", ``), want: `201`},
		step{do: "POST pods", body: pod("b", ``), want: `403 exceeded quota: lasts, requested: pods=1, used: pods=1, limited: pods=1`},
		step{do: "PATCH pods/a", body: `{spec: {activeDeadlineSeconds: 9}}`, want: `403 pods "a" is forbidden: exceeded quota: ends, requested: pods=1, used: pods=0, limited: pods=0`},
		step{do: "POST resourcequotas", body: quotaOf("fast", `persistentvolumeclaims: 0`, selector(`scopeName: VolumeAttributesClass, operator: In, values: [fast]`)), want: `201`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], volumeAttributesClassName: fast, resources: {requests: {storage: 1}}}}`, want: `403 exceeded quota: fast, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0`},
		step{do: "POST persistentvolumeclaims", body: `{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}`, want: `201`},
	)
}

// TestResourceQuotaOfTerminatingObjects checks that a terminating object can be deleted, but cannot grow
// before.
func TestResourceQuotaOfTerminatingObjects(t *testing.T) {
	const resize = `{spec: {containers: [{name: c, resources: {limits: {cpu: 5}, requests: {cpu: 5}}}]}}`
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST resourcequotas", body: `{metadata: {name: q}, spec: {hard: {requests.cpu: 2}}}`, want: `201`},
		step{do: "POST pods", body: `{metadata: {name: a, finalizers: [a.b/c]}, spec: {nodeName: n1, terminationGracePeriodSeconds: 3600, containers: [{name: c, image: i, resources: {limits: {cpu: 1}, requests: {cpu: 1}}}]}}`, want: `201`},
		step{do: "DELETE pods/a", want: `200`},
		step{do: "PATCH pods/a/resize", body: resize, want: `403 exceeded quota: q, requested: requests.cpu=4, used: requests.cpu=1, limited: requests.cpu=2`},
		step{do: "PATCH pods/a", body: `{metadata: {finalizers: null}}`, want: `200`},
	)
}

// TestResourceQuotaOfDeadlines checks that a pod that gets a deadline moves to the quotas with the scope
// Terminating, which may refuse it.
func TestResourceQuotaOfDeadlines(t *testing.T) {
	const deadline = `{spec: {activeDeadlineSeconds: 60}}`
	const pod = `{metadata: {name: %s}, spec: {%s containers: [{name: c, image: i}]}}`
	s := newServer(t, admission.Options{})
	runSteps(t, s,
		step{do: "POST resourcequotas", body: quotaOf("ending", `pods: 1`, `, scopes: [Terminating]`), want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("running", `pods: 1`, `, scopes: [NotTerminating]`), want: `201`},
		step{do: "POST pods", body: fmt.Sprintf(pod, "a", ""), want: `201`},
		step{do: "PATCH pods/a", body: deadline, want: `200`},
		step{do: "POST pods", body: fmt.Sprintf(pod, "b", "activeDeadlineSeconds: 60,"),
			want: `403 pods "b" is forbidden: exceeded quota: ending, requested: pods=1, used: pods=1, limited: pods=1`},
	)
	s.Settle()
	runSteps(t, s,
		step{do: "GET resourcequotas/running", want: `200 {status: {used: {pods: "0"}}}`},
		step{do: "POST pods", body: fmt.Sprintf(pod, "c", ""), want: `201`},
		step{do: "PATCH pods/c", body: deadline, want: `403 pods "c" is forbidden: exceeded quota: ending, requested: pods=1, used: pods=1, limited: pods=1`},
		step{do: "PATCH pods/a", body: `{metadata: {labels: {a: b}}}`, want: `200`},
	)
}
