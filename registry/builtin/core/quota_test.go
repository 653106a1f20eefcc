package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestLimitRange(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "LimitRange")
	limits := func(items string) string { return `{"spec":{"limits":[` + items + `]}}` }
	k.Creates(t, map[string][]string{
		`{}`:       nil,
		limits(``): nil,
		limits(`{"type":"Pod","max":{"cpu":"1"}},{"type":"example.com/x","max":{"example.com/y":"1"}}`): nil,
		limits(`{"type":"a b"}`):                                                                                             {"Invalid:spec.limits[0].type"},
		limits(`{"type":"Widget"}`):                                                                                          {"Invalid:spec.limits[0].type"},
		limits(`{"type":"Pod"},{"type":"Pod"}`):                                                                              {"Duplicate:spec.limits[1].type"},
		limits(`{"type":"Pod","default":{"cpu":"1"}}`):                                                                       {"Forbidden:spec.limits[0].default"},
		limits(`{"type":"Pod","max":{"pods":"1"}}`):                                                                          {"Invalid:spec.limits[0].max[pods]"},
		limits(`{"type":"PersistentVolumeClaim"}`):                                                                           {"Required:spec.limits[0].limits"},
		limits(`{"type":"PersistentVolumeClaim","min":{"storage":"2"},"max":{"storage":"1"}}`):                               {"Invalid:spec.limits[0].min[storage]"},
		limits(`{"type":"PersistentVolumeClaim","min":{"storage":"1","what":"1"}}`):                                          {"Invalid:spec.limits[0].min[what]"},
		limits(`{"type":"Container","default":{"cpu":"1"},"defaultRequest":{"cpu":"2"}}`):                                    {"Invalid:spec.limits[0].defaultRequest[cpu]"},
		limits(`{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"2"}}`):                                                   {"Invalid:spec.limits[0].min[cpu]", "Invalid:spec.limits[0].defaultRequest[cpu]", "Invalid:spec.limits[0].default[cpu]"},
		limits(`{"type":"Container","max":{"cpu":"4"},"min":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"5"}}`):                {"Invalid:spec.limits[0].maxLimitRequestRatio[cpu]"},
		limits(`{"type":"Container","max":{"cpu":"4"},"min":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"4"}}`):                nil,
		limits(`{"type":"Container","max":{"memory":"64Pi"},"min":{"memory":"16Pi"},"maxLimitRequestRatio":{"memory":"4"}}`): nil,
		limits(`{"type":"Container","max":{"memory":"64Pi"},"min":{"memory":"16Pi"},"maxLimitRequestRatio":{"memory":"5"}}`): {"Invalid:spec.limits[0].maxLimitRequestRatio[memory]"},
		limits(`{"type":"Container","max":{"cpu":"300m"},"min":{"cpu":"100m"},"maxLimitRequestRatio":{"cpu":"3"}}`):          nil,
		limits(`{"type":"Container","maxLimitRequestRatio":{"cpu":"500m"}}`):                                                 {"Invalid:spec.limits[0].maxLimitRequestRatio[cpu]"},
		limits(`{"type":"Container","default":{"example.com/x":"2"},"defaultRequest":{"example.com/x":"1"}}`):                {"Invalid:spec.limits[0].defaultRequest[example.com/x]"},
		limits(`{"type":"Container","default":{"example.com/x":"2"},"defaultRequest":{"example.com/x":"2"}}`):                nil,
		limits(`{"type":"Container","default":{"hugepages-2Mi":"2Mi"},"defaultRequest":{"hugepages-2Mi":"1Mi"}}`):            {"Invalid:spec.limits[0].defaultRequest[hugepages-2Mi]"},
		limits(`{"type":"Container","max":{"cpu":"1"},"default":{"cpu":"2"},"defaultRequest":{"cpu":"1","memory":"1"}}`):     {"Invalid:spec.limits[0].default[cpu]"},
	})
	obj, _ := k.Create(t, limits(`{"type":"Container","max":{"cpu":"4"},"min":{"cpu":"1","memory":"1Gi"}}`))
	l := obj.Objects("spec", "limits")[0]
	require.Equal(t, "4 4 1Gi", l.String("default", "cpu")+" "+l.String("defaultRequest", "cpu")+" "+l.String("defaultRequest", "memory"))
}

