package harness

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/servertest"
)

var key = meta.Key{Namespace: "default", Name: "a"}

func greet(t *testing.T, s *servertest.Server, name, whom string) *meta.Object {
	t.Helper()
	o, err := s.Objects().Create(t.Context(), Greetings, meta.NewObject(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Greeting",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "whom": whom,
	}))
	require.NoError(t, err)
	return o
}

func text(t *testing.T, s *servertest.Server, name string) string {
	t.Helper()
	s.Settle()
	o, err := s.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "default", Name: name})
	if meta.IsNotFound(err) {
		return "none"
	}
	require.NoError(t, err)
	return o.String("data", "text")
}

func TestGreetingMakesConfigMap(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, Register)
	greet(t, s, "a", "world")
	require.Equal(t, "hello world", text(t, s, "a"))
}

// TestForksAreIndependent fills one server and gives each subtest a fork of it. The forks run in
// parallel and do not see each other's changes.
func TestForksAreIndependent(t *testing.T) {
	t.Parallel()
	seeded := servertest.New(t, Register)
	for i := range 20 {
		greet(t, seeded, fmt.Sprintf("g%d", i), "world")
	}
	greet(t, seeded, "a", "world")
	seeded.Settle()

	t.Run("change", func(t *testing.T) {
		t.Parallel()
		s := seeded.Fork(t)
		_, err := s.Objects().Update(t.Context(), Greetings, key, "", func(o *meta.Object) error {
			o.Set("moon", "whom")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, "hello moon", text(t, s, "a"))
		require.Equal(t, "hello world", text(t, s, "g0"))
	})
	t.Run("repair", func(t *testing.T) {
		t.Parallel()
		s := seeded.Fork(t)
		require.NoError(t, s.Objects().Delete(t.Context(), configMaps, key, registry.DeleteOptions{}))
		require.Equal(t, "hello world", text(t, s, "a"))
	})
	t.Run("delete", func(t *testing.T) {
		t.Parallel()
		s := seeded.Fork(t)
		require.NoError(t, s.Objects().Delete(t.Context(), Greetings, key, registry.DeleteOptions{}))
		require.Equal(t, "none", text(t, s, "a"))
		require.Equal(t, "hello world", text(t, s, "g0"))
	})
}

// TestEventExpiresAfterAnHour runs with a fake clock, which jumps when all goroutines wait: an event
// expires after an hour, without a real delay.
func TestEventExpiresAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t, Register)
		events := meta.GroupResource{Resource: "events"}
		_, err := s.Objects().Create(t.Context(), events, meta.NewObject(map[string]any{
			"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": "e", "namespace": "default"},
			"involvedObject": map[string]any{"namespace": "default"},
		}))
		require.NoError(t, err)
		greet(t, s, "a", "world")
		time.Sleep(59 * time.Minute)
		_, err = s.Objects().Get(t.Context(), events, meta.Key{Namespace: "default", Name: "e"})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, err = s.Objects().Get(t.Context(), events, meta.Key{Namespace: "default", Name: "e"})
		require.True(t, meta.IsNotFound(err), "%v", err)
		require.Equal(t, "hello world", text(t, s, "a"))
	})
}
