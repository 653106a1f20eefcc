package discovery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/internal/kindtest"
)

func kind(t *testing.T) kindtest.Kind {
	return kindtest.Of(t, names.Kubernetes, discovery.Kinds(), "EndpointSlice")
}

func TestDefaults(t *testing.T) {
	obj, faults := kind(t).Create(t, `{"addressType":"IPv4","endpoints":[{"addresses":["1.1.1.1"]}],"ports":[{"port":1},{"name":"b","protocol":"UDP"}]}`)
	require.Empty(t, faults)
	require.Equal(t, []any{map[string]any{"addresses": []any{"1.1.1.1"}, "conditions": map[string]any{}}}, obj.List("endpoints"))
	require.Equal(t, []any{map[string]any{"name": "", "protocol": "TCP", "port": int64(1)}, map[string]any{"name": "b", "protocol": "UDP"}}, obj.List("ports"))
}

// repeated returns a list of n texts, with the index in place of %d.
func repeated(n int, text string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestEndpointSliceViolations(t *testing.T) {
	k := kind(t)
	endpoint := func(text string) string {
		return `"addressType":"IPv4","endpoints":[{"addresses":["1.1.1.1"],` + text + `}]`
	}
	addresses := func(kind, list string) string {
		return `"addressType":"` + kind + `","endpoints":[{"addresses":` + list + `}]`
	}
	const list = "endpoints[0].addresses"
	for body, want := range map[string][]string{
		`"addressType":"IPv4"`:                               {},
		`"addressType":"IPv4","endpoints":null,"ports":null`: {},
		`"endpoints":[{"addresses":["q"]}]`:                  {"Required:addressType"},
		addresses("IPv5", `["x"]`):                           {"NotSupported:addressType"},
		addresses("IPv4", `[]`):                              {"Required:" + list},
		addresses("IPv4", repeated(100, `"1.1.1.%d"`)):       {},
		addresses("IPv4", repeated(101, `"1.1.1.%d"`)):       {"TooMany:" + list},
		addresses("IPv4", `["::1"]`):                         {"Invalid:" + list, "Invalid:" + list + "[0]"},
		addresses("IPv4", `["127.0.0.1"]`):                   {"Invalid:" + list + "[0]"},
		addresses("IPv4", `["169.254.0.1"]`):                 {"Invalid:" + list + "[0]"},
		addresses("IPv4", `["010.1.1.1"]`):                   {"Invalid:" + list + "[0]"},
		addresses("IPv4", `["x"]`):                           {"Invalid:" + list + "[0]"},
		addresses("IPv4", `["::ffff:127.0.0.1"]`):            {"Invalid:" + list + "[0]"},
		addresses("IPv4", `["fd00:0::1"]`):                   {"Invalid:" + list},
		addresses("IPv6", `["fd00::1"]`):                     {},
		addresses("IPv6", `["1.1.1.1"]`):                     {"Invalid:" + list},
		addresses("IPv6", `["::1"]`):                         {"Invalid:" + list + "[0]"},
		addresses("IPv6", `["FD00::1"]`):                     {"Invalid:" + list + "[0]"},
		addresses("IPv6", `["::"]`):                          {"Invalid:" + list + "[0]"},
		addresses("FQDN", `["a.b.","127.0.0.1"]`):            {},
		addresses("FQDN", `["a"]`):                           {"Invalid:" + list + "[0]"},
		addresses("FQDN", `["A.b"]`):                         {"Invalid:" + list + "[0]"},
		addresses("FQDN", `["a.b.."]`):                       {"Invalid:" + list + "[0]"},
		addresses("FQDN", `[""]`):                            {"Required:" + list + "[0]"},
		endpoint(`"hostname":"A_B"`):                         {"Invalid:endpoints[0].hostname"},
		endpoint(`"hostname":""`):                            {"Invalid:endpoints[0].hostname"},
		endpoint(`"nodeName":""`):                            {"Invalid:endpoints[0].nodeName"},
		endpoint(`"zone":"a b","conditions":null`):           {},
		endpoint(`"deprecatedTopology":{"a b":"c"}`):         {},
		endpoint(`"hints":{}`):                               {},
		endpoint(`"hints":{"forZones":[{"name":"z"},{"name":"z"},{"name":"a b"},{"name":""}]}`): {
			"Duplicate:endpoints[0].hints.forZones[1].name", "Invalid:endpoints[0].hints.forZones[2].name"},
		endpoint(`"hints":{"forNodes":[{"name":"n"},{"name":"n"},{"name":"A"},{"name":""}]}`): {
			"Duplicate:endpoints[0].hints.forNodes[1].name", "Invalid:endpoints[0].hints.forNodes[2].name", "Invalid:endpoints[0].hints.forNodes[3].name"},
		endpoint(`"hints":{"forNodes":[{"name":"n"},{"name":"n"}],"forZones":` + repeated(9, `{"name":"z%d"}`) + `}`): {"TooMany:endpoints[0].hints.forZones"},
		endpoint(`"hints":{"forNodes":` + repeated(9, `{"name":"n%d"}`) + `}`):                                        {"TooMany:endpoints[0].hints.forNodes"},
		`"addressType":"IPv4","endpoints":` + repeated(1001, `{"addresses":["x"]}`):                                   {"TooMany:endpoints"},
		`"addressType":"IPv4","ports":` + repeated(20001, `{"name":"A"}`):                                             {"TooMany:ports"},
		`"addressType":"IPv4","ports":[{"port":0},{"name":"a","port":70000}]`:                                         {},
		`"addressType":"IPv4","ports":[{},{}]`:                                                                        {"Duplicate:ports[1].name"},
		`"addressType":"IPv4","ports":[{"name":"A","protocol":"","appProtocol":"a b"}]`: {
			"Invalid:ports[0].name", "NotSupported:ports[0].protocol", "Invalid:ports[0].appProtocol"},
		`"metadata":{"name":"A_B"},"addressType":"IPv4"`: {"Invalid:metadata.name"},
	} {
		_, got := k.Create(t, "{"+body+"}")
		assert.Equal(t, want, got, body[:min(len(body), 200)])
	}
}

// TestNoEndpoints checks the form of an empty list.
func TestNoEndpoints(t *testing.T) {
	obj, faults := kind(t).Create(t, `{"addressType":"IPv4","endpoints":[]}`)
	require.Empty(t, faults)
	v, ok := obj.Get("endpoints")
	require.True(t, ok)
	require.Nil(t, v)
}

func TestChanges(t *testing.T) {
	k := kind(t)
	obj, faults := k.Create(t, `{"addressType":"IPv4","endpoints":[{"addresses":["1.1.1.1"],"nodeName":"n1"}]}`)
	require.Empty(t, faults)
	for patch, want := range map[string][]string{
		`{"addressType":"IPv6"}`: {"Invalid:addressType"},
		`{"addressType":null}`:   {"Required:addressType", "Invalid:addressType"},
		`{"addressType":"X"}`:    {"NotSupported:addressType", "Invalid:addressType"},
		`{"endpoints":[{"addresses":["1.1.1.2"],"nodeName":"n2"}]}`:        {},
		`{"endpoints":[{"addresses":["1.1.1.1"],"nodeName":"n1"},{}]}`:     {"Required:endpoints[1].addresses"},
		`{"endpoints":null,"ports":[{"port":1}],"metadata":{"labels":{}}}`: {},
	} {
		_, got := k.Update(t, obj, patch, "")
		assert.Equal(t, want, got, patch)
	}
	for patch, want := range map[string]bool{
		`{"metadata":{"annotations":{"a":"b"}}}`: false,
		`{"metadata":{"labels":{"a":"b"}}}`:      true,
		`{"ports":[{"port":1}]}`:                 true,
	} {
		now, _ := k.Update(t, obj, patch, "")
		assert.Equal(t, want, k.Changed(k.NewChange(t.Context(), now, obj, "")), patch)
	}
}

// TestTopologyIsReadOnly checks that the topology of v1beta1 stays while the endpoints are unchanged,
// and that its node then becomes nodeName.
func TestTopologyIsReadOnly(t *testing.T) {
	k := kind(t)
	obj, _ := k.Create(t, `{"addressType":"IPv4","endpoints":[{"addresses":["1.1.1.1"],"deprecatedTopology":{"kubernetes.io/hostname":"n1"}}]}`)
	require.Equal(t, []any{map[string]any{"addresses": []any{"1.1.1.1"}, "conditions": map[string]any{}}}, obj.List("endpoints"))

	obj.Objects("endpoints")[0].Set("n1", "deprecatedTopology", "kubernetes.io/hostname")
	kept, _ := k.Update(t, obj, `{"ports":[{"port":1}]}`, "")
	require.Equal(t, obj.List("endpoints"), kept.List("endpoints"))
	moved, faults := k.Update(t, obj, `{"endpoints":[{"addresses":["1.1.1.2"],"deprecatedTopology":{"kubernetes.io/hostname":"n1"}},
		{"addresses":["1.1.1.3"],"deprecatedTopology":{"kubernetes.io/hostname":"n2"}}]}`, "")
	require.Empty(t, faults)
	require.Equal(t, []any{map[string]any{"addresses": []any{"1.1.1.2"}, "conditions": map[string]any{}, "nodeName": "n1"},
		map[string]any{"addresses": []any{"1.1.1.3"}, "conditions": map[string]any{}}}, moved.List("endpoints"))
}

func TestWarnings(t *testing.T) {
	k := kind(t)
	named := k.Object(t, `{"addressType":"FQDN"}`)
	require.Equal(t, []string{"spec.addressType: FQDN endpoints are deprecated"}, k.Warn(k.NewChange(t.Context(), named, nil, "")))
	require.Empty(t, k.Warn(k.NewChange(t.Context(), named, named, "")))
	require.Empty(t, k.Warn(k.NewChange(t.Context(), k.Object(t, `{"addressType":"IPv4"}`), nil, "")))
}

func TestColumns(t *testing.T) {
	k := kind(t)
	for body, want := range map[string][]any{
		`"addressType":"FQDN"`: {"FQDN", "<unset>", "<unset>"},
		`"addressType":"IPv4","ports":[{"port":1},{"name":"b"}],"endpoints":[{"addresses":["1.1.1.1","1.1.1.2"]}]`: {
			"IPv4", "1,b", "1.1.1.1,1.1.1.2"},
		`"addressType":"IPv4","ports":[{"port":1},{"port":2},{"port":3},{"port":4}],"endpoints":[{"addresses":["1","2"]},{"addresses":["3","4"]},{"addresses":["5"]}]`: {
			"IPv4", "1,2,3 + 1 more...", "1,2,3 + 2 more..."},
	} {
		obj := k.Object(t, "{"+body+"}")
		for i, column := range []string{"AddressType", "Ports", "Endpoints"} {
			assert.Equal(t, want[i], k.Cell(t, obj, column), body)
		}
	}
}
