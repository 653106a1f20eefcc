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

// refuser refuses deletions by name and marks the options of each, which are
// nobody else's.
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

// TestDeleteCollectionTogether: objects go many at a time; of several failures the
// first in order is told, and a panic ends the request, not the server.
func TestDeleteCollectionTogether(t *testing.T) {
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
	assert.Contains(t, left(), "c100", "nothing far behind the failure is touched")

	refuse = func(string) error { panic("refused loudly") }
	a.Must(500, "DELETE", apitest.ConfigMapsPath, nil)
	assert.NotEmpty(t, log.Take())
	assert.Contains(t, left(), "c199")

	refuse = func(string) error { return nil }
	before, n := store.Stats(), len(left())
	a.Must(200, "DELETE", apitest.ConfigMapsPath, nil)
	assert.Empty(t, left())
	assert.EqualValues(t, n, store.Stats().Commits-before.Commits, "each object is one commit")
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
