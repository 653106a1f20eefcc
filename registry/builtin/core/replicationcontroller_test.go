package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplicationController(t *testing.T) {
	k := kind(t, "ReplicationController")
	const template = `"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	k.Creates(t, map[string][]string{
		`{"spec":{` + template + `}}`:       nil,
		`{}`:                                {"Required:spec.selector", "Required:spec.template"},
		`{"spec":{"selector":{"app":"x"}}}`: {"Required:spec.template"},
		`{"spec":{"selector":{"app":"z"},` + template + `}}`: {"Invalid:spec.template.metadata.labels"},
		`{"spec":{"replicas":-1,` + template + `}}`:          {"Invalid:spec.replicas"},
		`{"spec":{"minReadySeconds":-1,` + template + `}}`:   {"Invalid:spec.minReadySeconds"},
		`{"spec":{"selector":{"app":"x"},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`: {"NotSupported:spec.template.spec.restartPolicy"},
	})
	old, _ := k.Create(t, `{"spec":{`+template+`}}`)
	require.Equal(t, map[string]any{"app": "x"}, old.Map("spec", "selector"))
	require.Equal(t, map[string]string{"app": "x"}, old.Labels())
	require.Equal(t, int64(1), old.Int("spec", "replicas"))
	own, _ := k.Create(t, `{"metadata":{"labels":{"own":"1"}},"spec":{`+template+`}}`)
	require.Equal(t, map[string]string{"own": "1"}, own.Labels())
	k.Updates(t, old, map[string][]string{
		`{"spec":{"selector":{"app":"y"},"template":{"metadata":{"labels":{"app":"y"}}}}}`: nil,
		`{"spec":{"selector":null}}`: nil,
		`{"spec":{"template":null}}`: {"Required:spec.template"},
	})
	stored, _ := k.Create(t, `{"spec":{`+template+`}}`)
	stored.Objects("spec", "template", "spec", "containers")[0].Set("Not A Label", "name")
	k.Updates(t, stored, map[string][]string{
		`{"spec":{"replicas":3}}`:                         nil,
		`{"spec":{"template":{"spec":{"hostname":"h"}}}}`: {"Invalid:spec.template.spec.containers[0].name"},
	})
	_, faults := k.Update(t, old, `{"status":{"replicas":1,"fullyLabeledReplicas":2,"readyReplicas":0,"availableReplicas":1}}`, "status")
	require.Equal(t, []string{"Invalid:status.fullyLabeledReplicas", "Invalid:status.availableReplicas"}, faults)
	for column, want := range map[string]any{"Desired": int64(1), "Current": int64(0), "Ready": int64(0), "Containers": "c", "Selector": "app=x"} {
		require.Equal(t, want, k.Cell(t, old, column), column)
	}
}
