package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServiceDefaults(t *testing.T) {
	k := kind(t, "Service")
	obj, faults := k.Create(t, `{"spec":{"clusterIP":"None","selector":{"app":"x"},"ports":[{"port":80}]}}`)
	require.Empty(t, faults)
	require.Equal(t, map[string]any{
		"clusterIP": "None", "clusterIPs": []any{"None"}, "internalTrafficPolicy": "Cluster", "ipFamilies": []any{"IPv4"},
		"ipFamilyPolicy": "SingleStack", "selector": map[string]any{"app": "x"}, "sessionAffinity": "None", "type": "ClusterIP",
		"ports": []any{map[string]any{"port": int64(80), "protocol": "TCP", "targetPort": int64(80)}},
	}, obj.Map("spec"))
	require.Equal(t, map[string]any{"loadBalancer": map[string]any{}}, obj.Map("status"))

	kept, faults := k.Update(t, obj, `{"spec":{"clusterIP":null,"clusterIPs":null,"selector":{"app":"y"}}}`, "")
	require.Empty(t, faults)
	require.Equal(t, "None", kept.String("spec", "clusterIP"), "an update need not repeat the address")
	_, faults = k.Update(t, obj, `{"spec":{"clusterIP":"10.0.9.9"}}`, "")
	require.Equal(t, []string{"Invalid:spec.clusterIPs[0]"}, faults)

	named, faults := k.Create(t, `{"spec":{"type":"ExternalName","externalName":"example.com"}}`)
	require.Empty(t, faults)
	require.Equal(t, map[string]any{"externalName": "example.com", "sessionAffinity": "None", "type": "ExternalName"}, named.Map("spec"))
	_, faults = k.Update(t, named, `{"spec":{"externalName":""}}`, "")
	require.Equal(t, []string{"Required:spec.externalName"}, faults)
	_, faults = k.Update(t, named, `{"spec":{"clusterIP":"None"}}`, "")
	require.Equal(t, []string{"Forbidden:spec.clusterIPs"}, faults)
}

func TestServiceFaults(t *testing.T) {
	headless := func(more string) string {
		return `{"spec":{"clusterIP":"None","selector":{"app":"x"},` + more + `}}`
	}
	creates(t, kind(t, "Service"), map[string][]string{
		headless(`"ports":[{"port":0}]`):                                  {"Invalid:spec.ports[0].port", "Invalid:spec.ports[0].targetPort"},
		headless(`"ports":[{"port":80,"protocol":"ICMP"}]`):               {"NotSupported:spec.ports[0].protocol"},
		headless(`"ports":[{"port":1},{"port":2}]`):                       {"Required:spec.ports[0].name", "Required:spec.ports[1].name"},
		headless(`"ports":[{"name":"a","port":1},{"name":"b","port":1}]`): {"Duplicate:spec.ports[1]"},
		headless(`"ports":[{"port":80}],"type":"Fancy"`):                  {"NotSupported:spec.type"},
		headless(`"ports":[{"port":80,"targetPort":"Bad_Port"}]`):         {"Invalid:spec.ports[0].targetPort"},
		headless(`"ports":[{"port":80}],"sessionAffinity":"Cookie"`):      {"NotSupported:spec.sessionAffinity"},
		headless(`"ports":[{"port":80}],"sessionAffinity":"ClientIP"`):    nil,
		`{"spec":{"clusterIP":"None","selector":{"a b":"c"}}}`:            {"Invalid:spec.selector"},
		`{"spec":{"clusterIP":"not-an-ip","ports":[{"port":80}]}}`:        {"Invalid:spec.clusterIPs[0]"},
		`{"spec":{}}`: {"Required:spec.ports"},
		`{"metadata":{"name":"8a"},"spec":{"ports":[{"port":80}]}}`:                               {"Invalid:metadata.name"},
		`{"spec":{"ports":[{"port":80,"nodePort":30000}]}}`:                                       {"Forbidden:spec.ports[0].nodePort"},
		`{"spec":{"type":"LoadBalancer","ports":[{"port":80}],"loadBalancerSourceRanges":["x"]}}`: {"Invalid:spec.loadBalancerSourceRanges[0]"},
		`{"spec":{"ports":[{"port":80}],"externalTrafficPolicy":"Local"}}`:                        {"Invalid:spec.externalTrafficPolicy"},
	})
}
