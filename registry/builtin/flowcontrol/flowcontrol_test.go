package flowcontrol_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/flowcontrol"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range flowcontrol.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind FlowSchema.flowcontrol.apiserver.orch.io (Go type flowcontrol.FlowSchema)
	// kind PriorityLevelConfiguration.flowcontrol.apiserver.orch.io (Go type flowcontrol.PriorityLevelConfiguration)
}

func TestFlowSchema(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, flowcontrol.Kinds(), "FlowSchema")
	spec := func(rest string) string {
		return `{"spec":{"priorityLevelConfiguration":{"name":"l"},"matchingPrecedence":10` + rest + `}}`
	}
	rule := func(text string) string { return spec(`,"rules":[{` + text + `}]`) }
	const user, pods = `"subjects":[{"kind":"User","user":{"name":"u"}}]`, `"verbs":["get"],"apiGroups":[""],"resources":["pods"],"namespaces":["*"]`
	subject := func(text string) string {
		return rule(`"subjects":[{` + text + `}],"resourceRules":[{` + pods + `}]`)
	}
	resources := func(text string) string { return rule(user + `,"resourceRules":[{` + text + `}]`) }
	paths := func(list string) string {
		return rule(user + `,"nonResourceRules":[{"verbs":["get"],"nonResourceURLs":` + list + `}]`)
	}
	const at, r = "spec.rules[0]", "spec.rules[0].resourceRules[0]"
	k.Creates(t, map[string][]string{
		`{}`:     {"Required:spec.priorityLevelConfiguration.name"},
		spec(``): nil,
		`{"spec":{"priorityLevelConfiguration":{"name":"A B"},"matchingPrecedence":-1}}`:  {"Invalid:spec.matchingPrecedence", "Invalid:spec.priorityLevelConfiguration.name"},
		`{"spec":{"priorityLevelConfiguration":{"name":"l"},"matchingPrecedence":10001}}`: {"Invalid:spec.matchingPrecedence"},
		`{"spec":{"priorityLevelConfiguration":{"name":"l"},"matchingPrecedence":1}}`:     {"Invalid:spec.matchingPrecedence"},
		spec(`,"distinguisherMethod":{"type":"x"}`):                                       {"NotSupported:spec.distinguisherMethod.type"},
		rule(``):        {"Required:" + at + ".subjects", "Required:" + at},
		rule(user):      {"Required:" + at},
		resources(``):   {"Required:" + r + ".verbs", "Required:" + r + ".apiGroups", "Required:" + r + ".resources", "Required:" + r + ".namespaces"},
		resources(pods): nil,
		resources(`"verbs":["get"],"apiGroups":["a","a"],"resources":["a"],"clusterScope":true`):           nil,
		resources(`"verbs":["*","get"],"apiGroups":["*",""],"resources":["*","x"],"namespaces":["*","a"]`): {"Invalid:" + r + ".verbs", "Invalid:" + r + ".apiGroups", "Invalid:" + r + ".resources", "Invalid:" + r + ".namespaces"},
		resources(`"verbs":["fly"],"apiGroups":[""],"resources":["x"],"namespaces":["A B"]`):               {"NotSupported:" + r + ".verbs", "Invalid:" + r + ".namespaces[0]"},
		subject(`"kind":"x"`):                         {"NotSupported:" + at + ".subjects[0].kind"},
		subject(`"kind":"User"`):                      {"Required:" + at + ".subjects[0].user"},
		subject(`"kind":"User","user":{"name":""}`):   {"Required:" + at + ".subjects[0].user.name"},
		subject(`"kind":"Group","user":{"name":"u"}`): {"Required:" + at + ".subjects[0].group", "Forbidden:" + at + ".subjects[0].user"},
		subject(`"kind":"ServiceAccount","serviceAccount":{"namespace":"*","name":"*"}`):   {"Invalid:" + at + ".subjects[0].serviceAccount.namespace"},
		subject(`"kind":"ServiceAccount","serviceAccount":{"namespace":"a","name":"A B"}`): {"Invalid:" + at + ".subjects[0].serviceAccount.name"},
		paths(`["/","/a/*","/a/"]`): nil,
		paths(`["*"]`):              nil,
		paths(`["*","/a"]`):         {"Invalid:" + at + ".nonResourceRules[0].nonResourceURLs"},
		paths(`["","x","/a b","/a//b","/a*b"]`): {
			"Invalid:" + at + ".nonResourceRules[0].nonResourceURLs[0]", "Invalid:" + at + ".nonResourceRules[0].nonResourceURLs[1]",
			"Invalid:" + at + ".nonResourceRules[0].nonResourceURLs[2]", "Invalid:" + at + ".nonResourceRules[0].nonResourceURLs[3]",
			"Invalid:" + at + ".nonResourceRules[0].nonResourceURLs[4]"},
		`{"metadata":{"name":"catch-all"},"spec":{"priorityLevelConfiguration":{"name":"catch-all"},"matchingPrecedence":10000}}`: {"Invalid:spec"},
	})
	old, _ := k.Create(t, `{"spec":{"priorityLevelConfiguration":{"name":"l"}}}`)
	require.Equal(t, int64(1000), old.Int("spec", "matchingPrecedence"))
	require.Equal(t, "?", k.Cell(t, old, "MissingPL"))
	require.Equal(t, "<none>", k.Cell(t, old, "DistinguisherMethod"))
	_, faults := k.Update(t, old, `{"status":{"conditions":[{"status":"x"},{"type":"A","status":"True"},{"type":"A"}]}}`, "status")
	require.Equal(t, []string{"Required:status.conditions[0].type", "Duplicate:status.conditions[2].type"}, faults)
	dangling, _ := k.Update(t, old, `{"status":{"conditions":[{"type":"Dangling","status":"True"}]}}`, "status")
	require.Equal(t, "True", k.Cell(t, dangling, "MissingPL"))
}

