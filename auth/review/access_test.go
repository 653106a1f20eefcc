package review_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/registry"
)

func TestAccessReviewReturnsDecision(t *testing.T) {
	var asked auth.Attributes
	decision, reason, fault := auth.NoOpinion, "", error(nil)
	r := review.New(auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
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
	assert.Equal(t, auth.Attributes{User: u, Verb: "get", Group: "g", Version: "v", Resource: "r", Subresource: "s", Namespace: "ns", Name: "n"}, asked)

	decision, reason = auth.Allow, "because"
	out, err = r.SelfSubject(context.Background(), call(map[string]any{"nonResourceAttributes": map[string]any{"verb": "get", "path": "/x"}}))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"allowed": true, "reason": "because"}, out.Map("status"))
	assert.Equal(t, auth.Attributes{User: &auth.User{Name: "me"}, Verb: "get", Path: "/x"}, asked)

	decision, reason, fault = auth.Deny, "", errors.New("broken")
	out, err = r.Subject(context.Background(), call(map[string]any{"user": "u", "resourceAttributes": resource}))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"allowed": false, "denied": true, "evaluationError": "broken"}, out.Map("status"))

	_, err = r.SelfSubject(context.Background(), &registry.Call{Object: &meta.Object{}})
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
}

// TestAccessReviewSelectors checks the selectors of the action, and the messages for
// invalid requirements.
func TestAccessReviewSelectors(t *testing.T) {
	part := func(key, operator string, values ...any) map[string]any {
		return map[string]any{"key": key, "operator": operator, "values": values}
	}
	const field, label = "spec.resourceAttributes.fieldSelector ", "spec.resourceAttributes.labelSelector "
	for _, c := range []struct {
		field, label          map[string]any
		fields, labels, fault string
	}{
		{map[string]any{"rawSelector": "metadata.name=x"}, map[string]any{"rawSelector": "a in (b)"}, "metadata.name=x", "a in (b)", ""},
		{map[string]any{"rawSelector": "!!"}, nil, "", "", field + "ignored due to parse error"},
		{nil, map[string]any{"rawSelector": "a in (b"}, "", "", label + "ignored due to parse error"},
		{map[string]any{"requirements": []any{part("a", "In", "b,c"), part("d", "NotIn", "e")}}, nil, `a=b\,c,d!=e`, "", ""},
		{map[string]any{"requirements": []any{part("a", "In", "b"), part("d", "Exists")}}, nil, "a=b", "", field + "partially ignored due to parse error"},
		{map[string]any{"requirements": []any{part("a,b=c", "In", "b")}}, nil, "", "", field + "ignored due to parse error"},
		{map[string]any{"requirements": []any{part("a", "In", "b", "c")}}, map[string]any{"requirements": []any{part("a", "Newer")}}, "", "",
			field + "ignored due to parse error; " + label + "ignored due to parse error"},
		{nil, map[string]any{"requirements": []any{part("a", "Newer"), part("b", "Exists")}}, "", "b", label + "partially ignored due to parse error"},
	} {
		var asked auth.Attributes
		r := review.New(auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			asked = a
			return auth.Allow, "", nil
		}))
		attributes := map[string]any{"verb": "list", "resource": "pods"}
		if c.field != nil {
			attributes["fieldSelector"] = c.field
		}
		if c.label != nil {
			attributes["labelSelector"] = c.label
		}
		out, err := r.SelfSubject(context.Background(), &registry.Call{User: &auth.User{Name: "me"},
			Object: meta.NewObject(map[string]any{"spec": map[string]any{"resourceAttributes": attributes}})})
		require.NoError(t, err)
		assert.Equal(t, c.fields, asked.Fields, c)
		assert.Equal(t, c.labels, asked.Labels, c)
		assert.Equal(t, c.fault, out.String("status", "evaluationError"), c)
	}
}

func TestSelfSubjectRulesReviewReturnsRules(t *testing.T) {
	call := &registry.Call{User: &auth.User{Name: "root", Groups: []string{auth.Masters}}, Object: meta.NewObject(map[string]any{"spec": map[string]any{"namespace": "ns"}})}
	out, err := review.New(auth.Chain(auth.Superuser(auth.Masters))).SelfSubjectRules(context.Background(), call)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"resourceRules":    []any{map[string]any{"verbs": []any{"*"}, "apiGroups": []any{"*"}, "resources": []any{"*"}}},
		"nonResourceRules": []any{map[string]any{"verbs": []any{"*"}, "nonResourceURLs": []any{"*"}}},
		"incomplete":       false,
	}, out.Map("status"))
	assert.Equal(t, map[string]any{}, out.Map("spec"))
	_, err = review.New(auth.DenyAll).SelfSubjectRules(context.Background(), &registry.Call{User: call.User, Object: meta.NewObject(nil)})
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
	out, err = review.New(auth.DenyAll).SelfSubjectRules(context.Background(), call)
	require.NoError(t, err)
	assert.True(t, out.Bool("status", "incomplete"))
	assert.Equal(t, []any{}, out.List("status", "resourceRules"))
}
