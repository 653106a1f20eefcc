package apps_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry/builtin/apps"
	"orch.io/controlplane/registry/internal/kindtest"
)

const pods = `"selector":{"matchLabels":{"app":"x"}},` + template

// badPods are pod specs that are invalid in all kinds.
var badPods = map[string][]string{
	`{"spec":{"minReadySeconds":-1,` + pods + `}}`:                        {"Invalid:spec.minReadySeconds"},
	`{"spec":{"selector":{},` + template + `}}`:                           {"Invalid:spec.selector"},
	`{"spec":{"selector":{"matchLabels":{"app":"no"}},` + template + `}}`: {"Invalid:spec.template.metadata.labels"},
	`{"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`:   {"NotSupported:spec.template.spec.restartPolicy"},
	`{"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"activeDeadlineSeconds":1,"containers":[{"name":"c","image":"i"}]}}}}`: {"Forbidden:spec.template.spec.activeDeadlineSeconds"},
}

func TestReplicaSet(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "ReplicaSet")
	k.Creates(t, badPods)
	k.Creates(t, map[string][]string{
		`{"spec":{` + pods + `}}`:                                            nil,
		`{"spec":{` + template + `}}`:                                        {"Required:spec.selector", "Invalid:spec.template.metadata.labels"},
		`{"spec":{"replicas":-1,` + pods + `}}`:                              {"Invalid:spec.replicas"},
		`{"spec":{"selector":{"matchLabels":{"a b":"x"}},` + template + `}}`: {"Invalid:spec.selector.matchLabels", "Invalid:spec.selector"},
	})
	old, _ := k.Create(t, `{"metadata":{"name":"a.b"},"spec":{`+pods+`}}`)
	require.Equal(t, int64(1), old.Int("spec", "replicas"))
	require.Len(t, k.Warn(k.NewChange(t.Context(), old, nil, "")), 1, "the name has a dot")
	k.Updates(t, old, map[string][]string{
		`{"spec":{"replicas":3,"minReadySeconds":1}}`:                                                      nil,
		`{"spec":{"selector":{"matchLabels":{"app":"y"}},"template":{"metadata":{"labels":{"app":"y"}}}}}`: {"Invalid:spec.selector"},
		`{"spec":{"selector":{"matchLabels":{"app":"y"}}}}`:                                                {"Invalid:spec.template.metadata.labels", "Invalid:spec.selector"},
	})
	for status, want := range map[string][]string{
		`{"replicas":2,"fullyLabeledReplicas":2,"readyReplicas":2,"availableReplicas":1,"terminatingReplicas":9}`: {},
		`{"replicas":1,"fullyLabeledReplicas":2,"readyReplicas":0,"availableReplicas":1}`:                         {"Invalid:status.fullyLabeledReplicas", "Invalid:status.availableReplicas"},
		`{"terminatingReplicas":-1}`: {"Invalid:status.terminatingReplicas"},
	} {
		_, faults := k.Update(t, old, `{"status":`+status+`}`, "status")
		require.Equal(t, want, faults, status)
	}
	obj, _ := k.Update(t, old, `{"status":{"replicas":2,"readyReplicas":1}}`, "status")
	for column, want := range map[string]any{"Desired": int64(1), "Current": int64(2), "Ready": int64(1), "Containers": "c", "Images": "example.com/app:1", "Selector": "app=x"} {
		require.Equal(t, want, k.Cell(t, obj, column), column)
	}
}

