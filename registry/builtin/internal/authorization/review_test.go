package authorization_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/authorization"
)

// act returns the review as it is; reviews with violations do not reach it.
func act(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }

func TestReviewViolations(t *testing.T) {
	kinds := map[string]*resource.Type{}
	for _, k := range authorization.Kinds(authorization.Answers{Subject: act, SelfSubject: act, LocalSubject: act, SelfSubjectRules: act}) {
		c, err := resource.Compile(k, names.Kubernetes)
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
		data map[string]any // metadata of the review
	}{
		{"SelfSubjectAccessReview", map[string]any{"resourceAttributes": resource}, "", nil},
		{"SelfSubjectAccessReview", map[string]any{"nonResourceAttributes": map[string]any{}}, "", nil},
		{"SelfSubjectAccessReview", map[string]any{"resourceAttributes": resource, "nonResourceAttributes": path}, "spec", nil},
		{"SelfSubjectAccessReview", map[string]any{}, "spec", nil},
		{"SubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "", nil},
		{"SubjectAccessReview", map[string]any{"groups": []any{"g"}, "resourceAttributes": resource}, "", nil},
		{"SubjectAccessReview", map[string]any{"resourceAttributes": resource}, "spec.user", nil},
		{"SubjectAccessReview", map[string]any{"user": "u"}, "spec", nil},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "", nil},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": elsewhere}, "spec.resourceAttributes.namespace", nil},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "nonResourceAttributes": path}, "spec.nonResourceAttributes", nil},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource, "nonResourceAttributes": path}, "spec spec.nonResourceAttributes", nil},
		{"SelfSubjectAccessReview", map[string]any{"resourceAttributes": resource}, "metadata", map[string]any{"name": "n"}},
		{"SubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "metadata", map[string]any{"labels": map[string]any{"a": "b"}}},
		{"SubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "", map[string]any{"managedFields": []any{}}},
		{"SubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "",
			map[string]any{"name": "", "labels": map[string]any{}, "annotations": nil, "ownerReferences": []any{}}},
		{"SubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "metadata", map[string]any{"resourceVersion": "1"}},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": elsewhere}, "metadata spec.resourceAttributes.namespace", map[string]any{"namespace": "ns", "name": "n"}},
		{"LocalSubjectAccessReview", map[string]any{"user": "u", "resourceAttributes": resource}, "", map[string]any{"namespace": "ns"}},
		{"SelfSubjectAccessReview", selects("fieldSelector", map[string]any{}), "spec.resourceAttributes.fieldSelector.requirements", nil},
		{"SelfSubjectAccessReview", selects("labelSelector", map[string]any{"requirements": []any{}}), "spec.resourceAttributes.labelSelector.requirements", nil},
		{"SelfSubjectAccessReview", selects("fieldSelector", map[string]any{"rawSelector": "!!"}), "", nil},
		{"SelfSubjectAccessReview", selects("fieldSelector", map[string]any{"rawSelector": "a=b", "requirements": []any{part("a", "In", "b")}}), "spec.resourceAttributes.fieldSelector.rawSelector", nil},
		{"SelfSubjectAccessReview", selects("fieldSelector", map[string]any{"requirements": []any{part("", "In", "b"), part("a", "NotIn"), part("a", "Exists", "b"), part("a b", "Newer")}}),
			"spec.resourceAttributes.fieldSelector.requirements[0].key spec.resourceAttributes.fieldSelector.requirements[1].values spec.resourceAttributes.fieldSelector.requirements[2].values", nil},
		{"SelfSubjectAccessReview", selects("labelSelector", map[string]any{"requirements": []any{part("a b", "In", "c"), part("a", "In", "b c"), part("a", "Newer")}}),
			"spec.resourceAttributes.labelSelector.requirements[0].key spec.resourceAttributes.labelSelector.requirements[1].values[0]", nil},
	} {
		call := &registry.Call{Names: names.Kubernetes, Key: meta.Key{Namespace: "ns"}, Object: meta.NewObject(map[string]any{"metadata": c.data, "spec": c.spec})}
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

// selects returns attributes of a request for pods with the selector.
func selects(name string, selector map[string]any) map[string]any {
	return map[string]any{"resourceAttributes": map[string]any{"verb": "list", "resource": "pods", name: selector}}
}

func part(key, operator string, values ...any) map[string]any {
	return map[string]any{"key": key, "operator": operator, "values": values}
}
