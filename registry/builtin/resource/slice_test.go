package resource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const pool = `"pool":{"name":"p","generation":1,"resourceSliceCount":1}`

func TestSlice(t *testing.T) {
	k := kind(t, "ResourceSlice")
	term := `{"matchExpressions":[{"key":"a","operator":"In","values":["x"]}]}`
	k.Creates(t, within(`{"spec":{%}}`, map[string][]string{
		``:                                       {"Required:spec.driver", "Required:spec.pool.name", "Invalid:spec.pool.resourceSliceCount", "Required:spec"},
		`"driver":"d.io","nodeName":"n",` + pool: nil,
		`"driver":"D.io","allNodes":true,` + pool:                                                                                nil,
		`"driver":"D_","perDeviceNodeSelection":true,` + pool:                                                                    {"Invalid:spec.driver"},
		`"driver":"` + strings.Repeat("d", 64) + `","nodeSelector":{"nodeSelectorTerms":[` + term + `]},` + pool:                 {"TooLong:spec.driver"},
		`"driver":"d.io",` + pool:                                                                                                {"Required:spec"},
		`"driver":"d.io","nodeName":"N_",` + pool:                                                                                {"Invalid:spec.nodeName"},
		`"driver":"d.io","nodeName":"",` + pool:                                                                                  {"Invalid:spec.nodeName", "Required:spec"},
		`"driver":"d.io","nodeName":"n","allNodes":true,` + pool:                                                                 {"Invalid:spec"},
		`"driver":"d.io","nodeName":"n","allNodes":false,` + pool:                                                                {"Invalid:spec.allNodes"},
		`"driver":"d.io","nodeSelector":{"nodeSelectorTerms":[` + term + `,` + term + `]},` + pool:                               {"Invalid:spec.nodeSelector.nodeSelectorTerms"},
		`"driver":"d.io","nodeName":"n","pool":{"name":"a/b","generation":0,"resourceSliceCount":1}`:                             nil,
		`"driver":"d.io","nodeName":"n","pool":{"name":"a//b","generation":-1,"resourceSliceCount":0}`:                           {"Invalid:spec.pool.name", "Invalid:spec.pool.generation", "Invalid:spec.pool.resourceSliceCount"},
		`"driver":"d.io","nodeName":"n","partitionTypeAttribute":"d.io/a","skipNodeOperations":["NodePrepareResources"],` + pool: nil,
		`"driver":"d.io","nodeName":"n","partitionTypeAttribute":"a","skipNodeOperations":["*","*","x"],` + pool:                 {"Invalid:spec.partitionTypeAttribute", "NotSupported:spec.skipNodeOperations[2]", "Duplicate:spec.skipNodeOperations[1]"},
	}))
	obj, _ := k.Create(t, `{"spec":{"driver":"d.io","nodeName":"n",`+pool+`}}`)
	k.Updates(t, obj, map[string][]string{
		`{"spec":{"pool":{"generation":2}}}`:         nil,
		`{"spec":{"driver":"e.io"}}`:                 {"Invalid:spec.driver"},
		`{"spec":{"pool":{"name":"q"}}}`:             {"Invalid:spec.pool.name"},
		`{"spec":{"nodeName":null,"allNodes":true}}`: {"Invalid:spec.nodeName"},
	})
	require.Equal(t, "n d.io p", strings.Join([]string{k.Cell(t, obj, "Node").(string), k.Cell(t, obj, "Driver").(string), k.Cell(t, obj, "Pool").(string)}, " "))
}

