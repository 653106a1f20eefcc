package builtin_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

func echo(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }

func everyKind(p names.Profile) []*registry.Kind {
	return slices.Concat(builtin.Kinds(), builtin.Reviews(builtin.Answers{
		TokenReview: echo, SelfSubjectReview: echo, SubjectAccessReview: echo, SelfSubjectAccessReview: echo,
		LocalSubjectAccessReview: echo, SelfSubjectRulesReview: echo,
	}))
}

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range everyKind(p) {
			_, err := resource.Compile(k, p)
			require.NoError(t, err, "%s with %s names", k.Kind, p)
		}
	}
}

// TestFieldsAreDocumentedAndNumbered checks that each field of each built-in kind has documentation for
// kubectl explain and a protobuf number.
func TestFieldsAreDocumentedAndNumbered(t *testing.T) {
	for _, k := range everyKind(names.Kubernetes) {
		compiled, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err, k.Kind)
		s := compiled.Storage.Schema()
		require.NotEmpty(t, compiled.Docs.Struct(s.Struct), "%s has no doc comment", k.Kind)
		seen := map[*schema.Struct]bool{schema.Metadata(names.Kubernetes).Struct: true}
		walk(s, seen, func(st *schema.Struct, f *schema.Field) {
			if st.Go != nil && st.Go.FieldByIndex(f.Index[:1]).Type == reflect.TypeFor[meta.TypeMeta]() {
				return
			}
			require.NotEmpty(t, compiled.Docs.Field(st, f), "%s: %s.%s has no doc comment", k.Kind, st.Name, f.Name)
			require.NotZero(t, f.Number, "%s: %s.%s has no protobuf number", k.Kind, st.Name, f.Name)
		})
	}
}

func walk(s *schema.Schema, seen map[*schema.Struct]bool, visit func(*schema.Struct, *schema.Field)) {
	if s == nil {
		return
	}
	walk(s.Items, seen, visit)
	walk(s.Values, seen, visit)
	if s.Struct == nil || seen[s.Struct] {
		return
	}
	seen[s.Struct] = true
	for _, f := range s.Struct.Fields {
		visit(s.Struct, f)
		walk(f.Schema, seen, visit)
	}
}
