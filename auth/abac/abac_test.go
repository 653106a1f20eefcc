package abac_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/abac"
)

const head = `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":`

func ExampleParse() {
	a, _ := abac.Parse(strings.NewReader(head+`{"user":"alice","namespace":"*","resource":"*","apiGroup":"*","readonly":true}}`), names.Kubernetes)
	alice := &auth.User{Name: "alice"}
	for _, verb := range []string{"get", "delete"} {
		d, _, _ := a.Authorize(context.Background(), auth.Attributes{User: alice, Verb: verb, Resource: "pods", Namespace: "ns"})
		fmt.Println(verb, d == auth.Allow)
	}
	// Output:
	// get true
	// delete false
}

func TestPoliciesMatch(t *testing.T) {
	pods := func(verb, ns string) auth.Attributes {
		return auth.Attributes{Verb: verb, Resource: "pods", Namespace: ns}
	}
	path := func(verb, p string) auth.Attributes { return auth.Attributes{Verb: verb, Path: p} }
	someone := &auth.User{Name: "y", Groups: []string{auth.Authenticated}}
	tests := []struct {
		spec string
		user *auth.User
		a    auth.Attributes
		want bool
	}{
		{`{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}`, &auth.User{Name: "alice"}, pods("delete", "ns"), true},
		{`{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}`, &auth.User{Name: "alic"}, pods("delete", "ns"), false},
		{`{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}`, nil, pods("delete", "ns"), false},
		{`{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}`, &auth.User{Name: "alice"}, path("get", "/"), false},
		{`{"user":"bob","namespace":"ns","resource":"pods","readonly":true}`, &auth.User{Name: "bob"}, pods("list", "ns"), true},
		{`{"user":"bob","namespace":"ns","resource":"pods","readonly":true}`, &auth.User{Name: "bob"}, pods("create", "ns"), false},
		{`{"user":"bob","namespace":"ns","resource":"pods"}`, &auth.User{Name: "bob"}, pods("list", "other"), false},
		{`{"user":"bob","namespace":"ns","resource":"pods"}`, &auth.User{Name: "bob"}, pods("list", ""), false},
		{`{"user":"bob","resource":"pods"}`, &auth.User{Name: "bob"}, pods("list", ""), true},
		{`{"user":"bob","resource":"pods"}`, &auth.User{Name: "bob"}, pods("list", "ns"), false},
		{`{"user":"bob","namespace":"*"}`, &auth.User{Name: "bob"}, pods("list", "ns"), false},
		{`{"user":"bob","resource":"pods","namespace":"*","apiGroup":"apps"}`, &auth.User{Name: "bob"}, pods("list", "ns"), false},
		{`{"group":"devs","resource":"*","namespace":"*"}`, &auth.User{Name: "x", Groups: []string{"devs"}}, pods("list", "ns"), true},
		{`{"group":"devs","resource":"*","namespace":"*"}`, &auth.User{Name: "devs"}, pods("list", "ns"), false},
		{`{"user":"x","group":"devs","resource":"*","namespace":"*"}`, &auth.User{Name: "y", Groups: []string{"devs"}}, pods("list", "ns"), false},
		{`{"user":"*","resource":"*","namespace":"*"}`, someone, pods("list", "ns"), true},
		{`{"resource":"*","namespace":"*","apiGroup":"*","nonResourcePath":"*"}`, someone, pods("list", "ns"), false},
		{`{"group":"*","nonResourcePath":"/x/*"}`, someone, path("post", "/x/a/b"), true},
		{`{"group":"*","nonResourcePath":"/x/*"}`, someone, path("post", "/x"), false},
		{`{"group":"*","nonResourcePath":"/x"}`, someone, path("get", "/x"), true},
		{`{"group":"*","nonResourcePath":"/x"}`, someone, path("get", "/x/a"), false},
		{`{"group":"*","nonResourcePath":"/x"}`, someone, path("get", "/xa"), false},
		{`{"group":"*","nonResourcePath":"/x","readonly":true}`, someone, path("post", "/x"), false},
		{`{"group":"*","nonResourcePath":"*"}`, someone, path("get", "/"), true},
		{`{"group":"*","nonResourcePath":"*"}`, auth.NewAnonymous(), path("get", "/"), false},
		{`{"user":"*","resource":"*","namespace":"*"}`, auth.NewAnonymous(), pods("list", "ns"), false},
		{`{"user":"*","group":"system:unauthenticated","resource":"*","namespace":"*"}`, auth.NewAnonymous(), pods("list", "ns"), false},
		{`{"user":"system:anonymous","resource":"*","namespace":"*"}`, auth.NewAnonymous(), pods("list", "ns"), true},
		{`{"group":"system:unauthenticated","resource":"*","namespace":"*"}`, auth.NewAnonymous(), pods("list", "ns"), true},
	}
	for _, tt := range tests {
		a, err := abac.Parse(strings.NewReader("# comment\n\n"+head+tt.spec+"}\n"), names.Kubernetes)
		require.NoError(t, err)
		tt.a.User = tt.user
		d, _, err := a.Authorize(context.Background(), tt.a)
		require.NoError(t, err)
		assert.Equal(t, tt.want, d == auth.Allow, "%s %+v", tt.spec, tt.a)
	}
}

func TestParseReportsInvalidLines(t *testing.T) {
	for _, line := range []string{
		`{}`, `x`, `[]`, `{"user":"alice","namespace":"*"}`, head + `{"user":"a"}}}`, head + `{"user":1}}`,
		head + `{"user":"a","readOnlyy":true}}`, strings.Replace(head, "v1beta1", "v1", 1) + `{"user":"a"}}`,
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy"}`, head + `{"user":"` + strings.Repeat("a", 70_000) + `"}}`,
	} {
		_, err := abac.Parse(strings.NewReader("\n"+line), names.Kubernetes)
		require.ErrorContains(t, err, "line 2")
	}
	_, err := abac.Load("/nonexistent", names.Orch)
	require.Error(t, err)
}

func TestFilesAreBounded(t *testing.T) {
	line := head + `{"user":"a"}}` + "\n"
	_, err := abac.Parse(strings.NewReader(strings.Repeat(line, 100_000)), names.Kubernetes)
	require.NoError(t, err)
	_, err = abac.Parse(strings.NewReader(strings.Repeat(line, 100_001)), names.Kubernetes)
	require.ErrorContains(t, err, "more than 100000 policies")
}

func TestRulesForListsPolicies(t *testing.T) {
	a := abac.New(abac.Policy{User: "u", Namespace: "ns", Resource: "pods", Readonly: true}, abac.Policy{Group: "*", NonResourcePath: "/x"})
	u := &auth.User{Name: "u", Groups: []string{auth.Authenticated}}
	assert.Equal(t, auth.Rules{
		Resource:    []auth.ResourceRule{{Verbs: []string{"get", "list", "watch"}, Groups: []string{""}, Resources: []string{"pods"}}},
		NonResource: []auth.NonResourceRule{{Verbs: []string{"*"}, Paths: []string{"/x"}}},
	}, a.RulesFor(context.Background(), u, "ns"))
	assert.Empty(t, a.RulesFor(context.Background(), u, "other").Resource)
}

func FuzzParse(f *testing.F) {
	f.Add(head + `{"user":"alice","namespace":"*","resource":"*"}}`)
	f.Add("#\n\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := abac.Parse(strings.NewReader(text), names.Kubernetes)
		if err != nil {
			return
		}
		d, _, _ := a.Authorize(context.Background(), auth.Attributes{Verb: "get", Path: "/"})
		assert.Equal(t, auth.NoOpinion, d, "a request without a user is not allowed")
	})
}
