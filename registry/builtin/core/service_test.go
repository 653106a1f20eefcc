package core_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
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

func TestServiceViolations(t *testing.T) {
	headless := func(more string) string {
		return `{"spec":{"clusterIP":"None","selector":{"app":"x"},` + more + `}}`
	}
	kind(t, "Service").Creates(t, map[string][]string{
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
		`{"metadata":{"name":"8a"},"spec":{"ports":[{"port":80}]}}`:                                                                               nil,
		`{"metadata":{"name":"a.b"},"spec":{"ports":[{"port":80}]}}`:                                                                              {"Invalid:metadata.name"},
		`{"spec":{"ipFamilyPolicy":"","ports":[{"port":80}]}}`:                                                                                    {"NotSupported:spec.ipFamilyPolicy"},
		`{"spec":{"type":"NodePort","ports":[{"name":"a","port":80,"nodePort":30001},{"name":"b","port":81,"protocol":"UDP","nodePort":30001}]}}`: {"Invalid:spec.ports[1].nodePort"},
		`{"spec":{"type":"NodePort","ports":[{"name":"a","port":80,"nodePort":30001},{"name":"b","port":80,"protocol":"UDP","nodePort":30001}]}}`: nil,
		`{"spec":{"ports":[{"port":80,"nodePort":30000}]}}`:                                                                                       {"Forbidden:spec.ports[0].nodePort"},
		`{"spec":{"type":"LoadBalancer","ports":[{"port":80}],"loadBalancerSourceRanges":["x"]}}`:                                                 {"Invalid:spec.LoadBalancerSourceRanges[0]"},
		`{"spec":{"ports":[{"port":80}],"externalTrafficPolicy":"Local"}}`:                                                                        {"Invalid:spec.externalTrafficPolicy"},
	})
}

func TestServiceRules(t *testing.T) {
	k := kind(t, "Service")
	const port = `"ports":[{"port":80}]`
	for spec, want := range map[string][]string{
		port:                                {},
		port + `,"clusterIP":"10.0.0.7"`:    {},
		port + `,"clusterIP":"10.9.0.7"`:    {"Invalid:clusterIPs: failed to allocate IP 10.9.0.7: the provided network does not match the current range"},
		port + `,"clusterIP":"fd00::1"`:     {"Invalid:clusterIPs[0]"},
		port + `,"clusterIPs":["10.0.0.7"]`: {"Invalid:clusterIPs"},
		port + `,"clusterIP":"10.0.0.8","clusterIPs":["10.0.0.7"]`:                                                    {"Invalid:clusterIPs"},
		port + `,"clusterIP":"None","clusterIPs":["None","10.0.0.7"]`:                                                 {"Invalid:clusterIPs"},
		port + `,"ipFamilies":["IPv5"]`:                                                                               {"NotSupported:ipFamilies[0]"},
		port + `,"ipFamilies":["IPv4","IPv4"]`:                                                                        {"Duplicate:ipFamilies[1]"},
		port + `,"ipFamilies":["IPv6"]`:                                                                               {"Invalid:ipFamilies[0]"},
		port + `,"ipFamilyPolicy":"X"`:                                                                                {`NotSupported:ipFamilyPolicy: supported values: "PreferDualStack", "RequireDualStack", "SingleStack"`},
		port + `,"ipFamilyPolicy":"RequireDualStack"`:                                                                 {"Invalid:ipFamilyPolicy"},
		port + `,"ipFamilyPolicy":"PreferDualStack"`:                                                                  {},
		port + `,"clusterIP":"10.0.0.7","ipFamilies":["IPv6"]`:                                                        {"Invalid:clusterIPs[0]: expected an IPv6 value as indicated by `ipFamilies[0]`"},
		port + `,"clusterIP":"None","type":"NodePort"`:                                                                {"Invalid:clusterIPs[0]"},
		port + `,"clusterIP":"None","type":"LoadBalancer"`:                                                            {"Invalid:clusterIPs[0]"},
		port + `,"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":0}}`:              {"Invalid:sessionAffinityConfig.clientIP.timeoutSeconds"},
		port + `,"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}`:                                           {},
		port + `,"externalIPs":["127.0.0.1"]`:                                                                         {"Invalid:externalIPs[0]"},
		port + `,"externalIPs":["1.2.3.4"],"externalTrafficPolicy":"Local"`:                                           {},
		port + `,"healthCheckNodePort":31000`:                                                                         {"Invalid:healthCheckNodePort"},
		port + `,"internalTrafficPolicy":"X"`:                                                                         {"NotSupported:internalTrafficPolicy"},
		port + `,"trafficDistribution":"X"`:                                                                           {`NotSupported:trafficDistribution: supported values: "PreferClose", "PreferSameZone", "PreferSameNode"`},
		port + `,"trafficDistribution":"PreferClose"`:                                                                 {},
		port + `,"loadBalancerClass":"x.io/a"`:                                                                        {"Forbidden:loadBalancerClass"},
		port + `,"allocateLoadBalancerNodePorts":true`:                                                                {"Forbidden:allocateLoadBalancerNodePorts"},
		port + `,"loadBalancerSourceRanges":["10.0.0.0/8"]`:                                                           {"Forbidden:LoadBalancerSourceRanges"},
		port + `,"type":"LoadBalancer","loadBalancerClass":"a b"`:                                                     {"Invalid:loadBalancerClass"},
		port + `,"type":"NodePort","externalTrafficPolicy":"X"`:                                                       {"NotSupported:externalTrafficPolicy"},
		`"type":"NodePort","ports":[{"port":80,"nodePort":80}]`:                                                       {"Invalid:ports[0].nodePort"},
		`"type":"NodePort","ports":[{"name":"a","port":80,"nodePort":30001},{"name":"b","port":81,"nodePort":30001}]`: {"Invalid:ports[1].nodePort"},
		`"ports":[{"port":80,"appProtocol":"a b"}]`:                                                                   {"Invalid:ports[0].appProtocol"},
		`"type":"ExternalName","externalName":"a_b","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"`: {
			"Forbidden:ipFamilies", "Forbidden:ipFamilyPolicy", "Invalid:externalName"},
	} {
		k.Creates(t, map[string][]string{`{"spec":{` + spec + `}}`: in("spec.", want...)})
	}
}