func TestDevices(t *testing.T) {
	k := kind(t, "ResourceSlice")
	k.Creates(t, within(`{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,%}}`, map[string][]string{
		`"devices":` + times(128, `{"name":"d#"}`):                                                                       nil,
		`"devices":` + times(129, `{"name":"d#"}`):                                                                       {"TooMany:spec.devices"},
		`"devices":` + times(65, `{"name":"d#","taints":[{"key":"a","effect":"None"}]}`):                                 {"TooMany:spec.devices"},
		`"devices":` + times(65, `{"name":"d#","consumesCounters":[{"counterSet":"c","counters":{"x":{"value":"1"}}}]}`): {"TooMany:spec.devices"},
		`"devices":` + times(64, `{"name":"d#","attributes":{"a":{"ints":[1]}}}`):                                        nil,
		`"devices":` + times(65, `{"name":"d#","attributes":{"a":{"ints":[1]}}}`):                                        {"TooMany:spec.devices"},
		`"devices":[{"name":"d"},{"name":"d"}]`:                                                                          {"Duplicate:spec.devices[1]"},
		`"devices":[{}]`:                                                                                                 {"Invalid:spec.devices[0].name"},
		`"sharedCounters":[{"name":"c","counters":{"x":{"value":"1"}}}]`:                                                 nil,
		`"sharedCounters":[{}]`:                                                                                          {"Required:spec.sharedCounters[0].name", "Required:spec.sharedCounters[0].counters"},
		`"sharedCounters":[{"name":"C_","counters":{"X_":{"value":"1"}}}]`:                                               {"Invalid:spec.sharedCounters[0].name", "Invalid:spec.sharedCounters[0].counters"},
		`"sharedCounters":` + times(2, `{"name":"c","counters":{"x":{"value":"1"}}}`):                                    {"Duplicate:spec.sharedCounters[1]"},
		`"sharedCounters":` + times(9, `{"name":"c#","counters":{"x":{"value":"1"}}}`):                                   {"TooMany:spec.sharedCounters"},
		`"devices":[{"name":"d"}],"sharedCounters":[{"name":"c","counters":{"x":{"value":"1"}}}]`:                        {"Invalid:spec"},
	}))
	at := "spec.devices[0]."
	k.Creates(t, within(`{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,"devices":[{"name":"d",%}]}}`, map[string][]string{
		`"consumesCounters":[{}]`: {"Required:" + at + "consumesCounters[0].counterSet", "Required:" + at + "consumesCounters[0].counters"},
		`"consumesCounters":` + times(2, `{"counterSet":"c","counters":{"x":{"value":"1"}}}`):                    {"Duplicate:" + at + "consumesCounters[1]"},
		`"consumesCounters":` + times(3, `{"counterSet":"c#","counters":{"x":{"value":"1"}}}`):                   {"TooMany:" + at + "consumesCounters"},
		`"consumesCounters":[{"counterSet":"c","counters":{"x":{"value":"1"}},"compatibilityGroups":["g","g"]}]`: {"Duplicate:" + at + "consumesCounters[0].compatibilityGroups[1]"},
		`"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]`:                         nil,
		`"taints":[{"key":"a b","value":"c d","effect":"Go"},{"key":"a"}]`:                                       {"Invalid:" + at + "taints[0].key", "Invalid:" + at + "taints[0].value", "NotSupported:" + at + "taints[0].effect", "Required:" + at + "taints[1].effect"},
		`"taints":` + times(17, `{"key":"a","effect":"None"}`):                                                   {"TooMany:" + at + "taints"},
		`"bindsToNode":true,"bindingConditions":["a"],"bindingFailureConditions":["b"]`:                          nil,
		`"bindingConditions":["a b"],"bindingFailureConditions":["b"]`:                                           {"Invalid:" + at + "bindingConditions[0]"},
		`"nodeName":"n"`: {"Invalid:spec.devices[0]"},
		`"nodeAllocatableResources":{"cpu":{"mapping":{"deviceMultiplier":"1"},"overhead":{"perPod":"1"}}}`:                                    nil,
		`"capacity":{"m":{"value":"1"}},"nodeAllocatableResources":{"cpu":{"mapping":{}},"memory":{"mapping":{"capacityKey":"m"}}}`:            {"Invalid:" + at + "nodeAllocatableResources[cpu].mapping", "Invalid:" + at + "nodeAllocatableResources[memory].mapping"},
		`"capacity":{"m":{"value":"1"}},"nodeAllocatableResources":{"hugepages-2Mi":{"mapping":{"capacityKey":"m","capacityMultiplier":"2"}}}`: nil,
		`"nodeAllocatableResources":{"memory":{"mapping":{"capacityKey":"m","capacityMultiplier":"0"}}}`: {
			"NotFound:" + at + "nodeAllocatableResources[memory].mapping.capacityKey", "Invalid:" + at + "nodeAllocatableResources[memory].mapping.capacityMultiplier"},
		`"nodeAllocatableResources":{"cpu":{"mapping":{"deviceMultiplier":"-1"}},"kubernetes.io/x":{"overhead":{"perContainer":"0"}}}`: {
			"Invalid:" + at + "nodeAllocatableResources[cpu].mapping.deviceMultiplier"},
		`"nodeAllocatableResources":{"cpu":{},"example.com/gpu":{"overhead":{"perPod":"1"}}}`: {
			"Required:" + at + "nodeAllocatableResources[cpu]", "Invalid:" + at + "nodeAllocatableResources[example.com/gpu]"},
		`"nodeAllocatableResources":{"cpu":{"overhead":{}},"memory":{"overhead":{"perPod":"-1","perContainer":"-1"}}}`: {
			"Required:" + at + "nodeAllocatableResources[cpu].overhead", "Invalid:" + at + "nodeAllocatableResources[memory].overhead.perPod",
			"Invalid:" + at + "nodeAllocatableResources[memory].overhead.perContainer"},
	}))
	k.Creates(t, within(`{"spec":{"driver":"d.io","perDeviceNodeSelection":true,`+pool+`,"devices":[{"name":"d"%}]}}`, map[string][]string{
		``:                                {"Required:spec.devices[0]"},
		`,"nodeName":"n"`:                 nil,
		`,"allNodes":true`:                nil,
		`,"allNodes":false`:               {"Invalid:" + at + "allNodes", "Required:spec.devices[0]"},
		`,"nodeName":"n","allNodes":true`: {"Invalid:spec.devices[0]"},
		`,"nodeName":""`:                  {"Invalid:" + at + "nodeName", "Required:spec.devices[0]"},
		`,"nodeSelector":{}`:              {"Required:" + at + "nodeSelector.nodeSelectorTerms"},
	}))
	obj, _ := k.Create(t, `{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,"devices":[{"name":"d","taints":[{"key":"a","effect":"None"},{"key":"b","effect":"None","timeAdded":"2020-01-01T00:00:00Z"}]}]}}`)
	taints := obj.Objects("spec", "devices")[0].Objects("taints")
	_, err := time.Parse(time.RFC3339, taints[0].String("timeAdded"))
	require.NoError(t, err)
	require.Equal(t, "2020-01-01T00:00:00Z", taints[1].String("timeAdded"))
}

