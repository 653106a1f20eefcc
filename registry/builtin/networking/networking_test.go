package networking_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/networking"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range networking.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind Ingress.networking.orch.io (Go type networking.Ingress)
	// kind IngressClass.networking.orch.io (Go type networking.IngressClass)
	// kind NetworkPolicy.networking.orch.io (Go type networking.NetworkPolicy)
	// kind IPAddress.networking.orch.io (Go type networking.IPAddress)
	// kind ServiceCIDR.networking.orch.io (Go type networking.ServiceCIDR)
}

func TestIngress(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, networking.Kinds(), "Ingress")
	cases := map[string][]string{
		`{"spec":{}}`: {"Invalid:spec"},
		`{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"rules":[{}],"ingressClassName":"y"}}`: {"Invalid:annotations.kubernetes.io/ingress.class"},
		`{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"rules":[{}],"ingressClassName":"x"}}`: nil,
	}
	for spec, want := range map[string][]string{
		`"ingressClassName":"A b"`: {"Invalid:spec.ingressClassName"},
		`"ingressClassName":""`:    {"Invalid:spec.ingressClassName"},
		`"tls":[{"hosts":["*.a.b","1.2.3.4","B","*"],"secretName":"A b"},{}]`:                                 {"Invalid:spec.tls[0].hosts[2]", "Invalid:spec.tls[0].hosts[3]", "Invalid:spec.tls[0].secretName"},
		`"rules":[{"host":"1.2.3.4"},{"host":"A_"},{"host":"*.a.b"},{"host":"a.*.b"},{}]`:                     {"Invalid:spec.rules[0].host", "Invalid:spec.rules[1].host", "Invalid:spec.rules[3].host"},
		`"rules":[{"http":{}},{"http":{"paths":[{}]}}]`:                                                       {"Required:spec.rules[0].http.paths", "Required:spec.rules[1].http.paths[0].pathType"},
		`"rules":[{"http":{"paths":[{"pathType":"Foo","backend":{}}]}}]`:                                      {"NotSupported:spec.rules[0].http.paths[0].pathType", "Invalid:spec.rules[0].http.paths[0].backend"},
		`"rules":[{"http":{"paths":[{"pathType":"ImplementationSpecific","backend":` + b + `}]}}]`:            nil,
		`"rules":[{"http":{"paths":[{"pathType":"ImplementationSpecific","path":"a","backend":` + b + `}]}}]`: {"Invalid:spec.rules[0].http.paths[0].path"},
		`"rules":[{"http":{"paths":[{"pathType":"Exact","backend":` + b + `}]}}]`:                             {"Invalid:spec.rules[0].http.paths[0].path"},
		`"rules":[{"http":{"paths":[{"pathType":"Prefix","path":"/a//b/..","backend":` + b + `}]}}]`:          {"Invalid:spec.rules[0].http.paths[0].path", "Invalid:spec.rules[0].http.paths[0].path"},
	} {
		cases[`{"spec":{"defaultBackend":`+b+`,`+spec+`}}`] = want
	}
	for backend, want := range map[string][]string{
		b:                                      nil,
		`{"resource":{"kind":"K","name":"n"}}`: nil,
		`{}`:                                   {"Invalid:"},
		`{"service":{}}`:                       {"Required:.service.name", "Required:"},
		`{"service":{"name":"A.b","port":{"name":"Foo_"}}}`:          {"Invalid:.service.name", "Invalid:.service.port.name"},
		`{"service":{"name":"a","port":{"name":"foo","number":3}}}`:  {"Invalid:"},
		`{"service":{"name":"a","port":{"number":70000}}}`:           {"Invalid:.service.port.number"},
		`{"service":{"name":"a","port":{"number":1}},"resource":{}}`: {"Invalid:"},
		`{"resource":{}}`: {"Required:.resource.kind", "Required:.resource.name"},
		`{"resource":{"apiGroup":"A b","kind":"a/b","name":"a/b"}}`: {"Invalid:.resource.apiGroup", "Invalid:.resource.kind", "Invalid:.resource.name"},
	} {
		for i, w := range want {
			reason, field := w[:len(w)-len(after(w))], after(w)
			want[i] = reason + "spec.defaultBackend" + field
		}
		cases[`{"spec":{"defaultBackend":`+backend+`}}`] = want
	}
	k.Creates(t, cases)
	i, _ := k.Create(t, `{"spec":{"rules":[{"host":"a.b"},{},{"host":"b.b"},{"host":"c.b"},{"host":"d.b"}],"tls":[{}]}}`)
	_, got := k.Update(t, i, `{"status":{"loadBalancer":{"ingress":[{"ip":"1"},{"hostname":"1.2.3.4"},{"hostname":"A_"}]}}}`, "status")
	assert.Equal(t, []string{"Invalid:status.loadBalancer.ingress[0].ip", "Invalid:status.loadBalancer.ingress[1].hostname", "Invalid:status.loadBalancer.ingress[2].hostname"}, got)
	i, got = k.Update(t, i, `{"status":{"loadBalancer":{"ingress":[{"ip":"2.1.1.1"},{"hostname":"a.b"},{}]}}}`, "status")
	require.Empty(t, got)
	for column, want := range map[string]any{"Class": "<none>", "Hosts": "a.b,b.b,c.b + 2 more...", "Address": "2.1.1.1,a.b", "Ports": "80, 443"} {
		assert.Equal(t, want, k.Cell(t, i, column))
	}
	plain, _ := k.Create(t, `{"spec":{"defaultBackend":`+b+`,"ingressClassName":"c"}}`)
	for column, want := range map[string]any{"Class": "c", "Hosts": "*", "Address": "", "Ports": "80"} {
		assert.Equal(t, want, k.Cell(t, plain, column))
	}
}

