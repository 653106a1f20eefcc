package core_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

func kind(t *testing.T, name string) kindtest.Kind {
	return kindtest.Of(t, names.Kubernetes, core.Kinds(), name)
}

func TestConfigMap(t *testing.T) {
	k := kind(t, "ConfigMap")
	big := strings.Repeat("x", 1<<19)
	k.Creates(t, map[string][]string{
		`{"data":{"ok-_.9":"v"}}`:                                nil,
		`{"data":{"a/b":"v"}}`:                                   {"Invalid:data[a/b]"},
		`{"data":{"..":"v"}}`:                                    {"Invalid:data[..]"},
		`{"data":{"":"v"}}`:                                      {"Invalid:data[]"},
		`{"data":{"same":"v"},"binaryData":{"same":"AAE="}}`:     {"Invalid:data[same]"},
		`{"binaryData":{"a/b":"AAE="}}`:                          {"Invalid:binaryData[a/b]"},
		`{"data":{"a":"` + big + `","b":"` + big + `"}}`:         nil,
		`{"data":{"a":"` + big + `","b":"` + big + `","c":"1"}}`: {"TooLong:[]"},
		`{"metadata":{"name":"A"}}`:                              {"Invalid:metadata.name"},
	})
	obj, _ := k.Create(t, `{"data":{"k":"v"},"immutable":true}`)
	for patch, want := range map[string][]string{
		`{"metadata":{"labels":{"a":"b"}}}`: {},
		`{"data":{"k":"w"}}`:                {"Forbidden:data"},
		`{"binaryData":{"b":"AAE="}}`:       {"Forbidden:binaryData"},
		`{"immutable":false}`:               {"Forbidden:immutable"},
		`{"immutable":null}`:                {"Forbidden:immutable"},
	} {
		_, got := k.Update(t, obj, patch, "")
		require.Equal(t, want, got, patch)
	}
}

func TestSecret(t *testing.T) {
	k := kind(t, "Secret")
	k.Creates(t, map[string][]string{
		`{"type":"my.io/own"}`:                      nil,
		`{"stringData":{"bad/key":"v"}}`:            {"Invalid:data[bad/key]"},
		`{"type":"kubernetes.io/dockerconfigjson"}`: {"Required:data[.dockerconfigjson]"},
		`{"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"e30="}}`: nil,
		`{"type":"kubernetes.io/dockercfg","data":{".dockercfg":"eA=="}}`:               {"Invalid:data[.dockercfg]"},
		`{"type":"kubernetes.io/basic-auth"}`:                                           {"Required:data[username]", "Required:data[password]"},
		`{"type":"kubernetes.io/basic-auth","data":{"username":"eA=="}}`:                nil,
		`{"type":"kubernetes.io/ssh-auth"}`:                                             {"Required:data[ssh-privatekey]"},
		`{"type":"kubernetes.io/tls","data":{"tls.crt":"AA=="}}`:                        {"Required:data[tls.key]"},
		`{"type":"kubernetes.io/service-account-token"}`:                                {"Required:metadata.annotations[kubernetes.io/service-account.name]"},
	})
	obj, faults := k.Create(t, `{"stringData":{"x":"new","z":"ü"},"data":{"x":"b2xk","y":"eQ=="}}`)
	require.Empty(t, faults)
	require.Equal(t, map[string]any{"x": "bmV3", "y": "eQ==", "z": "w7w="}, obj.Map("data"))
	require.NotContains(t, obj.Tree(), "stringData")
	require.Equal(t, "Opaque", obj.String("type"))
	_, got := k.Update(t, obj, `{"type":"other"}`, "")
	require.Equal(t, []string{"Invalid:type"}, got)
	fixed, _ := k.Create(t, `{"data":{"k":"dg=="},"immutable":true}`)
	_, got = k.Update(t, fixed, `{"data":null}`, "")
	require.Equal(t, []string{"Forbidden:data"}, got)
}