func TestAttributes(t *testing.T) {
	k := kind(t, "ResourceSlice")
	at := "spec.devices[0].attributes"
	k.Creates(t, within(`{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,"devices":[{"name":"d","attributes":{%}}]}}`, map[string][]string{
		`"a":{"int":0},"D.io/b":{"string":""},"c":{"bool":false},"d":{"version":"1.2.3-rc.1+x"},"e":{"versions":["1.0.0"]}`: nil,
		`"a":{}`:                    {"Invalid:" + at + "[a]"},
		`"a":{"int":1,"bool":true}`: {"Invalid:" + at + "[a]"},
		`"a":{"version":"v1.2.3"},"b":{"version":"1.2"},"c":{"version":"01.2.3"},"d":{"versions":["1"]}`:       {"Invalid:" + at + "[a].version", "Invalid:" + at + "[b].version", "Invalid:" + at + "[c].version", "Invalid:" + at + "[d].versions[0]"},
		`"a":{"string":"` + strings.Repeat("x", 65) + `"},"b":{"strings":["` + strings.Repeat("x", 65) + `"]}`: {"TooLong:" + at + "[a].string", "TooLong:" + at + "[b].strings[0]"},
		`"a b":{"int":1}`:   {"Invalid:" + at},
		`"":{"int":1}`:      {"Invalid:" + at},
		`"/":{"int":1}`:     {"Invalid:" + at, "Invalid:" + at},
		`"d.io/":{"int":1}`: {"Invalid:" + at},
		`"D_/a":{"int":1}`:  {"Invalid:" + at},
		`"` + strings.Repeat("x", 33) + `":{"int":1}`:            {"TooLong:" + at},
		`"` + strings.Repeat("x", 64) + `/a":{"int":1}`:          {"TooLong:" + at},
		`"a":{"ints":` + times(47, "#") + `},"b":{"string":"x"}`: nil,
		`"a":{"ints":` + times(48, "#") + `},"b":{"string":"x"}`: {"Invalid:" + at},
		`"a":{"strings":` + times(20, `"#"`) + `},"b":{"versions":` + times(20, `"#.0.0"`) + `},"c":{"bools":` + times(9, "true") + `}`: {"Invalid:" + at},
		strings.Trim(strings.ReplaceAll(times(33, `"a#":{"int":1}`), "[", ""), "[]"):                                                    {"Invalid:spec.devices[0]"},
	}))
}

