package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEndpoints(t *testing.T) {
	k := kind(t, "Endpoints")
	require.True(t, k.CreateOnPut)
	require.Equal(t, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", k.Deprecated)
	obj, faults := k.Create(t, `{"subsets":[{"addresses":[{"ip":"1.1.1.1"}],"ports":[{"port":80},{"name":"b","port":81,"protocol":"UDP"}]}]}`)
	require.Equal(t, []string{"Required:subsets[0].ports[0].name"}, faults)
	require.Equal(t, []any{map[string]any{"port": int64(80), "protocol": "TCP"}, map[string]any{"name": "b", "port": int64(81), "protocol": "UDP"}},
		obj.Objects("subsets")[0].List("ports"))

	_, faults = k.Update(t, obj, `{"metadata":{"labels":{"a":"b"}}}`, "")
	require.Empty(t, faults, "what is there may stay")
	_, faults = k.Update(t, obj, `{"subsets":[{}]}`, "")
	require.Equal(t, []string{"Required:subsets[0]"}, faults)
}

func TestEndpointsViolations(t *testing.T) {
	k := kind(t, "Endpoints")
	ip := []string{"Invalid:addresses[0].ip"}
	for subset, want := range map[string][]string{
		`{}`: {"Required:"},
		`{"addresses":null,"notReadyAddresses":[],"ports":[]}`:                                                 {"Required:"},
		`{"addresses":[{"ip":"1.1.1.1"}]}`:                                                                     nil,
		`{"addresses":[{"ip":"fd00:0::1"}],"ports":null}`:                                                      nil,
		`{"addresses":[{"ip":"x"}]}`:                                                                           append(ip, ip...),
		`{"addresses":[{}]}`:                                                                                   append(ip, ip...),
		`{"addresses":[{"ip":"1.2.3.4%a"}]}`:                                                                   append(ip, ip...),
		`{"addresses":[{"ip":"010.0.1.1"}]}`:                                                                   ip,
		`{"addresses":[{"ip":"::ffff:1.2.3.4"}]}`:                                                              ip,
		`{"addresses":[{"ip":"::ffff:127.0.0.1"}]}`:                                                            append(ip, ip...),
		`{"addresses":[{"ip":"0.0.0.0"}]}`:                                                                     ip,
		`{"addresses":[{"ip":"127.0.0.1"}]}`:                                                                   ip,
		`{"addresses":[{"ip":"::1"}]}`:                                                                         ip,
		`{"addresses":[{"ip":"169.254.1.1"}]}`:                                                                 ip,
		`{"addresses":[{"ip":"fe80::1"}]}`:                                                                     ip,
		`{"addresses":[{"ip":"224.0.0.5"}]}`:                                                                   ip,
		`{"addresses":[{"ip":"1.1.1.1","hostname":"A.b"}]}`:                                                    {"Invalid:addresses[0].hostname"},
		`{"addresses":[{"ip":"1.1.1.1","hostname":""}]}`:                                                       nil,
		`{"addresses":[{"ip":"1.1.1.1","nodeName":"a_b"}]}`:                                                    {"Invalid:addresses[0].nodeName"},
		`{"addresses":[{"ip":"1.1.1.1","nodeName":""}]}`:                                                       {"Invalid:addresses[0].nodeName"},
		`{"notReadyAddresses":[{"ip":"::"}]}`:                                                                  {"Invalid:notReadyAddresses[0].ip"},
		`{"addresses":[{"ip":"1.1.1.1"}],"ports":[{}]}`:                                                        {"Invalid:ports[0].port"},
		`{"addresses":[{"ip":"1.1.1.1"}],"ports":[{"port":65535}]}`:                                            nil,
		`{"addresses":[{"ip":"1.1.1.1"}],"ports":[{"port":65536}]}`:                                            {"Invalid:ports[0].port"},
		`{"addresses":[{"ip":"1.1.1.1"}],"ports":[{"port":1},{"port":2,"name":"a"}]}`:                          {"Required:ports[0].name"},
		`{"addresses":[{"ip":"1.1.1.1"}],"ports":[{"port":1,"name":"a"},{"port":1,"name":"a","protocol":""}]}`: nil,
		`{"addresses":[{"ip":"1.1.1.1"}],"ports":[{"port":1,"name":"A","protocol":"tcp","appProtocol":"a b"}]}`: {
			"Invalid:ports[0].name", "NotSupported:ports[0].protocol", "Invalid:ports[0].appProtocol"},
	} {
		var causes []string
		for _, w := range want {
			reason, field, _ := strings.Cut(w, ":")
			causes = append(causes, reason+":"+strings.TrimSuffix("subsets[0]."+field, "."))
		}
		k.Creates(t, map[string][]string{`{"subsets":[` + subset + `]}`: causes})
	}
	k.Creates(t, map[string][]string{`{}`: nil, `{"metadata":{"name":"A"}}`: {"Invalid:metadata.name"}})
}

func TestEndpointsColumn(t *testing.T) {
	k := kind(t, "Endpoints")
	for subsets, want := range map[string]string{
		``: "<none>",
		`{"notReadyAddresses":[{"ip":"1.1.1.1"}]}`:                                                                "",
		`{"addresses":[{"ip":"1.1.1.1"},{"ip":"1.1.1.2"}]}`:                                                       "1.1.1.1,1.1.1.2",
		`{"addresses":[{"ip":"1.1.1.1"},{"ip":"fd00::1"}],"ports":[{"port":1}]},{"addresses":[{"ip":"1.1.1.2"}]}`: "1.1.1.1:1,[fd00::1]:1,1.1.1.2",
		`{"addresses":[{"ip":"1.1.1.1"},{"ip":"1.1.1.2"},{"ip":"1.1.1.3"}],"ports":[{"port":1},{"port":2}]}`:      "1.1.1.1:1,1.1.1.2:1,1.1.1.3:1 + 3 more...",
	} {
		assert.Equal(t, want, k.Cell(t, k.Object(t, `{"subsets":[`+subsets+`]}`), "Endpoints"), subsets)
	}
}

func TestEndpointsWarnings(t *testing.T) {
	k := kind(t, "Endpoints")
	obj := k.Object(t, `{"subsets":[{"addresses":[{"ip":"fd00:0::1"},{"ip":"fd00::1"}],"notReadyAddresses":[{"ip":"FD00::1"},{"ip":"1.1.1.1"}]}]}`)
	require.Equal(t, []string{
		fmt.Sprintf("subsets[0].addresses[0].ip: IPv6 address %q should be in the canonical form %q", "fd00:0::1", "fd00::1"),
		fmt.Sprintf("subsets[0].notReadyAddresses[0].ip: IPv6 address %q should be in the canonical form %q", "FD00::1", "fd00::1"),
	}, k.Warn(k.NewChange(t.Context(), obj, nil, "")))
}