func TestPriorityLevelConfiguration(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, flowcontrol.Kinds(), "PriorityLevelConfiguration")
	limited := func(text string) string { return `{"spec":{"type":"Limited","limited":{` + text + `}}}` }
	queues := func(text string) string {
		return limited(`"limitResponse":{"type":"Queue","queuing":{` + text + `}}`)
	}
	const at, q = "spec.limited.", "spec.limited.limitResponse.queuing"
	k.Creates(t, map[string][]string{
		`{}`:                          {"Required:spec.type"},
		`{"spec":{"type":"x"}}`:       {"NotSupported:spec.type"},
		`{"spec":{"type":"Limited"}}`: {"Required:spec.limited"},
		`{"spec":{"type":"Exempt"}}`:  {"Invalid:spec.type"},
		`{"spec":{"type":"Limited","exempt":{},"limited":{"limitResponse":{"type":"Reject"}}}}`:                                  {"Forbidden:spec.exempt"},
		`{"metadata":{"name":"exempt"},"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":5}}}`:                        nil,
		`{"metadata":{"name":"exempt"},"spec":{"type":"Exempt","limited":{"limitResponse":{"type":"Reject"}}}}`:                  {"Forbidden:spec.limited", "Invalid:spec"},
		`{"metadata":{"name":"exempt"},"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":-1,"lendablePercent":101}}}`: {"Invalid:spec.exempt.nominalConcurrencyShares", "Invalid:spec.exempt.lendablePercent"},
		`{"metadata":{"name":"catch-all"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}`:              {"Invalid:spec"},
		limited(``):                                               {"Required:" + at + "limitResponse.type"},
		limited(`"limitResponse":{"type":"x"}`):                   {"NotSupported:" + at + "limitResponse.type"},
		limited(`"limitResponse":{"type":"Queue"}`):               {"Required:" + q},
		limited(`"limitResponse":{"type":"Reject","queuing":{}}`): {"Forbidden:" + q},
		limited(`"limitResponse":{"type":"Reject"},"nominalConcurrencyShares":-1,"lendablePercent":-1,"borrowingLimitPercent":-1`): {"Invalid:" + at + "nominalConcurrencyShares", "Invalid:" + at + "lendablePercent", "Invalid:" + at + "borrowingLimitPercent"},
		queues(`"queues":-1,"handSize":-1,"queueLengthLimit":-1`):                                                                  {"Invalid:" + q + ".queueLengthLimit", "Invalid:" + q + ".queues", "Invalid:" + q + ".handSize"},
		queues(`"queues":3,"handSize":4`):        {"Invalid:" + q + ".handSize"},
		queues(`"queues":512,"handSize":8`):      {"Invalid:" + q + ".handSize"},
		queues(`"queues":10000001,"handSize":1`): {"Invalid:" + q + ".queues"},
		queues(`"queues":1,"handSize":1`):        nil,
	})
	old, _ := k.Create(t, queues(`"queues":0`))
	require.Equal(t, []any{"Limited", int64(30), int64(64), int64(8), int64(50)}, []any{
		k.Cell(t, old, "Type"), k.Cell(t, old, "NominalConcurrencyShares"), k.Cell(t, old, "Queues"), k.Cell(t, old, "HandSize"), k.Cell(t, old, "QueueLengthLimit"),
	})
	_, faults := k.Update(t, old, `{"status":{"conditions":[{"type":"A"},{"type":"A"}]}}`, "status")
	require.Equal(t, []string{"Duplicate:status.conditions[1].type"}, faults)
}
