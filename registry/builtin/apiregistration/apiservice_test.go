package apiregistration_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/apiregistration"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range apiregistration.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind APIService.apiregistration.orch.io (Go type apiregistration.APIService)
}

func TestAPIService(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apiregistration.Kinds(), "APIService")
	named := func(name, spec string) string { return `{"metadata":{"name":"` + name + `"},"spec":{` + spec + `}}` }
	const base, service = `"group":"example.com","version":"v1","groupPriorityMinimum":10,"versionPriority":10`, `,"service":{"namespace":"a","name":"b"}`
	body := func(rest string) string { return named("v1.example.com", base+rest) }
	k.Creates(t, map[string][]string{
		body(``):         nil,
		body(service):    nil,
		named("x", base): {"Invalid:metadata.name"},
		named("x", ``):   {"Invalid:metadata.name", "Required:spec.group", "Invalid:spec.version", "Invalid:spec.groupPriorityMinimum", "Invalid:spec.versionPriority"},
		named("v1.", `"version":"v1","groupPriorityMinimum":20000,"versionPriority":1000`):                                  nil,
		named("v1.example.com", `"group":"example.com","version":"v1","groupPriorityMinimum":20001,"versionPriority":1001`): {"Invalid:spec.groupPriorityMinimum", "Invalid:spec.versionPriority"},
		named("v1.A_B", `"group":"A_B","version":"v1","groupPriorityMinimum":1,"versionPriority":1`):                        {"Invalid:spec.group"},
		body(`,"service":{}`): {"Required:spec.service.namespace", "Required:spec.service.name"},
		body(`,"service":{"namespace":"a","name":"b","port":0}`):          {"Invalid:spec.service.port"},
		body(`,"insecureSkipTLSVerify":true,"caBundle":"eA=="`):           {"Invalid:spec.caBundle", "Invalid:spec.insecureSkipTLSVerify"},
		body(service + `,"insecureSkipTLSVerify":true,"caBundle":"eA=="`): {"Invalid:spec.insecureSkipTLSVerify"},
		body(service + `,"caBundle":"eA=="`):                              nil,
	})
	local, _ := k.Create(t, body(`},"status":{"conditions":[{"type":"Available","status":"False"}]`))
	require.Equal(t, []any{"Local", "True"}, []any{k.Cell(t, local, "Service"), k.Cell(t, local, "Available")})
	remote, _ := k.Create(t, body(service))
	require.Equal(t, []any{"a/b", "Unknown"}, []any{k.Cell(t, remote, "Service"), k.Cell(t, remote, "Available")})
	require.Equal(t, int64(443), remote.Int("spec", "service", "port"))
	down, faults := k.Update(t, remote, `{"status":{"conditions":[{"type":"Available","status":"False","reason":"Down"}]}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, "False (Down)", k.Cell(t, down, "Available"))
	_, faults = k.Update(t, remote, `{"status":{"conditions":[{"type":"A","status":"x"}]}}`, "status")
	require.Equal(t, []string{"NotSupported:status.conditions[0].status"}, faults)
	k.Updates(t, remote, map[string][]string{`{"spec":{"version":"v2"}}`: {"Invalid:metadata.name"}, `{"spec":{"versionPriority":20}}`: nil})
}
