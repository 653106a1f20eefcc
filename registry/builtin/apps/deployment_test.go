package apps_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin/apps"
	"orch.io/controlplane/registry/internal/kindtest"
)

const template = `"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"example.com/app:1"}]}}`

func deployment(t *testing.T) kindtest.Kind {
	return kindtest.Of(t, names.Kubernetes, apps.Kinds(), "Deployment")
}

func ExampleKinds() {
	for _, k := range apps.Kinds() {
		t, err := resource.Compile(k, names.Orch)
		fmt.Println(t.GroupResource(), t.ShortNames, t.Categories, err)
	}
	// Output:
	// controllerrevisions.apps [] [] <nil>
	// daemonsets.apps [ds] [all] <nil>
	// deployments.apps [deploy] [all] <nil>
	// replicasets.apps [rs] [all] <nil>
	// statefulsets.apps [sts] [all] <nil>
}

func TestDeploymentDefaults(t *testing.T) {
	k := deployment(t)
	obj, faults := k.Create(t, `{"spec":{"selector":{"matchLabels":{"app":"x"}},`+template+`}}`)
	require.Empty(t, faults)
	require.Equal(t, map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"},
	}, obj.Map("spec", "strategy"))
	require.Equal(t, int64(1), obj.Int("spec", "replicas"))
	require.Equal(t, int64(10), obj.Int("spec", "revisionHistoryLimit"))
	require.Equal(t, int64(600), obj.Int("spec", "progressDeadlineSeconds"))
	pod := obj.Map("spec", "template", "spec")
	require.Equal(t, "Always", pod["restartPolicy"])
	require.NotContains(t, pod, "enableServiceLinks", "that is a pod's own")
	require.NotContains(t, pod, "tolerations")
	require.Equal(t, map[string]any{}, obj.Map("status"))
}

func TestDeploymentViolations(t *testing.T) {
	k := deployment(t)
	const selector = `"selector":{"matchLabels":{"app":"x"}},`
	for spec, want := range map[string][]string{
		template:                    {"Required:spec.selector", "Invalid:spec.template.metadata.labels"},
		`"selector":{},` + template: {"Invalid:spec.selector"},
		`"selector":{"matchLabels":{"app":"no"}},` + template:                                                                                {"Invalid:spec.template.metadata.labels"},
		selector + template + `,"strategy":{"type":"Blue"}`:                                                                                  {"NotSupported:spec.strategy"},
		selector + template + `,"strategy":{"type":"Recreate","rollingUpdate":{}}`:                                                           {"Forbidden:spec.strategy.rollingUpdate"},
		selector + template + `,"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}}`:                                              {"Invalid:spec.strategy.rollingUpdate.maxUnavailable"},
		selector + template + `,"strategy":{"rollingUpdate":{"maxUnavailable":"101%"}}`:                                                      {"Invalid:spec.strategy.rollingUpdate.maxUnavailable"},
		selector + template + `,"strategy":{"rollingUpdate":{"maxSurge":"x"}}`:                                                               {"Invalid:spec.strategy.rollingUpdate.maxSurge"},
		selector + template + `,"replicas":-1`:                                                                                               {"Invalid:spec.replicas"},
		selector + template + `,"minReadySeconds":700`:                                                                                       {"Invalid:spec.progressDeadlineSeconds"},
		selector + `"template":{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`: {"NotSupported:spec.template.spec.restartPolicy"},
	} {
		_, got := k.Create(t, `{"spec":{`+spec+`}}`)
		require.Equal(t, want, got, spec)
	}
}

func TestDeploymentUpdates(t *testing.T) {
	k := deployment(t)
	old, _ := k.Create(t, `{"metadata":{"generation":1},"spec":{"selector":{"matchLabels":{"app":"x"}},`+template+`}}`)
	old.SetGeneration(1)
	for patch, want := range map[string]int64{
		`{"metadata":{"labels":{"a":"b"}}}`:      1,
		`{"metadata":{"annotations":{"a":"b"}}}`: 2,
		`{"spec":{"replicas":2}}`:                2,
		`{"status":{"replicas":9}}`:              1,
	} {
		obj, faults := k.Update(t, old, patch, "")
		require.Empty(t, faults, patch)
		require.Equal(t, want, obj.Generation(), patch)
		require.Equal(t, map[string]any{}, obj.Map("status"), patch)
	}
	_, faults := k.Update(t, old, `{"spec":{"selector":{"matchLabels":{"app":"y"}},"template":{"metadata":{"labels":{"app":"y"}}}}}`, "")
	require.Equal(t, []string{"Invalid:spec.selector"}, faults)

	obj, faults := k.Update(t, old, `{"spec":{"replicas":9},"metadata":{"labels":{"l":"1"},"annotations":{"a":"1"}},"status":{"observedGeneration":1,"replicas":1}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, int64(1), obj.Int("spec", "replicas"), "the status endpoint leaves the spec alone")
	require.Equal(t, int64(1), obj.Generation())
	require.Empty(t, obj.Labels(), "nor does it write labels")
	require.Equal(t, "1", obj.Annotations()["a"])
	_, faults = k.Update(t, old, `{"status":{"replicas":-1}}`, "status")
	require.Equal(t, []string{"Invalid:status.replicas", "Invalid:status.updatedReplicas", "Invalid:status.readyReplicas", "Invalid:status.availableReplicas"}, faults)
}

func TestDeploymentColumns(t *testing.T) {
	k := deployment(t)
	obj, _ := k.Create(t, `{"spec":{"replicas":2,"selector":{"matchLabels":{"app":"x"}},`+template+`}}`)
	var got []any
	for _, c := range k.Columns {
		if c.Name != "Age" {
			got = append(got, c.Cell(obj))
		}
	}
	require.Equal(t, []any{"a", "0/2", int64(0), int64(0), "c", "example.com/app:1", "app=x"}, got)
}
