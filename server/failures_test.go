package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"orch.io/controlplane/storage/memstore"
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
		assert.Contains(t, fmt.Sprint(told[:2]), "cause=panic in request of orch.io/controlplane/server_test.TestFailuresAreToldOnce.")
		assert.Contains(t, fmt.Sprint(told[:2]), "a refusal of configmaps count=25")
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

type thing struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
}

// TestFailuresByCause: what callers choose makes no cause, and however much fails in
// one way, what fails in another is told.
func TestFailuresByCause(t *testing.T) {
	const kinds = 25
	s, log := newTough(t, func(b *server.Builder) {
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
	a := inProcess(t, s)
	for i := range 100 {
		a.must(500, "POST", configMaps, newConfigMap(fmt.Sprint("loud-", i)))
	}
	assert.Len(t, log.take(), 10, "one function panics")
	for i := range kinds {
		for range 12 {
			a.must(500, "POST", fmt.Sprintf("/apis/example.com/v1/namespaces/default/kind%ds", i), `{"apiVersion":"example.com/v1","metadata":{"name":"bad"}}`)
		}
	}
	assert.Len(t, log.take(), 20*10+10, "one way to fail")
}

// TestConversionPanicsByCause: what a conversion panics with names the object.
func TestConversionPanicsByCause(t *testing.T) {
	log := &quiet{}
	a := gadgetServer(t, memstore.New(memstore.Options{}), "v2", func(b *server.Builder) { b.Logger = slog.New(log) })
	for i := range 100 {
		a.must(500, "POST", gadgetPath("v1", ""), fmt.Sprintf(`{"metadata":{"name":"b%d"},"spec":{"host":"panic"}}`, i))
	}
	assert.Len(t, log.take(), 10)
}