func TestResourceQuota(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "ResourceQuota")
	selector := func(e string) string {
		return `{"spec":{"hard":{"pods":"1"},"scopeSelector":{"matchExpressions":[` + e + `]}}}`
	}
	const at = "spec.scopeSelector.matchExpressions"
	k.Creates(t, map[string][]string{
		`{}`: nil,
		`{"spec":{"hard":{"pods":"1","requests.cpu":"500m","count/deployments.apps":"1","a.storageclass.storage.k8s.io/requests.storage":"1Gi","hugepages-2Mi":"1Mi"}}}`: nil,
		`{"spec":{"hard":{"x":"1"}}}`:                                                                                  {"Invalid:spec.hard[x]", "Invalid:spec.hard[x]"},
		`{"spec":{"hard":{"storage":"1"}}}`:                                                                            {"Invalid:spec.hard[storage]"},
		`{"spec":{"hard":{"pods":"-1","secrets":"500m","count/x":"500m"}}}`:                                            {"Invalid:spec.hard[count/x]", "Invalid:spec.hard[pods]", "Invalid:spec.hard[secrets]"},
		`{"spec":{"scopes":["BestEffort","NotBestEffort"]}}`:                                                           {"Invalid:spec.scopes"},
		`{"spec":{"scopes":["Sometimes"]}}`:                                                                            {"Invalid:spec.scopes"},
		`{"spec":{"scopes":["BestEffort"],"hard":{"pods":"1","cpu":"1"}}}`:                                             {"Invalid:spec.scopes"},
		`{"spec":{"scopes":["Terminating"],"hard":{"limits.cpu":"1"}}}`:                                                nil,
		`{"spec":{"scopes":["Terminating"],"hard":{"services":"1"}}}`:                                                  {"Invalid:spec.scopes"},
		`{"spec":{"scopes":["VolumeAttributesClass"],"hard":{"pods":"1"}}}`:                                            {"Invalid:spec.scopes"},
		`{"spec":{"scopes":["VolumeAttributesClass"],"hard":{"count/pods":"1"}}}`:                                      nil,
		selector(`{"scopeName":"PriorityClass","operator":"In","values":["high"]}`):                                    nil,
		selector(`{"scopeName":"PriorityClass","operator":"In"}`):                                                      {"Required:" + at + ".values"},
		selector(`{"scopeName":"PriorityClass","operator":"Exists","values":["a"]}`):                                   {"Invalid:" + at + ".values"},
		selector(`{"scopeName":"BestEffort","operator":"In","values":["a"]}`):                                          {"Invalid:" + at + ".operator"},
		selector(`{"scopeName":"Nope","operator":"Maybe"}`):                                                            {"Invalid:" + at + ".scopeName", "Invalid:" + at + ".operator"},
		selector(`{"scopeName":"VolumeAttributesClass","operator":"Exists"}`):                                          {"Invalid:" + at},
		selector(`{"scopeName":"Terminating","operator":"Exists"},{"scopeName":"NotTerminating","operator":"Exists"}`): {"Invalid:" + at},
	})
	old, _ := k.Create(t, `{"spec":{"hard":{"pods":"3","limits.cpu":"2"}},"status":{"used":{"pods":"1"}}}`)
	require.Empty(t, old.Map("status"))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"hard":{"pods":"5"}}}`:                            nil,
		`{"spec":{"scopes":["NotTerminating"]}}`:                    {"Invalid:spec.scopes"},
		`{"spec":{"scopeSelector":{}},"status":{"used":{"x":"1"}}}`: nil,
	})
	_, faults := k.Update(t, old, `{"status":{"hard":{"zzz":"1"},"used":{"pods":"-1"}}}`, "status")
	require.ElementsMatch(t, []string{"Invalid:status.hard[zzz]", "Invalid:status.hard[zzz]", "Invalid:status.used[pods]"}, faults)
	now, faults := k.Update(t, old, `{"spec":{"hard":{"pods":"9"}},"status":{"hard":{"pods":"3","limits.cpu":"2","requests.cpu":"1"},"used":{"pods":"1"}}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, "pods: 1/3, requests.cpu: 0/1", k.Cell(t, now, "Request"))
	require.Equal(t, "limits.cpu: 0/2", k.Cell(t, now, "Limit"))
	require.Equal(t, "3", now.String("spec", "hard", "pods"))
}