const b = `{"service":{"name":"s","port":{"number":80}}}`

// after returns the part of a cause after the colon.
func after(cause string) string {
	for i := range cause {
		if cause[i] == ':' {
			return cause[i+1:]
		}
	}
	return ""
}

func TestIngressClass(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, networking.Kinds(), "IngressClass")
	cases := map[string][]string{
		`{}`:                                   {"Required:spec.controller"},
		`{"spec":{"controller":"foo"}}`:        {"Invalid:spec.controller"},
		`{"spec":{"controller":"F_/a b"}}`:     {"Invalid:spec.controller", "Invalid:spec.controller"},
		`{"spec":{"controller":"a.b/c/d~%2"}}`: nil,
	}
	for parameters, want := range map[string][]string{
		`{}`: {"Required:spec.parameters.kind", "Required:spec.parameters.name"},
		`{"apiGroup":"A b","kind":"x/y","name":"../z","scope":"Foo"}`: {"Invalid:spec.parameters.apiGroup", "Invalid:spec.parameters.kind",
			"Invalid:spec.parameters.name", "NotSupported:spec.parameters.scope"},
		`{"kind":"x","name":"z","namespace":"a"}`:                       {"Forbidden:spec.parameters.namespace"},
		`{"kind":"x","name":"z","scope":"Namespace"}`:                   {"Required:spec.parameters.namespace"},
		`{"kind":"x","name":"z","scope":"Namespace","namespace":"A b"}`: {"Invalid:spec.parameters.namespace"},
		`{"kind":"x","name":"z","scope":"Namespace","namespace":""}`:    {"Invalid:spec.parameters.namespace"},
		`{"kind":"x","name":"z","scope":"Namespace","namespace":"a"}`:   nil,
		`{"apiGroup":"","kind":"x","name":"z","scope":""}`:              {"Invalid:spec.parameters.apiGroup", "NotSupported:spec.parameters.scope"},
	} {
		cases[`{"spec":{"controller":"a.b/c","parameters":`+parameters+`}}`] = want
	}
	k.Creates(t, cases)
	old, _ := k.Create(t, `{"spec":{"controller":"a.b/c","parameters":{"apiGroup":"g","kind":"x","name":"z"}}}`)
	require.Equal(t, "Cluster", old.String("spec", "parameters", "scope"))
	require.Equal(t, "x.g/z", k.Cell(t, old, "Parameters"))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"parameters":null}}`:    nil,
		`{"spec":{"controller":"d.b/c"}}`: {"Invalid:spec.controller"},
	})
	plain, _ := k.Create(t, `{"spec":{"controller":"a.b/c"}}`)
	require.Equal(t, "<none>", k.Cell(t, plain, "Parameters"))
}

func TestNetworkPolicy(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, networking.Kinds(), "NetworkPolicy")
	cases := map[string][]string{
		`{}`: nil,
		`{"spec":{"podSelector":{"matchLabels":{"a b":"c"}}}}`:                                                        {"Invalid:spec.podSelector.matchLabels"},
		`{"spec":{"policyTypes":["Foo","Ingress"]}}`:                                                                  {"NotSupported:spec.policyTypes[0]"},
		`{"spec":{"policyTypes":["Ingress","Ingress"]}}`:                                                              nil,
		`{"spec":{"policyTypes":["Foo","Ingress","Egress"]}}`:                                                         {"Invalid:spec.policyTypes"},
		`{"spec":{"egress":[{"to":[{}]}],"ingress":[{"from":[{}]}]}}`:                                                 {"Required:spec.ingress[0].from[0]", "Required:spec.egress[0].to[0]"},
		`{"spec":{"ingress":[{"from":[{"podSelector":{},"ipBlock":{}}]}]}}`:                                           {"Required:spec.ingress[0].from[0].ipBlock.cidr", "Forbidden:spec.ingress[0].from[0]"},
		`{"spec":{"ingress":[{"from":[{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Foo"}]}}]}]}}`: {"Invalid:spec.ingress[0].from[0].namespaceSelector.matchExpressions[0].operator"},
	}
	for ports, want := range map[string]string{
		`{"protocol":"x"}`: "NotSupported:.protocol", `{"port":0}`: "Invalid:.port", `{"port":"80"}`: "Invalid:.port",
		`{"endPort":3}`: "Invalid:.endPort", `{"port":5,"endPort":3}`: "Invalid:.endPort", `{"port":"foo","endPort":3}`: "Invalid:.endPort",
		`{"port":5,"endPort":70000}`: "Invalid:.endPort", `{"port":80,"endPort":80}`: "",
	} {
		cases[`{"spec":{"egress":[{"ports":[`+ports+`]}]}}`] = nil
		if want != "" {
			field := after(want)
			cases[`{"spec":{"egress":[{"ports":[`+ports+`]}]}}`] = []string{want[:len(want)-len(field)] + "spec.egress[0].ports[0]" + field}
		}
	}
	for block, want := range map[string][]string{
		`{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}`: nil,
		`{"cidr":"1.2.3.4/8"}`:                           {"Invalid:.cidr"},
		`{"cidr":"x"}`:                                   {"Invalid:.cidr"},
		`{"cidr":"010.0.0.0/08"}`:                        {"Invalid:.cidr"},
		`{"cidr":"::ffff:10.0.0.0/108"}`:                 {"Invalid:.cidr"},
		`{"cidr":"10.0.0.0/8","except":["x","11.0.0.0/16","10.0.0.0/8","10.0.0.0/7","fd00::/8"]}`: {"Invalid:.except[0]", "Invalid:.except[1]", "Invalid:.except[2]", "Invalid:.except[3]", "Invalid:.except[4]"},
	} {
		for i, w := range want {
			want[i] = "Invalid:spec.ingress[0].from[0].ipBlock" + after(w)
		}
		cases[`{"spec":{"ingress":[{"from":[{"ipBlock":`+block+`}]}]}}`] = want
	}
	k.Creates(t, cases)
	p, _ := k.Create(t, `{"spec":{"podSelector":{"matchLabels":{"x":"y"},"matchExpressions":[{"key":"a","operator":"In","values":["b","c"]}]},"egress":[{"ports":[{}]}]}}`)
	assert.Equal(t, []string{"Ingress", "Egress"}, p.Strings("spec", "policyTypes"))
	assert.Equal(t, "TCP", p.Objects("spec", "egress")[0].Objects("ports")[0].String("protocol"))
	assert.Equal(t, "a in (b,c),x=y", k.Cell(t, p, "Pod-Selector"))
	all, _ := k.Create(t, `{}`)
	assert.Equal(t, []string{"Ingress"}, all.Strings("spec", "policyTypes"))
	assert.Equal(t, "<none>", k.Cell(t, all, "Pod-Selector"))
}

func TestIPAddress(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, networking.Kinds(), "IPAddress")
	const parent = `"spec":{"parentRef":{"resource":"services","namespace":"foo","name":"bar"}}`
	k.Creates(t, map[string][]string{
		`{"metadata":{"name":"10.0.0.1"},` + parent + `}`:          nil,
		`{"metadata":{"name":"fd00::1"},` + parent + `}`:           nil,
		`{"metadata":{"name":"x"},` + parent + `}`:                 {"Invalid:metadata.name"},
		`{"metadata":{"name":"FD00::1"},` + parent + `}`:           {"Invalid:metadata.name"},
		`{"metadata":{"name":"10.00.0.1"},` + parent + `}`:         {"Invalid:metadata.name"},
		`{"metadata":{"name":"10.0.0.1"}}`:                         {"Required:spec.parentRef"},
		`{"metadata":{"name":"10.0.0.1"},"spec":{"parentRef":{}}}`: {"Required:spec.parentRef.resource", "Required:spec.parentRef.name"},
		`{"metadata":{"name":"10.0.0.1"},"spec":{"parentRef":{"group":"A b","resource":"a/b","namespace":"a/b","name":"../x"}}}`: {"Invalid:spec.parentRef.group",
			"Invalid:spec.parentRef.resource", "Invalid:spec.parentRef.namespace", "Invalid:spec.parentRef.name"},
	})
	old, _ := k.Create(t, `{"metadata":{"name":"10.0.0.1"},`+parent+`}`)
	k.Updates(t, old, map[string][]string{
		`{"spec":{"parentRef":{"name":"b"}}}`: {"Invalid:spec.parentRef"},
		`{"spec":{"parentRef":null}}`:         {"Required:spec.parentRef", "Invalid:spec.parentRef"},
	})
	require.Equal(t, "services/foo/bar", k.Cell(t, old, "ParentRef"))
}

func TestServiceCIDR(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, networking.Kinds(), "ServiceCIDR")
	k.Creates(t, map[string][]string{
		`{}`:                       {"Required:spec.cidrs"},
		`{"spec":{"cidrs":["x"]}}`: {"Invalid:spec.cidrs[0]"},
		`{"spec":{"cidrs":["10.9.0.0/24","10.8.0.0/24"]}}`:   {"Invalid:spec.cidrs: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"},
		`{"spec":{"cidrs":["10.9.0.0/24","fd00::/64","x"]}}`: {"Invalid:spec.cidrs: may only hold up to 2 values"},
		`{"spec":{"cidrs":["10.09.0.1/24","FD00::/64"]}}`:    {"Invalid:spec.cidrs[0]", "Invalid:spec.cidrs[1]"},
		`{"spec":{"cidrs":["10.9.0.0/24","fd00::/64"]}}`:     nil,
	})
	old, _ := k.Create(t, `{"spec":{"cidrs":["10.9.0.0/24"]}}`)
	k.Updates(t, old, map[string][]string{
		`{"spec":{"cidrs":["10.9.0.0/24","fd00::/64"]}}`: nil,
		`{"spec":{"cidrs":["10.9.0.0/24","x"]}}`:         {"Invalid:spec.cidrs[1]"},
		`{"spec":{"cidrs":["10.8.0.0/24"]}}`:             {"Invalid:spec.cidrs[0]"},
		`{"spec":{"cidrs":[]}}`:                          {"Invalid:spec.cidrs"},
	})
	require.Equal(t, "10.9.0.0/24", k.Cell(t, old, "CIDRs"))
}