func TestServiceFamilies(t *testing.T) {
	k := kind(t, "Service")
	for spec, want := range map[string]string{
		`"clusterIP":"None","selector":{"a":"b"}`:           `[IPv4] SingleStack`,
		`"clusterIP":"None"`:                                `[IPv4 IPv6] RequireDualStack`,
		`"clusterIP":"None","ipFamilyPolicy":"SingleStack"`: `[IPv4] SingleStack`,
		`"clusterIP":"None","ipFamilies":["IPv6"]`:          `[IPv6 IPv4] RequireDualStack`,
		`"ipFamilyPolicy":"PreferDualStack"`:                `[IPv4] PreferDualStack`,
		`"selector":{"a":"b"}`:                              `[IPv4] SingleStack`,
	} {
		obj, faults := k.Create(t, `{"spec":{"ports":[{"port":1}],`+spec+`}}`)
		require.Empty(t, faults, spec)
		require.Equal(t, want, fmt.Sprint(obj.Strings("spec", "ipFamilies"), " ", obj.String("spec", "ipFamilyPolicy")), spec)
	}
}

// TestServiceTypeChanges checks that a change of the type removes fields that only the old type has.
func TestServiceTypeChanges(t *testing.T) {
	k := kind(t, "Service")
	balanced, faults := k.Create(t, `{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local","loadBalancerClass":"x.io/a","ports":[{"name":"a","port":1},{"name":"b","port":1,"protocol":"UDP"}]}}`)
	require.Empty(t, faults)
	spec := balanced.Map("spec")
	first, second := spec["ports"].([]any)[0].(map[string]any)["nodePort"], spec["ports"].([]any)[1].(map[string]any)["nodePort"]
	require.NotZero(t, first)
	require.Equal(t, first, second, "one port of two protocols has one number on the nodes")
	require.NotZero(t, spec["healthCheckNodePort"])

	plain, faults := k.Update(t, balanced, `{"spec":{"type":"ClusterIP"}}`, "")
	require.Empty(t, faults)
	for _, gone := range []string{"healthCheckNodePort", "loadBalancerClass", "allocateLoadBalancerNodePorts", "externalTrafficPolicy"} {
		require.NotContains(t, plain.Map("spec"), gone)
	}
	require.NotContains(t, plain.List("spec", "ports")[0], "nodePort")
	require.Equal(t, spec["clusterIP"], plain.String("spec", "clusterIP"))

	named, faults := k.Update(t, plain, `{"spec":{"type":"ExternalName","externalName":"x.io"}}`, "")
	require.Empty(t, faults)
	for _, gone := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
		require.NotContains(t, named.Map("spec"), gone)
	}
	back, faults := k.Update(t, named, `{"spec":{"type":"NodePort"}}`, "")
	require.Empty(t, faults)
	require.NotEmpty(t, back.String("spec", "clusterIP"))

	for patch, want := range map[string][]string{
		`{"loadBalancerClass":"x.io/b"}`:                             {"Invalid:spec.loadBalancerClass"},
		`{"healthCheckNodePort":32000}`:                              {"Forbidden:spec.healthCheckNodePort"},
		`{"healthCheckNodePort":null}`:                               {},
		`{"clusterIP":null,"clusterIPs":null}`:                       {},
		`{"clusterIP":"None"}`:                                       {"Invalid:spec.clusterIPs[0]", "Invalid:spec.clusterIPs[0]"},
		`{"type":"ClusterIP","ports":[{"port":1,"nodePort":32001}]}`: {"Forbidden:spec.ports[0].nodePort"},
		`{"ports":[{"name":"a","port":7}]}`:                          {},
	} {
		obj, got := k.Update(t, balanced, `{"spec":`+patch+`}`, "")
		require.Equal(t, want, got, patch)
		if len(got) == 0 {
			require.Equal(t, first, obj.List("spec", "ports")[0].(map[string]any)["nodePort"], patch)
		}
	}
	obj, faults := k.Update(t, balanced, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"},{"hostname":"a.x.io"}]}}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, "1.2.3.4,a.x.io", k.Cell(t, obj, "External-IP"))
	_, faults = k.Update(t, balanced, `{"status":{"loadBalancer":{"ingress":[{"ip":"x","hostname":"A"},{"ipMode":"VIP"}]}}}`, "status")
	require.Equal(t, in("status.loadBalancer.ingress", "Invalid:[0].ip", "Invalid:[0].hostname", "Forbidden:[1].ipMode"), faults)
	_, faults = k.Update(t, plain, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`, "status")
	require.Equal(t, []string{"Forbidden:status.loadBalancer.ingress"}, faults)
	gone, _ := k.Update(t, obj, `{"spec":{"type":"NodePort"}}`, "")
	require.Equal(t, map[string]any{}, gone.Map("status", "loadBalancer"))
}

func TestServiceWarnings(t *testing.T) {
	k := kind(t, "Service")
	for spec, want := range map[string]int{
		`"clusterIP":"None","sessionAffinity":"ClientIP","externalIPs":["1.2.3.4"],"loadBalancerIP":"1.2.3.4"`: 3,
		`"clusterIP":"None"`: 0,
		`"externalIPs":["1.2.3.4"],"trafficDistribution":"PreferClose"`:      2,
		`"trafficDistribution":"PreferSameZone"`:                             0,
		`"type":"ExternalName","externalName":"a","externalIPs":["1.2.3.4"]`: 1,
	} {
		obj, faults := k.Create(t, `{"spec":{"ports":[{"port":1}],`+spec+`}}`)
		require.Empty(t, faults, spec)
		require.Len(t, k.Warn(k.NewChange(t.Context(), obj, nil, "")), want, spec)
	}
}

func TestServiceColumns(t *testing.T) {
	k := kind(t, "Service")
	for spec, want := range map[string]string{
		`"type":"ClusterIP"`: "ClusterIP <none> <none> <none> <none>",
		`"type":"ClusterIP","clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"externalIPs":["2.2.2.2","1.1.1.1"]`: "ClusterIP 10.0.0.1 2.2.2.2,1.1.1.1 <none> <none>",
		`"type":"LoadBalancer"`:                           "LoadBalancer <none> <pending> <none> <none>",
		`"type":"LoadBalancer","externalIPs":["1.1.1.1"]`: "LoadBalancer <none> 1.1.1.1 <none> <none>",
		`"type":"ExternalName","externalName":"x.io"`:     "ExternalName <none> x.io <none> <none>",
		`"type":"NodePort","selector":{"b":"2","a":"1"},"ports":[{"port":1,"nodePort":2,"protocol":"TCP"},{"port":3,"protocol":"UDP"}]`: "NodePort <none> <none> 1:2/TCP,3/UDP a=1,b=2",
	} {
		obj := k.Object(t, `{"spec":{`+spec+`}}`)
		var words []any
		for _, c := range []string{"Type", "Cluster-IP", "External-IP", "Port(s)", "Selector"} {
			words = append(words, k.Cell(t, obj, c))
		}
		require.Equal(t, want, strings.TrimSpace(fmt.Sprintln(words...)), spec)
	}
}

