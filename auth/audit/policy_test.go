package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
)

const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

func policy(t testing.TB, rules string) *audit.Policy {
	p, err := audit.ParsePolicy([]byte(head+rules), names.Kubernetes)
	require.NoError(t, err, rules)
	return p
}

func TestRulesSelectRequests(t *testing.T) {
	alice := &auth.User{Name: "alice", Groups: []string{"devs"}}
	pods := auth.Attributes{User: alice, Verb: "get", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p"}
	logs, deploy, node, health := pods, pods, pods, auth.Attributes{User: alice, Verb: "get", Path: "/healthz/ping"}
	logs.Subresource = "log"
	deploy.Group, deploy.Resource = "apps", "deployments"
	node.Resource, node.Namespace = "nodes", ""
	nobody := pods
	nobody.User = nil
	for _, c := range []struct {
		rule    string
		matches []auth.Attributes
		not     []auth.Attributes
	}{
		{"{level: Metadata}", []auth.Attributes{pods, health, nobody}, nil},
		{"{level: Metadata, users: [alice]}", []auth.Attributes{pods}, []auth.Attributes{nobody}},
		{"{level: Metadata, users: [bob]}", nil, []auth.Attributes{pods}},
		{"{level: Metadata, userGroups: [x, devs]}", []auth.Attributes{pods}, []auth.Attributes{nobody}},
		{"{level: Metadata, userGroups: [ops]}", nil, []auth.Attributes{pods}},
		{"{level: Metadata, verbs: [list, get]}", []auth.Attributes{pods}, nil},
		{"{level: Metadata, verbs: [watch]}", nil, []auth.Attributes{pods}},
		{"{level: Metadata, resources: [{group: ''}]}", []auth.Attributes{pods, logs, node}, []auth.Attributes{deploy, health}},
		{"{level: Metadata, resources: [{group: '', resources: [pods]}]}", []auth.Attributes{pods}, []auth.Attributes{logs, node, deploy}},
		{"{level: Metadata, resources: [{group: '', resources: [pods/log]}]}", []auth.Attributes{logs}, []auth.Attributes{pods}},
		{"{level: Metadata, resources: [{group: '', resources: ['pods/*']}]}", []auth.Attributes{logs, pods}, []auth.Attributes{node}},
		{"{level: Metadata, resources: [{group: '', resources: ['*/log']}]}", []auth.Attributes{logs}, []auth.Attributes{pods}},
		{"{level: Metadata, resources: [{group: '', resources: ['*']}]}", []auth.Attributes{logs, pods, node}, []auth.Attributes{deploy}},
		{"{level: Metadata, resources: [{group: apps}, {group: '', resources: [pods], resourceNames: [p]}]}", []auth.Attributes{pods, deploy}, []auth.Attributes{node}},
		{"{level: Metadata, resources: [{group: '', resources: [pods], resourceNames: [q]}]}", nil, []auth.Attributes{pods}},
		{"{level: Metadata, namespaces: [ns]}", []auth.Attributes{pods, deploy}, []auth.Attributes{node, health}},
		{"{level: Metadata, namespaces: ['']}", []auth.Attributes{node}, []auth.Attributes{pods, health}},
		{"{level: Metadata, namespaces: [other], resources: [{group: ''}]}", nil, []auth.Attributes{pods}},
		{"{level: Metadata, nonResourceURLs: ['/healthz*']}", []auth.Attributes{health}, []auth.Attributes{pods}},
		{"{level: Metadata, nonResourceURLs: ['/healthz', '/metrics']}", nil, []auth.Attributes{health}},
		{"{level: Metadata, nonResourceURLs: ['*']}", []auth.Attributes{health}, []auth.Attributes{pods}},
	} {
		p := policy(t, "rules: ["+c.rule+"]")
		for _, a := range c.matches {
			assert.Equal(t, audit.Metadata, p.Level(a), "%s %+v", c.rule, a)
		}
		for _, a := range c.not {
			assert.Equal(t, audit.None, p.Level(a), "%s %+v", c.rule, a)
		}
	}
	first := policy(t, "rules: [{level: None, users: [alice]}, {level: RequestResponse}]")
	assert.Equal(t, audit.None, first.Level(pods))
	assert.Equal(t, audit.RequestResponse, first.Level(nobody))
}

func TestParsePolicyReportsViolations(t *testing.T) {
	for in, want := range map[string]string{
		head:               "no rules",
		head + "rules: []": "no rules",
		"kind: Policy\napiVersion: v1\nrules: [{level: None}]":               "unexpected kind v1, Kind=Policy",
		"kind: Config\napiVersion: audit.k8s.io/v1\nrules: [{level: None}]":  "Kind=Config: expected",
		"kind: Policy\napiVersion: audit.orch.io/v1\nrules: [{level: None}]": "expected audit.k8s.io/v1",
		head + "rules: [{}]":                                                            "rules[0]: no level",
		head + "rules: [{level: Everything}]":                                           `unknown level "Everything"`,
		head + "rules: [{level: None, user: [a]}]":                                      "user",
		head + "omitStages: [Later]\nrules: [{level: None}]":                            `unknown stage "Later"`,
		head + "rules: [{level: None, omitStages: [x]}]":                                `unknown stage "x"`,
		head + "rules: [{level: None, nonResourceURLs: [healthz]}]":                     "must begin with /",
		head + "rules: [{level: None, nonResourceURLs: ['/a*b']}]":                      "only at its end",
		head + "rules: [{level: None, nonResourceURLs: ['/a'], namespaces: [a]}]":       "must not have resources or namespaces",
		head + "rules: [{level: None, resources: [{group: apps/v1}]}]":                  "must not include a version",
		head + "rules: [{level: None, resources: [{group: apps, resourceNames: [a]}]}]": "require resources",
		"rules: [": "policy",
	} {
		_, err := audit.ParsePolicy([]byte(in), names.Kubernetes)
		assert.ErrorContains(t, err, want, in)
	}
	_, err := audit.ParsePolicy(make([]byte, 5<<20), names.Kubernetes)
	assert.Error(t, err)
}

func TestLoadPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	_, err := audit.LoadPolicy(path, names.Kubernetes)
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte(head), 0o600))
	_, err = audit.LoadPolicy(path, names.Kubernetes)
	assert.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte(head+"rules: [{level: Metadata}]"), 0o600))
	_, err = audit.LoadPolicy(path, names.Kubernetes)
	assert.NoError(t, err)
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(head + "rules: [{level: Metadata, resources: [{group: '', resources: ['*/x']}]}]"))
	f.Add([]byte(head + "rules: [{level: None, nonResourceURLs: ['*']}]"))
	f.Add([]byte("a: &a [*a, *a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := audit.ParsePolicy(data, names.Kubernetes)
		if err == nil {
			p.Level(auth.Attributes{Verb: "get", Resource: "pods", Subresource: "x"})
			p.Level(auth.Attributes{Verb: "get", Path: "/x"})
		}
	})
}

func ExampleParsePolicy() {
	p, err := audit.ParsePolicy([]byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata # never the content
  resources: [{resources: [secrets, configmaps]}]
- level: Request
  verbs: [create, update, patch, delete]
`), names.Kubernetes)
	if err != nil {
		panic(err)
	}
	for _, a := range []auth.Attributes{{Verb: "create", Resource: "secrets"}, {Verb: "create", Resource: "pods"}, {Verb: "get", Resource: "pods"}} {
		fmt.Println(a.Verb, a.Resource, p.Level(a))
	}
	// Output:
	// create secrets Metadata
	// create pods Request
	// get pods None
}
