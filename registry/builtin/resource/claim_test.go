package resource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/resource"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range resource.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind ResourceClaim.resource.orch.io (Go type resource.ResourceClaim)
	// kind ResourceClaimTemplate.resource.orch.io (Go type resource.ResourceClaimTemplate)
	// kind ResourceSlice.resource.orch.io (Go type resource.ResourceSlice)
	// kind DeviceClass.resource.orch.io (Go type resource.DeviceClass)
}

// kind is one of the kinds under test.
func kind(t *testing.T, name string) kindtest.Kind {
	return kindtest.Of(t, names.Kubernetes, resource.Kinds(), name)
}

// times repeats JSON in a list, with its number in place of #.
func times(n int, item string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// within puts JSON into bodies, which are the keys of the result.
func within(format string, cases map[string][]string) map[string][]string {
	all := make(map[string][]string, len(cases))
	for body, faults := range cases {
		all[strings.Replace(format, "%", body, 1)] = faults
	}
	return all
}

const (
	request = `{"name":"a","exactly":{"deviceClassName":"c"}}`
	opaque  = `"opaque":{"driver":"d.io","parameters":{"a":1}}`
)

func TestClaim(t *testing.T) {
	k := kind(t, "ResourceClaim")
	requests := "spec.devices.requests"
	k.Creates(t, within(`{"spec":{"devices":{"requests":%}}}`, map[string][]string{
		`null`:                    nil,
		`[` + request + `]`:       nil,
		`[{}]`:                    {"Invalid:" + requests + "[0].name", "Required:" + requests + "[0]"},
		`[{"name":"A_"}]`:         {"Invalid:" + requests + "[0].name", "Required:" + requests + "[0]"},
		times(2, request):         {"Duplicate:" + requests + "[1]"},
		times(33, `{"name":"#"}`): {"TooMany:" + requests},
		`[{"name":"a","exactly":{"deviceClassName":"c"},"firstAvailable":[{"name":"x","deviceClassName":"c"}]}]`: {"Invalid:" + requests + "[0]"},
		`[{"name":"a","firstAvailable":` + times(9, `{"name":"x#","deviceClassName":"c"}`) + `}]`:                {"TooMany:" + requests + "[0].firstAvailable"},
		`[{"name":"a","firstAvailable":` + times(2, `{"name":"x","deviceClassName":"c"}`) + `}]`:                 {"Duplicate:" + requests + "[0].firstAvailable[1]"},
		`[{"name":"a","firstAvailable":[{}]}]`: {
			"Invalid:" + requests + "[0].firstAvailable[0].name", "Required:" + requests + "[0].firstAvailable[0].deviceClassName",
		},
	}))
	at := requests + "[0].exactly."
	k.Creates(t, within(`{"spec":{"devices":{"requests":[{"name":"a","exactly":{%}}]}}}`, map[string][]string{
		``:                         {"Required:" + at + "deviceClassName"},
		`"deviceClassName":"C_"`:   {"Invalid:" + at + "deviceClassName"},
		`"deviceClassName":"c.io"`: nil,
		`"deviceClassName":"c","count":3,"adminAccess":false`:                                                             nil,
		`"deviceClassName":"c","count":-1`:                                                                                {"Invalid:" + at + "count"},
		`"deviceClassName":"c","allocationMode":"All"`:                                                                    nil,
		`"deviceClassName":"c","allocationMode":"All","count":1`:                                                          {"Invalid:" + at + "count"},
		`"deviceClassName":"c","allocationMode":"Most","count":1`:                                                         {"NotSupported:" + at + "allocationMode"},
		`"deviceClassName":"c","selectors":[{"cel":{"expression":"true"}}]`:                                               nil,
		`"deviceClassName":"c","selectors":[{},{"cel":{}}]`:                                                               {"Required:" + at + "selectors[0].cel", "Invalid:" + at + "selectors[1].cel.expression"},
		`"deviceClassName":"c","selectors":[{"cel":{"expression":"` + strings.Repeat("x", 10241) + `"}}]`:                 {"TooLong:" + at + "selectors[0].cel.expression"},
		`"deviceClassName":"c","selectors":` + times(33, `{"cel":{"expression":"true"}}`):                                 {"TooMany:" + at + "selectors"},
		`"deviceClassName":"c","tolerations":[{},{"key":"a","value":"b","tolerationSeconds":-5},{"operator":"Exists"}]`:   nil,
		`"deviceClassName":"c","tolerations":[{"key":"a b","operator":"Gt","value":"c d","effect":"Go"}]`:                 {"Invalid:" + at + "tolerations[0].key", "NotSupported:" + at + "tolerations[0].operator", "Invalid:" + at + "tolerations[0].value", "NotSupported:" + at + "tolerations[0].effect"},
		`"deviceClassName":"c","tolerations":[{"operator":"Exists","value":"a"}]`:                                         {"Invalid:" + at + "tolerations[0].value"},
		`"deviceClassName":"c","capacity":{"requests":{"memory":"1Gi"}}`:                                                  nil,
		`"deviceClassName":"c","derivedAttributes":[{},{"name":"a","expression":"1"},{"name":"d.io/a","expression":"1"}]`: {"Required:" + at + "derivedAttributes[0].name", "Required:" + at + "derivedAttributes[0].expression", "Invalid:" + at + "derivedAttributes[1].name"},
	}))
	obj, _ := k.Create(t, `{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","tolerations":[{}]}},
		{"name":"b","firstAvailable":[{"name":"x","deviceClassName":"c"},{"name":"y","deviceClassName":"c","allocationMode":"All"}]}]}}}`)
	list := obj.Objects("spec", "devices", "requests")
	require.Equal(t, map[string]any{"deviceClassName": "c", "allocationMode": "ExactCount", "count": int64(1), "tolerations": []any{map[string]any{"operator": "Equal"}}}, list[0].Map("exactly"))
	sorts := list[1].Objects("firstAvailable")
	require.Equal(t, int64(1), sorts[0].Int("count"))
	require.Zero(t, sorts[1].Int("count"))
	k.Updates(t, obj, map[string][]string{
		`{"metadata":{"labels":{"a":"b"}}}`:                   nil,
		`{"spec":{"devices":{"requests":[` + request + `]}}}`: {"Invalid:spec"},
	})
}

func TestClaimReferences(t *testing.T) {
	k := kind(t, "ResourceClaim")
	const requests = `"requests":[` + request + `,{"name":"b","firstAvailable":[{"name":"x","deviceClassName":"c"}]}]`
	at := "spec.devices.constraints[0]."
	k.Creates(t, within(`{"spec":{"devices":{`+requests+`,"constraints":[{%}]}}}`, map[string][]string{
		``:                              {"Required:spec.devices.constraints[0]"},
		`"matchAttribute":"d.io/a"`:     nil,
		`"distinctAttribute":"d.io/a"`:  nil,
		`"matchAttribute":""`:           {"Invalid:" + at + "matchAttribute", "Invalid:" + at + "matchAttribute"},
		`"matchAttribute":"a"`:          {"Invalid:" + at + "matchAttribute"},
		`"distinctAttribute":"a b/c d"`: {"Invalid:" + at + "distinctAttribute", "Invalid:" + at + "distinctAttribute"},
		`"distinctAttribute":"/"`:       {"Invalid:" + at + "distinctAttribute", "Invalid:" + at + "distinctAttribute"},
		`"matchAttribute":"d.io/a","requests":["a","b","b/x"]`:     nil,
		`"matchAttribute":"d.io/a","requests":["a","b/y","c","a"]`: {"Invalid:" + at + "requests[1]", "Invalid:" + at + "requests[2]", "Duplicate:" + at + "requests[3]"},
		`"matchAttribute":"d.io/a","requests":["a b","b/x/z"]`:     {"Invalid:" + at + "requests[0]", "Invalid:" + at + "requests[0]", "Invalid:" + at + "requests[1]"},
		`"matchAttribute":"d.io/a","requests":` + times(33, `"a"`): {"TooMany:" + at + "requests"},
	}))
	at = "spec.devices.config[0]."
	k.Creates(t, within(`{"spec":{"devices":{`+requests+`,"config":[{%}]}}}`, map[string][]string{
		``:                             {"Required:" + at + "opaque"},
		`"opaque":{}`:                  {"Required:" + at + "opaque.driver", "Required:" + at + "opaque.parameters"},
		opaque:                         nil,
		opaque + `,"requests":["c"]`:   {"Invalid:" + at + "requests[0]"},
		opaque + `,"requests":["b/x"]`: nil,
		`"opaque":{"driver":"D.io","parameters":{}}`:                                             nil,
		`"opaque":{"driver":"D_","parameters":[1]}`:                                              {"Invalid:" + at + "opaque.driver", "Invalid:" + at + "opaque.parameters"},
		`"opaque":{"driver":"` + strings.Repeat("d", 64) + `","parameters":{}}`:                  {"TooLong:" + at + "opaque.driver"},
		`"opaque":{"driver":"d.io","parameters":{"a":"` + strings.Repeat("x", 10240) + `"}}`:     {"TooLong:" + at + "opaque.parameters"},
		`"opaque":{"driver":"d.io","parameters":{"a":"` + strings.Repeat("x", 10*1024-8) + `"}}`: nil,
	}))
}

func TestTemplate(t *testing.T) {
	k := kind(t, "ResourceClaimTemplate")
	const spec = `"spec":{"devices":{"requests":[` + request + `]}}`
	k.Creates(t, within(`{"spec":{%}}`, map[string][]string{
		``:   nil,
		spec: nil,
		`"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},` + spec:     nil,
		`"metadata":{"labels":{"a b":"b"},"annotations":{"c d":"d"}},` + spec: {"Invalid:spec.metadata.annotations", "Invalid:spec.metadata.labels"},
		`"metadata":{"name":"a","finalizers":["x"]},` + spec:                  {"Forbidden:spec.metadata.name", "Forbidden:spec.metadata.finalizers"},
		`"spec":{"devices":{"requests":[{"name":"a"}]}}`:                      {"Required:spec.spec.devices.requests[0]"},
	}))
	obj, _ := k.Create(t, `{"spec":{`+spec+`}}`)
	require.Equal(t, int64(1), obj.Objects("spec", "spec", "devices", "requests")[0].Int("exactly", "count"))
	k.Updates(t, obj, map[string][]string{
		`{"metadata":{"labels":{"a":"b"}}}`:          nil,
		`{"spec":{"metadata":{"labels":{"a":"b"}}}}`: {"Invalid:spec"},
		`{"spec":{"metadata":{"name":"a"}}}`:         {"Invalid:spec", "Forbidden:spec.metadata.name"},
	})
}

func TestClass(t *testing.T) {
	k := kind(t, "DeviceClass")
	k.Creates(t, within(`{"spec":{%}}`, map[string][]string{
		``:                 nil,
		`"selectors":[{}]`: {"Required:spec.selectors[0].cel"},
		`"config":[{` + opaque + `},{},{"opaque":{"driver":"d.io"}}]`: {"Required:spec.config[1].opaque", "Required:spec.config[2].opaque.parameters"},
		`"config":` + times(33, `{`+opaque+`}`):                       {"TooMany:spec.config"},
		`"extendedResourceName":"example.com/gpu"`:                    nil,
		`"extendedResourceName":""`:                                   {"Invalid:spec.extendedResourceName"},
		`"extendedResourceName":"gpu"`:                                {"Invalid:spec.extendedResourceName"},
		`"extendedResourceName":"kubernetes.io/gpu"`:                  {"Invalid:spec.extendedResourceName"},
		`"extendedResourceName":"requests.example.com/gpu"`:           {"Invalid:spec.extendedResourceName"},
	}))
	obj, _ := k.Create(t, `{"spec":{}}`)
	k.Updates(t, obj, map[string][]string{`{"spec":{"config":[{` + opaque + `}],"extendedResourceName":"example.com/g"}}`: nil})
}
