package node_test

import (
	"fmt"
	"testing"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/node"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range node.Kinds() {
		fmt.Println(k)
	}
	// Output: kind RuntimeClass.node.orch.io (Go type node.RuntimeClass)
}

func TestRuntimeClass(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, node.Kinds(), "RuntimeClass")
	tolerations := func(list string) string { return `{"handler":"r","scheduling":{"tolerations":[` + list + `]}}` }
	k.Creates(t, map[string][]string{
		`{"handler":"runc","overhead":{"podFixed":{"cpu":"1"}},"scheduling":{"nodeSelector":{"a":"b"},"tolerations":[{"operator":"Exists"}]}}`: nil,
		`{"handler":"runc","overhead":{},"scheduling":{}}`: nil,
		`{}`:                    {"Required:handler"},
		`{"handler":"Bad_One"}`: {"Invalid:handler"},
		`{"handler":"r","overhead":{"podFixed":{"cpu":"-1","pods":"1"}}}`: {"Invalid:overhead.limits[cpu]", "Invalid:overhead.limits[pods]"},
		`{"handler":"r","scheduling":{"nodeSelector":{"a b":"c"}}}`:       {"Invalid:scheduling.nodeSelector"},
		tolerations(`{"key":"k","operator":"Nope"}`):                      {"NotSupported:scheduling.tolerations[0].operator"},
		tolerations(`{"key":"k"},{"key":"k"}`):                            {"Duplicate:scheduling.tolerations[1]"},
		tolerations(`{"operator":"Equal"}`):                               {"Invalid:scheduling.tolerations[0].operator"},
	})
	old, _ := k.Create(t, `{"handler":"runc"}`)
	k.Updates(t, old, map[string][]string{
		`{"handler":"kata"}`: {"Invalid:handler"},
		`{"handler":""}`:     {"Required:handler", "Invalid:handler"},
		`{"overhead":{"podFixed":{"cpu":"1"}},"scheduling":{"nodeSelector":{"a":"b"}}}`: nil,
	})
}
