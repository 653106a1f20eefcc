package door_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
)

// TestRepeatedFailureIsLoggedOnce repeats a failure: it is logged once, with a count of the omitted
// records, and other failures are still logged.
func TestRepeatedFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := apitest.NewErrorFree(t, func(b *server.Builder) {
			b.Admission = append(b.Admission, admission.Plugin{Name: "test", Validate: func(_ context.Context, r *admission.Request) error {
				switch name := r.Object.Name(); name {
				case "loud":
					panic("loudly")
				case "bad":
					return meta.Internal(errors.New("badly"))
				}
				return nil
			}})
		})
		a := apitest.InProcess(t, s)
		for range 35 {
			a.Must(500, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("bad"))
			a.Must(500, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("loud"))
		}
		logged := log.Take()
		require.Len(t, logged, 20)
		assert.Contains(t, logged[0], "badly")
		assert.Contains(t, logged[1], "loudly")
		assert.Contains(t, logged[1], "stack=")
		assert.Contains(t, logged[1], "path="+apitest.ConfigMapsPath)
		assert.Equal(t, "35", a.RecoveredPanics("request"))

		a.Must(500, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"bad"}}`)
		assert.Len(t, log.Take(), 1, "another cause")

		time.Sleep(time.Minute)
		a.Must(500, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("bad"))
		logged = log.Take()
		require.Len(t, logged, 3)
		assert.Contains(t, fmt.Sprint(logged[:2]), "cause=panic in request of orch.io/controlplane/server/internal/door_test.TestRepeatedFailureIsLoggedOnce.")
		assert.Contains(t, fmt.Sprint(logged[:2]), "a refusal of configmaps count=25")
		assert.Contains(t, logged[2], "badly")

		for range 12 {
			a.Must(500, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("bad"))
		}
		log.Take()
		require.NoError(t, s.Shutdown(t.Context()))
		logged = log.Take()
		require.Len(t, logged, 1)
		assert.Contains(t, logged[0], "count=3")
	})
}

type thing struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
}

// TestFailureLogGroupsByCause checks that values in requests do not create new causes, and that
// many failures of a cause do not suppress another cause.
func TestFailureLogGroupsByCause(t *testing.T) {
	t.Parallel()
	const kinds = 25
	s, log := apitest.NewErrorFree(t, func(b *server.Builder) {
		for i := range kinds {
			b.Register(registry.Of(registry.Definition[thing]{Group: "example.com", Version: "v1", Kind: fmt.Sprint("Kind", i)}))
		}
		b.Admission = append(b.Admission, admission.Plugin{Name: "test", Mutate: func(_ context.Context, r *admission.Request) error {
			name := r.Object.Name()
			if strings.HasPrefix(name, "loud") {
				panic("found " + name)
			}
			if name == "bad" {
				return meta.Internal(errors.New("badly"))
			}
			return nil
		}})
	})
	a := apitest.InProcess(t, s)
	for i := range 100 {
		a.Must(500, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("loud-", i)))
	}
	assert.Len(t, log.Take(), 10, "one function panics")
	for i := range kinds {
		for range 12 {
			a.Must(500, "POST", fmt.Sprintf("/apis/example.com/v1/namespaces/default/kind%ds", i), `{"apiVersion":"example.com/v1","metadata":{"name":"bad"}}`)
		}
	}
	assert.Len(t, log.Take(), 20*10+10, "one way to fail")
}
