package quota

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

func object(t *testing.T, text string) *meta.Object {
	var tree map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
	return meta.NewObject(tree)
}

// TestUsageOfObjects checks usage that the tests of the plugin do not cover.
func TestUsageOfObjects(t *testing.T) {
	terms := newNaming(names.Kubernetes, nil)
	for _, tc := range []struct {
		of           meta.GroupResource
		object, want string
	}{
		{pods, `{spec: {overhead: {cpu: 10m}, containers: [{name: a, resources: {requests: {cpu: 100m}, limits: {memory: 1Mi}}}]}}`,
			`{count/pods: 1, pods: 1, cpu: 110m, requests.cpu: 110m, limits.memory: 1Mi}`},
		{pods, `{spec: {containers: [{name: a, resources: {requests: {cpu: 100m}}}, {name: b, resources: {requests: {cpu: 100m}}}], initContainers: [{name: i, resources: {requests: {cpu: "1"}}}]}}`,
			`{count/pods: 1, pods: 1, cpu: 1, requests.cpu: 1}`},
		{pods, `{spec: {containers: [{name: a, resources: {requests: {cpu: 100m}}}]}, status: {containerStatuses: [{name: a, allocatedResources: {cpu: 300m}, resources: {requests: {cpu: 200m}}}]}}`,
			`{count/pods: 1, pods: 1, cpu: 300m, requests.cpu: 300m}`},
		{pods, `{metadata: {deletionTimestamp: "2020-01-01T00:00:00Z", deletionGracePeriodSeconds: 30}, spec: {containers: [{name: a}]}}`, `{count/pods: 1}`},
		{pods, `{metadata: {deletionTimestamp: "2999-01-01T00:00:00Z", deletionGracePeriodSeconds: 30}, spec: {containers: [{name: a}]}}`, `{count/pods: 1, pods: 1}`},
		{services, `{spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1, nodePort: 30000}, {port: 2}]}}`,
			`{count/services: 1, services: 1, services.loadbalancers: 1, services.nodeports: 1}`},
		{claims, `{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: old}}, spec: {storageClassName: new, resources: {requests: {storage: 500m}}}, status: {allocatedResources: {storage: 2Gi}}}`,
			`{count/persistentvolumeclaims: 1, persistentvolumeclaims: 1, requests.storage: 2Gi, old.storageclass.storage.k8s.io/persistentvolumeclaims: 1, old.storageclass.storage.k8s.io/requests.storage: 2Gi}`},
		{claims, `{spec: {resources: {requests: {storage: 500m}}}}`, `{count/persistentvolumeclaims: 1, persistentvolumeclaims: 1, requests.storage: 1}`},
		{terms.devices, `{spec: {devices: {requests: [{exactly: {deviceClassName: a, count: 2}}, {exactly: {deviceClassName: b, allocationMode: All}}, {firstAvailable: [{deviceClassName: a, count: 3}, {deviceClassName: a}]}]}}}`,
			`{count/resourceclaims.resource.k8s.io: 1, a.deviceclass.resource.k8s.io/devices: 5, b.deviceclass.resource.k8s.io/devices: 32}`},
		{meta.GroupResource{Group: "example.com", Resource: "secrets"}, `{}`, `{count/secrets.example.com: 1}`},
		{pods, `{spec: {containers: 5, overhead: [], initContainers: [x]}, status: {containerStatuses: {}}}`, `{count/pods: 1, pods: 1}`},
		{services, `{spec: {ports: x, type: NodePort}}`, `{count/services: 1, services: 1, services.loadbalancers: 0, services.nodeports: 0}`},
	} {
		got, want := map[string]string{}, map[string]meta.Quantity{}
		for name, n := range terms.usage(tc.of, object(t, tc.object), time.Now()) {
			got[name] = n.String()
		}
		require.NoError(t, yaml.Unmarshal([]byte(tc.want), &want))
		texts := map[string]string{}
		for name, n := range want {
			texts[name] = n.String()
			assert.Equal(t, tc.of, terms.resourceOf(name), name)
		}
		assert.Equal(t, texts, got, tc.object)
	}
	for _, name := range []string{"limits.example.com/gpu", "limits.hugepages-2Mi", "example.com/gpu", "count/events", "count/events.events.k8s.io", "requests.kubernetes.io/x", "x"} {
		assert.Zero(t, terms.resourceOf(name), name)
	}
}

// TestUsageOfShrunkClaims checks that the allocated storage of a claim counts if its request
// was reduced.
func TestUsageOfShrunkClaims(t *testing.T) {
	claim := meta.NewObject(map[string]any{
		"spec":   map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}},
		"status": map[string]any{"allocatedResources": map[string]any{"storage": "2Gi"}},
	})
	for on, want := range map[bool]string{true: "2Gi", false: "1Gi"} {
		set, err := features.New("1.32", map[string]bool{features.RecoverVolumeExpansionFailure: on})
		require.NoError(t, err)
		terms := newNaming(names.Kubernetes, set)
		used := terms.usage(claims, claim, time.Now())["requests.storage"]
		assert.Equal(t, want, used.String())
	}
}