func TestServiceNetwork(t *testing.T) {
	free := func(string) bool { return true }
	body := `{"spec":{"type":"NodePort","ports":[{"port":1,"protocol":"TCP"}]}}`
	k := kind(t, "Service")
	for _, network := range []string{"192.168.5.0/29", "fd00::/126", "10.1.2.3/16", "fd00::/64"} {
		prefix := netip.MustParsePrefix(network)
		pool := core.ServiceNetwork{Addresses: prefix, FirstPort: 7, LastPort: 7}.Pool()
		taken := map[string]bool{}
		for range 2 {
			obj := k.Object(t, body)
			causes, err := pool.Allocate(&registry.Allocation{Object: obj, Free: func(v string) bool { return !taken[v] || v == ":7" }})
			require.NoError(t, err)
			require.Empty(t, causes)
			ip := netip.MustParseAddr(obj.String("spec", "clusterIP"))
			require.True(t, prefix.Contains(ip), ip)
			require.NotEqual(t, prefix.Masked().Addr(), ip, "not the network's own address")
			require.NotEqual(t, prefix.Masked().Addr().Next(), ip, "nor the server's")
			require.Equal(t, []string{ip.String(), ":7"}, pool.Values(obj))
			require.False(t, taken[ip.String()])
			taken[ip.String()] = true
		}
	}
	small := core.ServiceNetwork{Addresses: netip.MustParsePrefix("10.0.0.0/30"), FirstPort: 1, LastPort: 1}.Pool()
	_, err := small.Allocate(&registry.Allocation{Object: k.Object(t, body), Free: func(v string) bool { return v == ":1" }})
	require.ErrorContains(t, err, "are full")
	_, err = small.Allocate(&registry.Allocation{Object: k.Object(t, body), Free: func(v string) bool { return v != ":1" }})
	require.ErrorContains(t, err, "all taken")
	causes, err := small.Allocate(&registry.Allocation{Object: k.Object(t, `{"spec":{"type":"NodePort","clusterIP":"10.0.0.3","clusterIPs":["10.0.0.3"],"ports":[{"port":1,"nodePort":2}]}}`), Free: free})
	require.NoError(t, err)
	require.Len(t, causes, 2, "neither the broadcast address nor a port beyond the range")
	causes, err = small.Allocate(&registry.Allocation{Object: k.Object(t, `{"spec":{"type":"NodePort","clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],"ports":[{"port":1,"nodePort":1}]}}`), Free: func(string) bool { return false }})
	require.NoError(t, err)
	require.Len(t, causes, 2, "what others hold cannot be had")
}

// TestSpellingsOfAnAddress checks that an address is allocated at most once, in whichever spelling.
func TestSpellingsOfAnAddress(t *testing.T) {
	k := kind(t, "Service")
	pool := core.ServiceNetwork{Addresses: netip.MustParsePrefix("fd00::/64")}.Pool()
	for _, ip := range []string{"fd00::5", "fd00:0:0::0005", "FD00::5"} {
		obj := k.Object(t, `{"spec":{"type":"ClusterIP","clusterIP":"`+ip+`","clusterIPs":["`+ip+`"]}}`)
		require.Equal(t, []string{"fd00::5"}, pool.Values(obj))
		causes, err := pool.Allocate(&registry.Allocation{Object: obj, Free: func(v string) bool { return v != "fd00::5" }})
		require.NoError(t, err)
		require.Len(t, causes, 1, ip)
		require.Contains(t, causes[0].Message, "already allocated")
		require.Equal(t, ip, obj.String("spec", "clusterIP"), "as the caller wrote it")
	}
}
