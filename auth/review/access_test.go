package review_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

func TestAccess(t *testing.T) {
	var asked auth.Action
	decision, reason, fault := auth.NoOpinion, "", error(nil)
	r := review.New(auth.AuthorizerFunc(func(_ context.Context, a auth.Action) (auth.Decision, string, error) {
		asked = a
		return decision, reason, fault
	}))
	resource := map[string]any{"verb": "get", "group": "g", "version": "v", "resource": "r", "subresource": "s", "namespace": "ns", "name": "n"}
	call := func(spec map[string]any) *registry.Call {
		return &registry.Call{User: &auth.User{Name: "me"}, Object: meta.NewObject(map[string]any{"kind": "X", "spec": spec})}
	}
	out, err := r.Subject(context.Background(), call(map[string]any{"user": "u", "uid": "1", "groups": []any{"a"},
		"extra": map[string]any{"k": []any{"v"}}, "resourceAttributes": resource}))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"allowed": false}, out.Map("status"))
	u := &auth.User{Name: "u", UID: "1", Groups: []string{"a"}, Extra: map[string][]string{"k": {"v"}}}
	assert.Equal(t, auth.Action{User: u, Verb: "get", Group: "g", Version: "v", Resource: "r", Subresource: "s", Namespace: "ns", Name: "n"}, asked)

	decision, reason = auth.Allow, "because"
	out, err = r.SelfSubject(context.Background(), call(map[string]any{"nonResourceAttributes": map[string]any{"verb": "get", "path": "/x"}}))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"allowed": true, "reason": "because"}, out.Map("status"))
	assert.Equal(t, auth.Action{User: &auth.User{Name: "me"}, Verb: "get", Path: "/x"}, asked)

	decision, reason, fault = auth.Deny, "", errors.New("broken")
	out, err = r.LocalSubject(context.Background(), call(map[string]any{"user": "u", "resourceAttributes": resource}))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"allowed": false, "denied": true, "evaluationError": "broken"}, out.Map("status"))

	_, err = r.SelfSubject(context.Background(), &registry.Call{Object: &meta.Object{}})
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
}

func TestAccessRules(t *testing.T) {
	call := &registry.Call{User: &auth.User{Name: "root", Groups: []string{auth.Masters}}, Object: meta.NewObject(map[string]any{"spec": map[string]any{"namespace": "ns"}})}
	out, err := review.New(auth.Chain(auth.Superuser(auth.Masters))).SelfSubjectRules(context.Background(), call)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"resourceRules":    []any{map[string]any{"verbs": []any{"*"}, "apiGroups": []any{"*"}, "resources": []any{"*"}}},
		"nonResourceRules": []any{map[string]any{"verbs": []any{"*"}, "nonResourceURLs": []any{"*"}}},
		"incomplete":       false,
	}, out.Map("status"))
	out, err = review.New(auth.DenyAll).SelfSubjectRules(context.Background(), call)
	require.NoError(t, err)
	assert.True(t, out.Bool("status", "incomplete"))
	assert.Equal(t, []any{}, out.List("status", "resourceRules"))
}