func TestNamespace(t *testing.T) {
	k := kind(t, "Namespace")
	obj, faults := k.Create(t, `{"metadata":{"name":"n"},"status":{"phase":"Terminating"}}`)
	require.Empty(t, faults)
	require.Equal(t, "n", obj.Labels()["kubernetes.io/metadata.name"])
	require.Equal(t, []string{"kubernetes"}, obj.Strings("spec", "finalizers"))
	require.Equal(t, "Active", obj.String("status", "phase"))
	require.True(t, k.RetainOnDelete(obj))

	kept, faults := k.Update(t, obj, `{"spec":null,"metadata":{"labels":{"kubernetes.io/metadata.name":"other"}}}`, "")
	require.Empty(t, faults)
	require.Equal(t, []string{"kubernetes"}, kept.Strings("spec", "finalizers"), "only finalize changes the spec")
	require.Equal(t, "n", kept.Labels()["kubernetes.io/metadata.name"])

	k.BeginDelete(k.NewChange(t.Context(), obj, nil, ""))
	require.Equal(t, "Terminating", obj.String("status", "phase"))
	free, faults := k.Update(t, obj, `{"spec":{"finalizers":[]}}`, "finalize")
	require.Empty(t, faults)
	require.False(t, k.RetainOnDelete(free))
	_, faults = k.Update(t, obj, `{"spec":{"finalizers":["nodomain"]}}`, "finalize")
	require.Equal(t, []string{"Invalid:spec.finalizers[0]"}, faults)

	k.Creates(t, map[string][]string{
		`{"metadata":{"name":"a.b"}}`: {"Invalid:metadata.name"},
		`{"metadata":{"name":"A"}}`:   {"Invalid:metadata.name"},
		`{"metadata":{"name":"-x"}}`:  {"Invalid:metadata.name", "Invalid:metadata.labels"},
	})
}

func TestEvent(t *testing.T) {
	k := kind(t, "Event")
	const now = `"eventTime":"2024-01-02T03:04:05.000001Z"`
	k.Creates(t, map[string][]string{
		`{"involvedObject":{"namespace":"ns"}}`:    nil,
		`{"involvedObject":{"namespace":"other"}}`: {"Invalid:involvedObject.namespace"},
		`{}`:                                   {"Invalid:involvedObject.namespace"},
		`{"metadata":{"namespace":"default"}}`: nil,
		`{"metadata":{"namespace":"kube-system"}}`: {"Invalid:involvedObject.namespace"},
		`{"metadata":{"namespace":"kube-system"},` + now + `,"reportingComponent":"x.io/c","reportingInstance":"i","action":"A","reason":"R"}`: nil,
		`{"metadata":{"namespace":"default"},"involvedObject":{"namespace":"else"}}`:                                                           {"Invalid:involvedObject.namespace"},
		`{"involvedObject":{"namespace":"ns"},` + now + `,"reportingComponent":"x.io/c","reportingInstance":"i","action":"A"}`:                 {"Required:reason"},
	})
	obj, _ := k.Create(t, `{"involvedObject":{"namespace":"ns"}}`)
	require.Contains(t, obj.Tree(), "firstTimestamp", "unset times show as null")
	require.Nil(t, obj.Tree()["firstTimestamp"])
}

func TestEventColumns(t *testing.T) {
	k := kind(t, "Event")
	require.Equal(t, "Last Seen", k.Columns[0].Name, "the name says little and stands last")
	require.Equal(t, "Name", k.Columns[len(k.Columns)-1].Name)
	for body, want := range map[string][]any{
		`{}`: {"<unknown>", "", "", int64(1)},
		`{"eventTime":"2000-01-01T00:00:00.000000Z","involvedObject":{"kind":"Pod","name":"p"},"reportingComponent":"c","reportingInstance":"i"}`: {"26y", "pod/p", "c, i", int64(1)},
		`{"firstTimestamp":"2000-01-01T00:00:00Z","involvedObject":{"kind":"Pod"},"source":{"component":"s"},"count":3}`:                          {"26y", "pod", "s", int64(3)},
		`{"lastTimestamp":"2000-01-01T00:00:00Z","series":{"count":5},"source":{"host":"h"},"reportingComponent":"c"}`:                            {"<unknown>", "", "c, h", int64(5)},
	} {
		obj := k.Object(t, body)
		for i, c := range []string{"Last Seen", "Object", "Source", "Count"} {
			if want[i] == "26y" {
				require.Regexp(t, "^[0-9]+y", k.Cell(t, obj, c), body)
				continue
			}
			require.Equal(t, want[i], k.Cell(t, obj, c), c+body)
		}
	}
}

func TestServiceAccountIsPlain(t *testing.T) {
	k := kind(t, "ServiceAccount")
	k.Creates(t, map[string][]string{
		`{"secrets":[{"name":"s"}],"imagePullSecrets":[{"name":"r"}],"automountServiceAccountToken":false}`: nil,
		`{"metadata":{"name":"Bad_Name"}}`: {"Invalid:metadata.name"},
	})
	obj, _ := k.Create(t, `{"secrets":[{"name":"s","namespace":"other","uid":"u"}]}`)
	require.Equal(t, []any{map[string]any{"name": "s"}}, obj.List("secrets"), "secrets are named and nothing more")
}
