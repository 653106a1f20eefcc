package resource_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

const (
	result    = `"request":"a","driver":"d.io","pool":"p","device":"dev"`
	allocated = `"allocation":{"devices":{"results":[{` + result + `}]}}`
	someShare = "2bd1e8a4-5f3a-4d0c-9d5c-000000000001"
)

// statuses takes states through an update of a claim, in which % stands for the keys.
func statuses(t *testing.T, format string, cases map[string][]string) {
	t.Helper()
	k := kind(t, "ResourceClaim")
	old, _ := k.Create(t, `{"spec":{"devices":{"requests":[`+request+`,{"name":"b","firstAvailable":[{"name":"x","deviceClassName":"c"}]}]}}}`)
	for body, want := range within(`{"status":{`+format+`}}`, cases) {
		_, got := k.Update(t, old, body, "status")
		require.ElementsMatch(t, want, got, body)
	}
}

func TestAllocation(t *testing.T) {
	at := "status.allocation.devices.results[0]."
	statuses(t, `"allocation":{"devices":{"results":%}}`, map[string][]string{
		`[]`:                      nil,
		`[{` + result + `}]`:      nil,
		`[{}]`:                    {"Invalid:" + at + "request", "Invalid:" + at + "request", "Required:" + at + "driver", "Required:" + at + "pool", "Invalid:" + at + "device"},
		times(33, `{`+result+`}`): {"TooMany:status.allocation.devices.results"},
		`[{"request":"b/x","driver":"d.io","pool":"p/q","device":"dev"}]`:                               nil,
		`[{"request":"b/y","driver":"D_","pool":"a//b","device":"D_"}]`:                                 {"Invalid:" + at + "request", "Invalid:" + at + "driver", "Invalid:" + at + "pool", "Invalid:" + at + "device"},
		`[{` + result + `,"tolerations":[{"key":"a b","effect":"X","value":"b c"}]}]`:                   {"Invalid:" + at + "tolerations[0].key", "NotSupported:" + at + "tolerations[0].effect", "Invalid:" + at + "tolerations[0].value"},
		`[{` + result + `,"bindingConditions":["a"],"bindingFailureConditions":["b"]}]`:                 nil,
		`[{` + result + `,"bindingConditions":["a"]}]`:                                                  {"Invalid:" + at + "bindingFailureConditions"},
		`[{` + result + `,"bindingFailureConditions":["a"]}]`:                                           {"Invalid:" + at + "bindingConditions"},
		`[{` + result + `,"bindingConditions":["a","a"],"bindingFailureConditions":["a"]}]`:             {"Duplicate:" + at + "bindingConditions[1]", "Invalid:" + at + "bindingFailureConditions[0]"},
		`[{` + result + `,"bindingConditions":["1","2","3","4","5"],"bindingFailureConditions":["6"]}]`: {"TooMany:" + at + "bindingConditions"},
		`[{` + result + `,"shareID":"` + strings.ToUpper(someShare) + `"}]`:                             {"Invalid:" + at + "shareID"},
		`[{` + result + `,"shareID":"` + someShare + `","consumedCapacity":{"m":"1"}}]`:                 nil,
		`[{` + result + `,"skipNodeOperations":["*","Nothing"]}]`:                                       {"NotSupported:" + at + "skipNodeOperations[1]"},
	})
	at = "status.allocation.devices.config[0]."
	statuses(t, `"allocation":{"devices":{"config":%}}`, map[string][]string{
		`[{}]`: {"Required:" + at + "source", "Required:" + at + "opaque"},
		`[{"source":"FromClass",` + opaque + `}]`:                                                   nil,
		`[{"source":"Elsewhere","requests":["a","z"],"opaque":{"driver":"d.io","parameters":"x"}}]`: {"NotSupported:" + at + "source", "Invalid:" + at + "requests[1]", "Invalid:" + at + "opaque.parameters"},
		times(65, `{"source":"FromClaim",`+opaque+`}`):                                              {"TooMany:status.allocation.devices.config"},
	})
	statuses(t, `"allocation":{"nodeSelector":%}`, map[string][]string{
		`{}`: {"Required:status.allocation.nodeSelector.nodeSelectorTerms"},
		`{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a b","operator":"In"}]}]}`: {
			"Required:status.allocation.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values", "Invalid:status.allocation.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].key",
		},
	})
}

func TestReservations(t *testing.T) {
	statuses(t, `%`, map[string][]string{
		`"reservedFor":[{"resource":"pods","name":"p","uid":"1"}]`:                              {"Forbidden:status.reservedFor"},
		allocated + `,"reservedFor":[{}]`:                                                       {"Required:status.reservedFor[0].resource", "Required:status.reservedFor[0].name", "Required:status.reservedFor[0].uid"},
		allocated + `,"reservedFor":` + times(256, `{"resource":"pods","name":"p#","uid":"#"}`): nil,
		allocated + `,"reservedFor":` + times(257, `{"resource":"pods","name":"p#","uid":"#"}`): {"TooMany:status.reservedFor"},
		allocated + `,"reservedFor":` + times(2, `{"resource":"pods","name":"p","uid":"1"}`):    {"Duplicate:status.reservedFor[1]"},
	})
}

