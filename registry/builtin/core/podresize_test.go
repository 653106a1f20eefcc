package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

const some = `"resources":{"requests":{"cpu":"100m","memory":"100Mi"},"limits":{"cpu":"200m","memory":"200Mi"}}`

// resizable returns a pod with the container c, an init container and further fields in its spec.
func resizable(more string) string {
	return `{"metadata":{"name":"p"},"spec":{` + more + `"containers":[{"name":"c","image":"i",` + some + `}],"initContainers":[{"name":"one","image":"i",` + some + `}]}}`
}

func TestPodResize(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	old, faults := k.Create(t, resizable(""))
	require.Empty(t, faults)
	one := func(list, name, fields string) string {
		return `{"spec":{"` + list + `":[{"name":"` + name + `","image":"other",` + fields + `}]}}`
	}
	c := func(resources string) string { return one("containers", "c", `"resources":`+resources) }
	const at = "spec.containers[0]."
	for patch, want := range map[string][]string{
		c(`{"requests":{"cpu":"150m"},"limits":{"cpu":"1","memory":"150Mi"}}`):              {},
		c(`{"requests":{"cpu":"150m","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Gi"}}`): {},
		c(`{"limits":{"cpu":"1","memory":"1Gi"}}`):                                          {},
		c(`{}`): {"Forbidden:" + at + "resources.requests", "Forbidden:" + at + "resources.limits"},
		c(`{"requests":{"cpu":"2","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Gi"}}`):                                         {"Invalid:" + at + "resources.requests"},
		c(`{"requests":{"cpu":"1","memory":"1Mi","example.com/x":"1"},"limits":{"cpu":"1","memory":"1Gi","example.com/x":"1"}}`): {"Forbidden:spec"},
		one("containers", "c", some+`,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]`):               {"Forbidden:spec"},
		one("containers", "d", some):     {"Forbidden:spec.containers[0].name"},
		one("initContainers", "d", some): {"Forbidden:spec.initContainers[0].name"},
		`{"spec":{"initContainers":null,"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}}`:                                             {"Invalid:spec", "Forbidden:spec.containers", "Forbidden:spec.initContainers"},
		one("initContainers", "one", `"resources":{"requests":{"cpu":"150m","memory":"1Mi"},"limits":{"cpu":"1","memory":"1Gi"}}`):                      {},
		one("initContainers", "one", `"resources":{"requests":{"cpu":"1","memory":"1Mi","ephemeral-storage":"1"},"limits":{"cpu":"1","memory":"1Gi"}}`): {"Forbidden:spec.initContainers[0]"},
		`{"spec":{"nodeName":"n","activeDeadlineSeconds":3},"metadata":{"labels":{"a":"b"}}}`:                                                           {},
	} {
		obj, faults := k.Update(t, old, patch, "resize")
		require.Equal(t, want, faults, patch)
		if len(want) == 0 {
			require.Equal(t, "i", obj.Objects("spec", "containers")[0].String("image"), patch)
			require.Empty(t, obj.String("spec", "nodeName"), patch)
			require.Empty(t, obj.Labels(), patch)
		}
	}
}