func TestDaemonSet(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "DaemonSet")
	k.Creates(t, badPods)
	rolling := func(settings string) string {
		return `{"spec":{"updateStrategy":{"rollingUpdate":` + settings + `},` + pods + `}}`
	}
	const at = "spec.updateStrategy.rollingUpdate."
	k.Creates(t, map[string][]string{
		`{"spec":{` + template + `}}`:                                        {"Invalid:spec.template.metadata.labels"},
		`{"spec":{"selector":{"matchLabels":{"a b":"x"}},` + template + `}}`: {"Invalid:spec.selector.matchLabels"},
		`{"spec":{"updateStrategy":{"type":"Now"},` + pods + `}}`:            {"NotSupported:spec.updateStrategy"},
		`{"spec":{"updateStrategy":{"type":"OnDelete"},` + pods + `}}`:       nil,
		`{"spec":{"revisionHistoryLimit":-1,` + pods + `}}`:                  {"Invalid:spec.revisionHistoryLimit"},
		rolling(`{"maxUnavailable":0,"maxSurge":"10%"}`):                     nil,
		rolling(`{"maxUnavailable":0}`):                                      {"Required:" + at + "maxUnavailable"},
		rolling(`{"maxUnavailable":"0%","maxSurge":0}`):                      {"Required:" + at + "maxUnavailable"},
		rolling(`{"maxUnavailable":2,"maxSurge":1}`):                         {"Invalid:" + at + "maxSurge"},
		rolling(`{"maxUnavailable":"101%"}`):                                 {"Invalid:" + at + "maxUnavailable"},
		rolling(`{"maxUnavailable":0,"maxSurge":"101%"}`):                    {"Invalid:" + at + "maxSurge"},
		rolling(`{"maxUnavailable":-1}`):                                     {"Invalid:" + at + "maxUnavailable"},
	})
	old, _ := k.Create(t, `{"spec":{`+pods+`}}`)
	require.Equal(t, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}}, old.Map("spec", "updateStrategy"))
	require.Equal(t, int64(10), old.Int("spec", "revisionHistoryLimit"))
	require.Equal(t, "<none>", k.Cell(t, old, "Node Selector"))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"minReadySeconds":3}}`:                                                                   nil,
		`{"spec":{"updateStrategy":{"type":"OnDelete"}}}`:                                                  nil,
		`{"spec":{"selector":{"matchLabels":{"app":"y"}},"template":{"metadata":{"labels":{"app":"y"}}}}}`: {"Invalid:spec.selector"},
	})
	for patch, want := range map[string]string{
		`{"spec":{"minReadySeconds":3}}`:                                                "1",
		`{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"9"}}}`: "1",
		`{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`:                     "2",
	} {
		obj, _ := k.Update(t, old, patch, "")
		require.Equal(t, want, obj.Annotation(wellknown.TemplateGeneration), patch)
	}
	require.Empty(t, k.Warnings(t, nil, `{"spec":{`+pods+`}}`, ""))
	aliases := `"hostAliases":[{"ip":"1.2.3.4"},{"ip":"1.2.3.4"}]`
	warned, _ := k.Create(t, `{"spec":{`+strings.Replace(pods, `"containers":`, aliases+`,"containers":`, 1)+`}}`)
	duplicate := []string{`spec.template.spec.hostAliases[1].ip: duplicate ip "1.2.3.4"`}
	require.Equal(t, duplicate, k.Warnings(t, warned, `{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`, ""))
	require.Empty(t, k.Warnings(t, warned, `{"spec":{"minReadySeconds":3}}`, ""), "only a new template causes warnings")
	obj, faults := k.Update(t, old, `{"status":{"desiredNumberScheduled":3,"numberReady":4,"collisionCount":2}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, int64(3), k.Cell(t, obj, "Desired"))
	_, faults = k.Update(t, obj, `{"status":{"collisionCount":1,"numberMisscheduled":-1}}`, "status")
	require.Equal(t, []string{"Invalid:status.numberMisscheduled", "Invalid:status.collisionCount"}, faults)
}

func TestControllerRevision(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "ControllerRevision")
	k.Creates(t, map[string][]string{
		`{"data":{"a":{"b":1}},"revision":1}`: nil,
		`{"data":{}}`:                         nil,
		`{"revision":1}`:                      {"Required:data"},
		`{"data":{},"revision":-1}`:           {"Invalid:revision"},
	})
	old, _ := k.Create(t, `{"data":{"a":{"b":1},"c":2},"revision":1}`)
	k.Updates(t, old, map[string][]string{
		`{"revision":2}`:                       nil,
		`{"metadata":{"labels":{"a":"b"}}}`:    nil,
		`{"data":{"a":{"b":2}}}`:               {"Invalid:data"},
		`{"data":null}`:                        {"Invalid:data"},
		`{"data":{"a":{"b":2}},"revision":-1}`: {"Invalid:data", "Invalid:revision"},
	})
	require.Equal(t, int64(1), k.Cell(t, old, "Revision"))
	require.Equal(t, "<none>", k.Cell(t, old, "Controller"))
	for version, want := range map[string]string{"apps/v1": "statefulset.apps/s", "v1": "statefulset/s"} {
		owned := k.Object(t, `{"data":{},"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"},{"apiVersion":"`+version+`","kind":"StatefulSet","name":"s","uid":"u","controller":true}]}}`)
		require.Equal(t, want, k.Cell(t, owned, "Controller"))
	}
}

// TestControllerRevisionKeepsItsBytes checks that the data is not reformatted: controllers compare its
// bytes.
func TestControllerRevisionKeepsItsBytes(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "ControllerRevision")
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"args": []string{"a && b > \"c\" 2>&1", "<d>\u2028é"}, "cpu": 0.5, "n": 1e21}})
	require.NoError(t, err)
	obj, _ := k.Create(t, `{"data":`+string(data)+`,"revision":1}`)
	require.Contains(t, string(codec.EncodeJSON(nil, obj.Tree())), `"data":`+string(data))
	proto, err := codec.NewProto(k.Schema())
	require.NoError(t, err)
	require.Contains(t, string(proto.Append(nil, obj.Tree())), string(data))
}