func TestDeviceStatus(t *testing.T) {
	const device = `"driver":"d.io","pool":"p","device":"dev"`
	const condition = `{"type":"Ready#","status":"True","reason":"R","lastTransitionTime":"2020-01-01T00:00:00Z"}`
	at := "status.devices[0]"
	statuses(t, `%,"devices":[{`+device+`}]`, map[string][]string{
		allocated:           nil,
		`"allocation":null`: {"Invalid:" + at},
		`"allocation":{"devices":{"results":[{` + result + `,"shareID":"` + someShare + `"}]}}`: {"Invalid:" + at},
	})
	statuses(t, allocated+`,"devices":%`, map[string][]string{
		`[{}]`:                   {"Required:" + at + ".driver", "Required:" + at + ".pool", "Invalid:" + at + ".device", "Invalid:" + at},
		times(2, `{`+device+`}`): {"Duplicate:status.devices[1]"},
		`[{` + device + `,"conditions":` + times(8, condition) + `}]`:                                                nil,
		`[{` + device + `,"conditions":` + times(9, condition) + `}]`:                                                {"TooMany:" + at + ".conditions"},
		`[{` + device + `,"conditions":[{"type":"A","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}]`: {"Required:" + at + ".conditions[0].reason"},
		`[{` + device + `,"data":{"a":1}}]`:                                                                          nil,
		`[{` + device + `,"data":"x"}]`:                                                                              {"Invalid:" + at + ".data"},
		`[{` + device + `,"data":{"a":"` + strings.Repeat("x", 10240) + `"}}]`:                                       {"TooLong:" + at + ".data"},
		`[{` + device + `,"networkData":{"interfaceName":"eth0","ips":["1.2.3.4/24","fd00::1/64"]}}]`:                nil,
		`[{` + device + `,"networkData":{"ips":["1.2.3.4","01.2.3.4/8","FD00::1/64","::ffff:1.2.3.4/120"]}}]`:        {"Invalid:" + at + ".networkData.ips[0]", "Invalid:" + at + ".networkData.ips[1]", "Invalid:" + at + ".networkData.ips[2]", "Invalid:" + at + ".networkData.ips[3]"},
		`[{` + device + `,"networkData":{"ips":["1.2.3.4/24","1.2.3.4/24"]}}]`:                                       {"Duplicate:" + at + ".networkData.ips[1]"},
		`[{` + device + `,"networkData":{"ips":` + times(17, `"1.2.3.#/24"`) + `}}]`:                                 {"TooMany:" + at + ".networkData.ips"},
		`[{` + device + `,"networkData":{"interfaceName":"` + strings.Repeat("x", 257) + `"}}]`:                      {"TooLong:" + at + ".networkData.interfaceName"},
	})
}

func TestClaimStates(t *testing.T) {
	k := kind(t, "ResourceClaim")
	is := func(want string, obj *meta.Object) {
		t.Helper()
		require.Equal(t, want, k.Cell(t, obj, "State"))
	}
	must := func(obj *meta.Object, faults []string) *meta.Object {
		t.Helper()
		require.Empty(t, faults)
		return obj
	}
	claim := must(k.Create(t, `{"metadata":{"finalizers":["a.io/b"]},"spec":{"devices":{"requests":[`+request+`]}}}`))
	is("pending", claim)
	claim = must(k.Update(t, claim, `{"status":{`+allocated+`,"devices":[{"driver":"d.io","pool":"p","device":"dev"}]}}`, "status"))
	is("allocated", claim)
	_, faults := k.Update(t, claim, `{"status":{"allocation":{"devices":{"results":[]}},"devices":null}}`, "status")
	require.Equal(t, []string{"Invalid:status.allocation"}, faults)
	used := must(k.Update(t, claim, `{"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"1"}]}}`, "status"))
	is("allocated,reserved", used)
	_, faults = k.Update(t, used, `{"status":{"allocation":null}}`, "status")
	require.Equal(t, []string{"Forbidden:status.reservedFor"}, faults)
	free := must(k.Update(t, claim, `{"status":{"allocation":null}}`, "status"))
	require.Empty(t, free.List("status", "devices"), "what is told of a device goes with it")

	used.Set("2020-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	is("deleted,allocated,reserved", used)
	must(k.Update(t, used, `{"status":{"reservedFor":[]}}`, "status"))
	_, faults = k.Update(t, used, `{"status":{"reservedFor":[{"resource":"pods","name":"q","uid":"2"}]}}`, "status")
	require.Equal(t, []string{"Forbidden:status.reservedFor"}, faults)
}
