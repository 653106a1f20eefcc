package server_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
)

// TestFailuresAreToldOnce: who makes requests fail without end fills no log with it,
// and what was left out is told, as is any other cause.
func TestFailuresAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newTough(t, func(b *server.Builder) {
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
		a := inProcess(t, s)
		for range 35 {
			a.must(500, "POST", configMaps, newConfigMap("bad"))
			a.must(500, "POST", configMaps, newConfigMap("loud"))
		}
		told := log.take()
		require.Len(t, told, 20)
		assert.Contains(t, told[0], "badly")
		assert.Contains(t, told[1], "loudly")
		assert.Contains(t, told[1], "stack=")
		assert.Contains(t, told[1], "path="+configMaps)
		assert.Equal(t, "35", a.panics("request"))

		a.must(500, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"bad"}}`)
		assert.Len(t, log.take(), 1, "another cause")

		time.Sleep(time.Minute)
		a.must(500, "POST", configMaps, newConfigMap("bad"))
		told = log.take()
		require.Len(t, told, 3)
		assert.Contains(t, fmt.Sprint(told[:2]), "cause=panic in request: loudly count=25")
		assert.Contains(t, fmt.Sprint(told[:2]), "of configmaps count=25")
		assert.Contains(t, told[2], "badly")

		for range 12 {
			a.must(500, "POST", configMaps, newConfigMap("bad"))
		}
		log.take()
		require.NoError(t, s.Shutdown(t.Context()))
		told = log.take()
		require.Len(t, told, 1)
		assert.Contains(t, told[0], "count=3")
	})
}