func TestPodResizeNeedsANodeAndAClass(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	const more = `{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"150m","memory":"100Mi"},"limits":{"cpu":"200m","memory":"200Mi"}}}]}}`
	pod := func(more string) *meta.Object {
		obj, faults := k.Create(t, resizable(more))
		require.Empty(t, faults)
		return obj
	}
	running := func(status string) *meta.Object {
		obj, faults := k.Update(t, pod(""), `{"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"i","ready":true,"restartCount":0,`+status+`}]}}`, "status")
		require.Empty(t, faults)
		return obj
	}
	mirror := pod(`"nodeName":"n",`)
	mirror.Set("x", "metadata", "annotations", "kubernetes.io/config.mirror")
	best, _ := k.Create(t, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	both := func(first, second string) *meta.Object {
		return running(first + `},{"name":"other","image":"i","imageID":"i","ready":true,"restartCount":0,` + second)
	}
	counted := pod(`"resourceClaims":[{"name":"x","resourceClaimName":"claim"}],`)
	counted.Set([]any{map[string]any{"resourceClaimName": "claim"}}, "status", "nodeAllocatableResourceClaimStatuses")
	for name, test := range map[string]struct {
		pod  *meta.Object
		want []string
	}{
		"whose claims count":           {counted, []string{"Forbidden:spec"}},
		"whose first container can":    {both(`"state":{"running":{}},"resources":{}`, `"state":{"running":{}}`), []string{}},
		"whose first container cannot": {both(`"state":{"running":{}}`, `"state":{"running":{}},"resources":{}`), []string{"Forbidden:spec"}},
		"whose first does not run":     {both(`"state":{"terminated":{"exitCode":0}}`, `"state":{"running":{}},"resources":{}`), []string{}},
		"new":                          {pod(""), []string{}},
		"on a node that can":           {running(`"state":{"running":{}},"resources":{}`), []string{}},
		"on a node that cannot":        {running(`"state":{"running":{}}`), []string{"Forbidden:spec"}},
		"that waits":                   {running(`"state":{"waiting":{}}`), []string{}},
		"a node's own":                 {mirror, []string{"Forbidden:[]"}},
		"of Windows":                   {pod(`"os":{"name":"windows"},`), []string{"Forbidden:[]"}},
		"that asks for nothing":        {best, []string{"Invalid:spec"}},
	} {
		_, faults := k.Update(t, test.pod, more, "resize")
		require.Equal(t, test.want, faults, name)
	}
}

// TestInitContainersStartOnce checks that a resize must not restart an init container, except in stored
// pods.
func TestInitContainersStartOnce(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	pod := func(init string) string {
		return `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}],"initContainers":[{"name":"one","image":"i",` + init + `}]}}`
	}
	const restarts = `"resizePolicy":[{"resourceName":"memory","restartPolicy":"NotRequired"},{"resourceName":"cpu","restartPolicy":"RestartContainer"}]`
	const at = "Invalid:spec.initContainers[0].resizePolicy[1].restartPolicy"
	k.Creates(t, map[string][]string{
		pod(some + `,` + restarts):                             {at},
		pod(some + `,"restartPolicy":"Always",` + restarts):    nil,
		pod(some + `,"restartPolicy":"OnFailure",` + restarts): {at},
	})
	old, faults := k.Create(t, pod(some))
	require.Empty(t, faults)
	one := func(fields string) string { return `{"spec":{"initContainers":[{"name":"one",` + fields + `}]}}` }
	const more = `"resources":{"requests":{"cpu":"150m","memory":"100Mi"},"limits":{"cpu":"300m","memory":"200Mi"}}`
	for patch, want := range map[string][]string{
		one(more):                  {},
		one(some + `,` + restarts): {at, "Forbidden:spec.initContainers[0]", "Forbidden:spec.initContainers[0]"},
	} {
		_, faults := k.Update(t, old, patch, "resize")
		require.Equal(t, want, faults, patch)
	}
	old.Objects("spec", "initContainers")[0].Set([]any{map[string]any{"resourceName": "cpu", "restartPolicy": "RestartContainer"}}, "resizePolicy")
	_, faults = k.Update(t, old, one(more+`,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]`), "resize")
	require.Equal(t, []string{"Forbidden:spec.initContainers[0]"}, faults)
}

func TestPodLevelResize(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	pod := func(whole, rest string) string {
		return `{"metadata":{"name":"p"},"spec":{"resources":` + whole + `,` + rest + `}}`
	}
	const containers = `"containers":[{"name":"c","image":"i",` + some + `},{"name":"d","image":"i","resources":{"requests":{"cpu":"1"}}}]`
	const huge = `"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"hugepages-2Mi":"4Mi"}}}]`
	k.Creates(t, map[string][]string{
		pod(`{"limits":{"cpu":"100m"}}`, containers):              {"Invalid:spec.resources.requests", "Invalid:spec.resources.containers[0][cpu].limits"},
		pod(`{"requests":{"cpu":"1"}}`, containers):               {"Invalid:spec.resources.requests[cpu]"},
		pod(`{"limits":{"cpu":"2"}}`, containers):                 nil,
		pod(`{"limits":{"hugepages-2Mi":"2Mi","cpu":"1"}}`, huge): {"Invalid:spec.resources.requests[hugepages-2Mi]", "Invalid:spec.resources.limits[hugepages-2Mi]", "Invalid:spec.resources.containers[0][hugepages-2Mi].limits"},
	})
	for spec, want := range map[string]map[string]any{
		pod(`{"limits":{"cpu":"2"}}`, containers):                                {"limits": map[string]any{"cpu": "2"}, "requests": map[string]any{"cpu": "1100m", "memory": "100Mi"}},
		pod(`{"limits":{"cpu":"2"}}`, `"containers":[{"name":"c","image":"i"}]`): {"limits": map[string]any{"cpu": "2"}, "requests": map[string]any{"cpu": "2"}},
		pod(`{"requests":{"cpu":"2"}}`, containers):                              {"requests": map[string]any{"cpu": "2"}},
		pod(`{"limits":{"cpu":"9"}}`, `"initContainers":[{"name":"s","image":"i","restartPolicy":"Always",`+some+`},{"name":"one","image":"i","resources":{"requests":{"cpu":"5"}}}],`+containers): {
			"limits": map[string]any{"cpu": "9"}, "requests": map[string]any{"cpu": "5100m", "memory": "200Mi"}},
		pod(`{"limits":{"cpu":"9"}}`, huge): {"limits": map[string]any{"cpu": "9", "hugepages-2Mi": "4Mi"}, "requests": map[string]any{"cpu": "1", "hugepages-2Mi": "4Mi"}},
	} {
		obj, faults := k.Create(t, spec)
		require.Empty(t, faults, spec)
		require.Equal(t, want, obj.Map("spec", "resources"), spec)
	}
	old, _ := k.Create(t, pod(`{"limits":{"cpu":"2"}}`, containers))
	for patch, want := range map[string][]string{
		`{"limits":{"cpu":"3"}}`:                 {},
		`{"limits":{"cpu":null,"memory":"1Gi"}}`: {"Forbidden:spec.resources.limits"},
		`{"limits":{"hugepages-2Mi":"2Mi"}}`:     {"Forbidden:spec"},
		`null`:                                   {"Forbidden:spec.resources"},
		`{"requests":{"cpu":"1"}}`:               {"Invalid:spec.resources.requests[cpu]"},
	} {
		_, faults := k.Update(t, old, `{"spec":{"resources":`+patch+`}}`, "resize")
		require.Equal(t, want, faults, patch)
	}
}