// TestSelectorMatchesValues checks the operators of a Selector.
func TestSelectorMatchesValues(t *testing.T) {
	for _, tc := range []struct {
		operator   string
		have       []string
		want, none bool
	}{
		{"In", []string{"a"}, true, false},
		{"In", []string{"c"}, false, false},
		{"In", []string{"c", "b"}, true, false},
		{"NotIn", []string{"a"}, false, true},
		{"NotIn", []string{"c"}, true, true},
		{"Exists", []string{"c"}, true, false},
		{"DoesNotExist", []string{"c"}, false, true},
		{"Resembles", []string{"a"}, false, false},
	} {
		s := Selector{ScopeName: "PriorityClass", Operator: tc.operator, Values: []string{"a", "b"}}
		assert.Equal(t, tc.want, s.matchesValues(tc.have), "%v of %v", s, tc.have)
		assert.Equal(t, tc.none, s.matchesValues(nil), "%v of none", s)
	}
}

// TestLimitedResourcesNeedAQuota checks objects that need a quota for a name, and for a scope.
func TestLimitedResourcesNeedAQuota(t *testing.T) {
	ledger := &Ledger{naming: newNaming(names.Kubernetes, nil), limited: []Limited{
		{Resource: "pods", MatchContains: []string{".cpu"}, MatchScopes: []Selector{{ScopeName: "BestEffort", Operator: "Exists"}}},
		{APIGroup: "example.com", Resource: "pods", MatchContains: []string{"pods"}},
	}}
	busy, idle := `{spec: {containers: [{name: a, resources: {requests: {cpu: '1'}}}]}}`, `{spec: {containers: [{name: a}]}}`
	for _, tc := range []struct{ pod, quota, refusal string }{
		{busy, ``, "insufficient quota to consume: requests.cpu"},
		{busy, `{spec: {hard: {pods: 1}}}`, "insufficient quota to consume: requests.cpu"},
		{busy, `{spec: {hard: {requests.cpu: '1'}, scopes: [BestEffort]}}`, "insufficient quota to consume: requests.cpu"},
		{busy, `{spec: {hard: {requests.cpu: '1'}}}`, ""},
		{idle, ``, "insufficient quota to match these scopes"},
		{idle, `{spec: {hard: {pods: 1}}}`, "insufficient quota to match these scopes"},
		{idle, `{spec: {hard: {pods: 1}, scopes: [NotBestEffort]}}`, "insufficient quota to match these scopes"},
		{idle, `{spec: {hard: {pods: 1}, scopes: [BestEffort]}}`, ""},
	} {
		var all []*snapshot
		if tc.quota != "" {
			all = append(all, newSnapshot(&ledger.naming, object(t, tc.quota)))
		}
		err := ledger.missingQuota(&charge{resource: pods, object: object(t, tc.pod)}, all)
		if tc.refusal == "" {
			assert.NoError(t, err, "%s %s", tc.pod, tc.quota)
		} else {
			assert.ErrorContains(t, err, tc.refusal, "%s %s", tc.pod, tc.quota)
		}
	}
}

// TestUpdatesThatMayGrow checks which updates are charged.
func TestUpdatesThatMayGrow(t *testing.T) {
	const terminating = `metadata: {deletionTimestamp: "2030-01-01T00:00:00Z"}, `
	for _, tc := range []struct {
		resource, sub, before, after string
		want                         bool
	}{
		{"persistentvolumeclaims", "", `{spec: {a: 1}}`, `{spec: {a: 2}}`, true},
		{"persistentvolumeclaims", "status", `{spec: {a: 1}}`, `{spec: {a: 1}, status: {b: 1}}`, false},
		{"persistentvolumeclaims", "", `{` + terminating + `spec: {a: 1}}`, `{` + terminating + `spec: {a: 1}}`, false},
		{"persistentvolumeclaims", "", `{` + terminating + `spec: {a: 1}}`, `{` + terminating + `spec: {a: 2}}`, true},
		{"services", "", `{spec: {type: ClusterIP}}`, `{spec: {type: NodePort}}`, true},
		{"pods", "", `{spec: {a: 1}}`, `{spec: {a: 2}}`, false},
		{"pods", "", `{spec: {}}`, `{spec: {activeDeadlineSeconds: 5}}`, true},
		{"pods", "resize", `{spec: {a: 1}}`, `{spec: {a: 2}}`, true},
		{"pods", "status", `{spec: {}}`, `{spec: {activeDeadlineSeconds: 5}}`, false},
		{"configmaps", "", `{data: {a: b}}`, `{data: {a: c}}`, false},
	} {
		r := &admission.Request{Operation: admission.Update, Resource: meta.GroupVersionResource{Version: "v1", Resource: tc.resource}, Subresource: tc.sub,
			Old: object(t, tc.before), Object: object(t, tc.after)}
		assert.Equal(t, tc.want, mayGrow(r), "%s/%s %s %s", tc.resource, tc.sub, tc.before, tc.after)
	}
}
