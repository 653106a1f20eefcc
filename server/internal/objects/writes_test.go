package objects_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

var configMaps = meta.GroupResource{Resource: "configmaps"}

func configMap(name string) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}})
}

func keyOf(name string) meta.Key { return meta.Key{Namespace: "default", Name: name} }

// withPlugin returns a server with an admission plugin for config maps.
func withPlugin(t *testing.T, p admission.Plugin, configure ...func(*server.Builder)) (*servertest.Server, *apitest.Client) {
	p.Name, p.Rules = "Test", []admission.Rule{{Groups: []string{""}, Resources: []string{"configmaps"}}}
	s := servertest.New(t, append(configure, func(b *server.Builder) { b.Admission = append(b.Admission, p) })...)
	return s, apitest.NewClient(t, s.Host(), s.Client())
}

// TestDryRunsStoreNothing checks that the store has the same revision after the dry run of each verb, and that
// plugins see that nothing was written.
func TestDryRunsStoreNothing(t *testing.T) {
	t.Parallel()
	var outcomes []bool
	s, c := withPlugin(t, admission.Plugin{Validate: func(_ context.Context, r *admission.Request) error {
		r.After(func(written, certain bool) { outcomes = append(outcomes, written && certain) })
		return nil
	}})
	const path = "/api/v1/namespaces/default/configmaps"
	c.Must(201, "POST", path, map[string]any{"metadata": map[string]any{"name": "a"}})
	assert.Equal(t, []bool{true}, outcomes)
	revision := func() string {
		return c.Must(200, "GET", path, nil).Body["metadata"].(map[string]any)["resourceVersion"].(string)
	}
	before := revision()
	changed := map[string]any{"metadata": map[string]any{"name": "a"}, "data": map[string]any{"b": "c"}}
	for _, w := range []struct {
		code       int
		verb, name string
		body       any
	}{
		{201, "POST", "", map[string]any{"metadata": map[string]any{"name": "b"}}},
		{200, "PUT", "/a", changed},
		{200, "DELETE", "/a", nil},
		{200, "DELETE", "", nil},
	} {
		outcomes = nil
		c.Must(w.code, w.verb, path+w.name+"?dryRun=All", w.body)
		assert.Equal(t, []bool{false}, outcomes, w)
		assert.Equal(t, before, revision(), w)
	}
	_, err := s.Objects().Get(t.Context(), configMaps, keyOf("b"))
	assert.True(t, meta.IsNotFound(err))
}

// TestPluginsSeeFailedWrites checks the outcome of a write that is refused after a plugin admitted it, or that the
// store does not commit.
func TestPluginsSeeFailedWrites(t *testing.T) {
	t.Parallel()
	type outcome struct{ written, certain bool }
	var outcomes []outcome
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s, _ := withPlugin(t, admission.Plugin{Mutate: func(_ context.Context, r *admission.Request) error {
		r.After(func(written, certain bool) { outcomes = append(outcomes, outcome{written, certain}) })
		return nil
	}}, func(b *server.Builder) { b.Storage = store })
	_, err := s.Objects().Create(t.Context(), configMaps, configMap("a"))
	require.NoError(t, err)
	_, err = s.Objects().Create(t.Context(), configMaps, configMap("a"))
	require.True(t, meta.IsAlreadyExists(err))
	_, err = s.Objects().Create(t.Context(), configMaps, configMap("Not a name"))
	require.Error(t, err)
	for _, fault := range []error{storage.ErrFull, errors.New("the connection was lost")} {
		store.SetPlan(func(c faultinject.Call) (f faultinject.Fault) {
			if c.Op == faultinject.OpCommit && strings.HasPrefix(c.Key, "configmaps/") {
				f.Err = fault
			}
			return f
		})
		_, err = s.Objects().Create(t.Context(), configMaps, configMap("b"))
		require.Error(t, err)
	}
	assert.Equal(t, []outcome{{true, true}, {false, true}, {false, true}, {false, true}, {false, false}}, outcomes)
}

// TestDeletionPreconditionsComeBeforeValidation checks that validating plugins are not called for a deletion whose
// preconditions do not hold, and that such an object stays.
func TestDeletionPreconditionsComeBeforeValidation(t *testing.T) {
	t.Parallel()
	calls := 0
	s, _ := withPlugin(t, admission.Plugin{Validate: func(_ context.Context, r *admission.Request) error {
		if r.Operation == admission.Delete {
			calls++
		}
		return nil
	}})
	made, err := s.Objects().Create(t.Context(), configMaps, configMap("a"))
	require.NoError(t, err)
	for _, o := range []registry.DeleteOptions{{UID: "other"}, {Version: "1"}, {UID: made.UID(), Version: "1"}} {
		err := s.Objects().Delete(t.Context(), configMaps, keyOf("a"), o)
		assert.True(t, meta.IsConflict(err), err)
	}
	assert.Zero(t, calls)
	_, err = s.Objects().Get(t.Context(), configMaps, keyOf("a"))
	require.NoError(t, err)
	require.NoError(t, s.Objects().Delete(t.Context(), configMaps, keyOf("a"), registry.DeleteOptions{UID: made.UID(), Version: made.ResourceVersion()}))
	assert.Equal(t, 1, calls)
}

// TestAdmissionRunsAgainIfItsGroundChanged checks writes that admission decides by another object, which changes
// before the commit. Holds accepts an object with the data "fine".
func TestAdmissionRunsAgainIfItsGroundChanged(t *testing.T) {
	t.Parallel()
	update := func(value string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			_, err := c.Update(ctx, configMaps, keyOf("ground"), "", func(o *meta.Object) error {
				o.Set(value, "data", "state")
				return nil
			})
			return err
		}
	}
	remake := func(ctx context.Context, c client.Client) error {
		if err := c.Delete(ctx, configMaps, keyOf("ground"), registry.DeleteOptions{}); err != nil {
			return err
		}
		again := configMap("ground")
		again.Set("fine", "data", "state")
		_, err := c.Create(ctx, configMaps, again)
		return err
	}
	for name, tc := range map[string]struct {
		change   func(context.Context, client.Client) error
		holds    bool // there is a function Holds
		attempts int
	}{
		"no change":                     {func(context.Context, client.Client) error { return nil }, true, 1},
		"a change that Holds accepts":   {update("fine"), true, 1},
		"a change that Holds refuses":   {update("bad"), true, 2},
		"a change, and no Holds":        {update("fine"), false, 2},
		"deleted and created once more": {remake, true, 2},
	} {
		attempts := 0
		var c client.Client
		s, _ := withPlugin(t, admission.Plugin{Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Name != "a" {
				return nil
			}
			ground, err := c.Get(ctx, configMaps, keyOf("ground"))
			if err != nil {
				return err
			}
			p := admission.Precondition{Resource: configMaps, Object: ground}
			if tc.holds {
				p.Holds = func(now *meta.Object) bool { return now.String("data", "state") == "fine" }
			}
			r.Preconditions = append(r.Preconditions, p)
			switch attempts++; attempts {
			case 1:
				return tc.change(ctx, c)
			case 2:
				return nil
			}
			return errors.New("too many attempts")
		}})
		c = s.Objects()
		_, err := c.Create(t.Context(), configMaps, configMap("ground"))
		require.NoError(t, err)
		_, err = c.Create(t.Context(), configMaps, configMap("a"))
		require.NoError(t, err, name)
		assert.Equal(t, tc.attempts, attempts, name)
	}
}
