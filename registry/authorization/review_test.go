package authorization_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/authorization"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Reviews with faults do not reach the function that answers them.
func TestReviewFaults(t *testing.T) {
	kinds := map[string]*registry.Type{}
	for _, k := range authorization.Kinds(authorization.Answers{Subject: act, SelfSubject: act, LocalSubject: act, SelfSubjectRules: act}) {
		c, err := k.Compile(names.Kubernetes)
		require.NoError(t, err)
		kinds[c.Kind] = c
	}
	resource := map[string]any{"verb": "get", "resource": "pods", "namespace": "ns"}
	elsewhere := map[string]any{"verb": "get", "resource": "pods", "namespace": "other"}
	path := map[string]any{"path": "/", "verb": "get"}
	for _, c := range []struct {
		kind string
		spec map[string]any
		want string
	}{
		{"SelfSubjectAccessReview", map[string]any{"resourceAttributes": resource}, ""},
		{"SelfSubjectAccessReview", map[string]any{"nonResourceAttributes": map[string]any{}}, ""},
		{"SelfSubjectAccessReview", map[string]any{"resourceAttributes": resource, "nonResourceAttributes": path}, "spec.nonResourceAttributes"},
		{"SelfSubjectAccessReview", map[string]any{}, "spec.resourceAttributes"},
		{"SubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, ""},
		{"SubjectAccessReview", map[string]any{"groups": []any{"g"}, "resourceAttributes": resource}, ""},
		{"SubjectAccessReview", map[string]any{"resourceAttributes": resource}, "spec.user"},
		{"SubjectAccessReview", map[string]any{"user": "u"}, "spec.resourceAttributes"},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, ""},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": elsewhere}, "spec.resourceAttributes.namespace"},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "nonResourceAttributes": path}, "spec.nonResourceAttributes"},
		{"SelfSubjectRulesReview", map[string]any{"namespace": "ns"}, ""},
		{"SelfSubjectRulesReview", map[string]any{}, "spec.namespace"},
	} {
		call := &registry.Call{Names: names.Kubernetes, Key: meta.Key{Namespace: "ns"}, Object: meta.NewObject(map[string]any{"spec": c.spec})}
		_, err := kinds[c.kind].Act(context.Background(), call)
		if c.want == "" {
			require.NoError(t, err, c)
			continue
		}
		var status *meta.Status
		require.ErrorAs(t, err, &status)
		var fields []string
		for _, cause := range status.Details.Causes {
			fields = append(fields, cause.Field)
		}
		require.Equal(t, c.want, strings.Join(fields, " "), c)
	}
}
