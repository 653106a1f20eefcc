package verbs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestDuplicateOwnersAreStoredOnce: an owner reference that the caller or admission adds a second time is stored
// once.
func TestDuplicateOwnersAreStoredOnce(t *testing.T) {
	t.Parallel()
	owner := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}
	s := servertest.New(t, func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Owner", Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create, admission.Update}, Resources: []string{"configmaps"}}},
			Mutate: func(_ context.Context, r *admission.Request) error {
				r.Object.Set(append(r.Object.List("metadata", "ownerReferences"), meta.Clone(owner)), "metadata", "ownerReferences")
				return nil
			},
			Validate: func(_ context.Context, r *admission.Request) error {
				require.Equal(t, []any{owner}, r.Object.List("metadata", "ownerReferences"))
				return nil
			},
		})
	})
	a := apitest.InProcess(t, s)
	const path = "/api/v1/namespaces/default/configmaps"
	made := a.Must(201, "POST", path, `{"metadata":{"name":"a"}}`)
	require.Equal(t, []any{owner}, apitest.Nested(made.Body, "metadata", "ownerReferences"))
	changed := a.Must(200, "PATCH", path+"/a", `{"data":{"a":"b"}}`, "Content-Type", "application/merge-patch+json")
	require.Equal(t, []any{owner}, apitest.Nested(changed.Body, "metadata", "ownerReferences"))
	same := a.Must(200, "PATCH", path+"/a", `{"data":{"a":"b"}}`, "Content-Type", "application/merge-patch+json")
	require.Equal(t, apitest.Nested(changed.Body, "metadata", "resourceVersion"), apitest.Nested(same.Body, "metadata", "resourceVersion"))
}
