package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/badgerstore"
)

// refuser refuses deletions by name, and marks the options of each deletion, which must not be shared with other
// deletions.
func refuser(refuse func(name string) error) admission.Plugin {
	return admission.Plugin{
		Name: "refuser",
		Mutate: func(_ context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete && r.Options != nil {
				r.Options.Set(r.Name, "mark")
			}
			return nil
		},
		Validate: func(_ context.Context, r *admission.Request) error {
			if r.Operation != admission.Delete {
				return nil
			}
			if r.Options != nil && r.Options.String("mark") != r.Name {
				return errors.New("these options are another's")
			}
			return refuse(r.Name)
		},
	}
}

// TestDeleteCollectionDeletesConcurrently: objects are deleted many at a time. If several deletions fail, the error
// is that of the first object in order. A panic fails the request, not the server.
func TestDeleteCollectionDeletesConcurrently(t *testing.T) {
	t.Parallel()
	const objects = 200
	store, err := badgerstore.Open(badgerstore.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	var refuse func(name string) error
	s, log := apitest.NewErrorFree(t, func(b *server.Builder) {
		b.Storage = store
		b.Admission = append(b.Admission, refuser(func(name string) error { return refuse(name) }))
	})
	a := apitest.InProcess(t, s)
	for i := range objects {
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprintf("c%03d", i)))
	}
	left := func() []string { return a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names() }

	refuse = func(name string) error {
		if name == "c020" || name == "c025" || name == "c100" {
			return errors.New("not " + name)
		}
		return nil
	}
	for range 3 {
		got := a.Must(403, "DELETE", apitest.ConfigMapsPath, nil)
		assert.Contains(t, apitest.NestedString(got.Body, "message"), "not c020")
	}
	assert.Contains(t, left(), "c100", "objects far behind the failure must not be deleted")

	refuse = func(string) error { panic("refused loudly") }
	a.Must(500, "DELETE", apitest.ConfigMapsPath, nil)
	assert.NotEmpty(t, log.Take())
	assert.Contains(t, left(), "c199")

	refuse = func(string) error { return nil }
	before, n := store.Stats(), len(left())
	a.Must(200, "DELETE", apitest.ConfigMapsPath, nil)
	assert.Empty(t, left())
	assert.EqualValues(t, n, store.Stats().Commits-before.Commits, "each deletion is a commit")
	s.Settle()
}

func BenchmarkDeleteCollection(b *testing.B) {
	store, err := badgerstore.Open(badgerstore.Options{Dir: b.TempDir()})
	require.NoError(b, err)
	a := apitest.InProcess(b, servertest.New(b, apitest.WithStorage(store)))
	for b.Loop() {
		b.StopTimer()
		for i := range 100 {
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i)))
		}
		b.StartTimer()
		a.Must(200, "DELETE", apitest.ConfigMapsPath, nil)
	}
}