func TestCapacity(t *testing.T) {
	k := kind(t, "ResourceSlice")
	at := "spec.devices[0].capacity[m].requestPolicy"
	k.Creates(t, within(`{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,"devices":[{"name":"d",%}]}}`, map[string][]string{
		`"capacity":{"m":{"value":"1Gi"},"n":{}}`:           nil,
		`"capacity":{"a b":{"value":"1"}}`:                  {"Invalid:spec.devices[0].capacity"},
		`"capacity":{"m":{"value":"1","requestPolicy":{}}}`: {"Forbidden:" + at},
	}))
	k.Creates(t, within(`{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,"devices":[{"name":"d","allowMultipleAllocations":true,"capacity":{"m":{"value":"10","requestPolicy":{%}}}}]}}`, map[string][]string{
		``:                                      nil,
		`"default":"20"`:                        nil,
		`"default":"1","validValues":["1","2"]`: nil,
		`"validValues":["1"]`:                   {"Required:" + at + ".default"},
		`"default":"3","validValues":["1"]`:     {"Invalid:" + at + ".validValues"},
		`"default":"1","validValues":["2","1","1","20"]`:                               {"Invalid:" + at + ".validValues[1]", "Duplicate:" + at + ".validValues[2]", "Invalid:" + at + ".validValues[3]"},
		`"default":"1","validValues":["1","2","3","4","5","6","7","8","9","9.5","10"]`: {"TooMany:" + at + ".validValues"},
		`"default":"1","validValues":["1"],"validRange":{"min":"1"}`:                   {"Forbidden:" + at},
		`"default":"1","validRange":{}`:                                                {"Required:" + at + ".validRange.min"},
		`"validRange":{"min":"1"}`:                                                     {"Required:" + at + ".default"},
		`"default":"0","validRange":{"min":"1"}`:                                       {"Invalid:" + at + ".validRange.min"},
		`"default":"1","validRange":{"min":"5","max":"4"}`:                             {"Invalid:" + at + ".validRange.min", "Invalid:" + at + ".validRange.max"},
		`"default":"5","validRange":{"min":"1","max":"4"}`:                             {"Invalid:" + at + ".validRange.max"},
		`"default":"20","validRange":{"min":"15","max":"30"}`:                          {"Invalid:" + at + ".validRange.min", "Invalid:" + at + ".validRange.max"},
		`"default":"1","validRange":{"min":"1","max":"5","step":"2"}`:                  nil,
		`"default":"500m","validRange":{"min":"0","max":"5","step":"250m"}`:            nil,
		`"default":"2","validRange":{"min":"1","max":"4","step":"2"}`:                  {"Invalid:" + at + ".validRange.step", "Invalid:" + at + ".validRange.step"},
		`"default":"1","validRange":{"min":"1","step":"20"}`:                           {"Invalid:" + at + ".validRange.step"},
		`"default":"1","validRange":{"min":"1","step":"0"}`:                            {"Invalid:" + at + ".validRange.step"},
	}))
	k.Creates(t, within(`{"spec":{"driver":"d.io","nodeName":"n",`+pool+`,"devices":[{"name":"d","allowMultipleAllocations":true,"capacity":{"m":{"value":"1Ei","requestPolicy":{%}}}}]}}`, map[string][]string{
		`"default":"16Pi","validRange":{"min":"0","max":"32Pi","step":"4Mi"}`: nil,
		`"default":"16Pi","validRange":{"min":"1","max":"32Pi","step":"4Mi"}`: {"Invalid:" + at + ".validRange.step", "Invalid:" + at + ".validRange.step"},
	}))
}
