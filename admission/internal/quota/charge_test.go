package quota_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// used returns status.used of a quota.
func used(t *testing.T, s *servertest.Server, name string) string {
	t.Helper()
	q, err := s.Objects().Get(t.Context(), quotas, meta.Key{Namespace: "default", Name: name})
	require.NoError(t, err)
	return q.String("status", "used", "count/configmaps")
}

// withoutCounts leaves out the controller, so that the usage changes with writes only.
func withoutCounts(env *admission.PluginContext) { env.Control = nil }

func TestDryRunsTakeNoUsage(t *testing.T) {
	s, _ := withLedger(t, withoutCounts)
	bound(t, s.Objects(), 2)
	_, err := s.Objects().Create(t.Context(), configMaps, object("a"))
	require.NoError(t, err)
	res, err := s.Client().Post(s.URL()+"/api/v1/namespaces/default/configmaps?dryRun=All", "application/json", strings.NewReader(`{"metadata":{"name":"b"}}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusCreated, res.StatusCode)
	assert.Equal(t, "1", used(t, s, "q"))
}

// TestRefusedWritesTakeNoUsage checks a write that one of two quotas refuses.
func TestRefusedWritesTakeNoUsage(t *testing.T) {
	s, _ := withLedger(t, withoutCounts)
	bound(t, s.Objects(), 5)
	full := object("r")
	full.Set("0", "spec", "hard", "count/configmaps")
	_, err := s.Objects().Create(t.Context(), quotas, full)
	require.NoError(t, err)
	_, err = s.Objects().Create(t.Context(), configMaps, object("a"))
	require.ErrorContains(t, err, "exceeded quota: r")
	assert.Equal(t, "0", used(t, s, "q"))
	assert.Equal(t, "0", used(t, s, "r"))
}

// meddler raises status.used by another server's usage before the first update of the status.
type meddler struct {
	accounting
	more *string
}

func (m meddler) Update(ctx context.Context, r meta.GroupResource, key meta.Key, sub string, change func(*meta.Object) error) (*meta.Object, error) {
	if more := *m.more; more != "" {
		*m.more = ""
		_, err := m.accounting.Update(ctx, r, key, sub, func(o *meta.Object) error {
			o.Set(more, "status", "used", "count/configmaps")
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return m.accounting.Update(ctx, r, key, sub, change)
}

// TestUsageIsAddedToWhatOtherServersAdded checks that a status that changed since it was read is read again.
func TestUsageIsAddedToWhatOtherServersAdded(t *testing.T) {
	more := ""
	s, _ := withLedger(t, func(env *admission.PluginContext) {
		withoutCounts(env)
		env.Accounting = meddler{env.Accounting, &more}
	})
	bound(t, s.Objects(), 10)
	_, err := s.Objects().Create(t.Context(), configMaps, object("a"))
	require.NoError(t, err)
	more = "7"
	_, err = s.Objects().Create(t.Context(), configMaps, object("b"))
	require.NoError(t, err)
	assert.Equal(t, "8", used(t, s, "q"))
}

// damaged lists config maps with one more that cannot be read.
type damaged struct{ accounting }

func (d damaged) List(ctx context.Context, r meta.GroupResource, namespace string) ([]*meta.Object, error) {
	list, err := d.accounting.List(ctx, r, namespace)
	if err == nil && r == configMaps {
		err = &client.UnreadableError{Resource: r, Keys: []meta.Key{{Namespace: namespace, Name: "damaged"}}}
	}
	return list, err
}

func TestUnreadableObjectsCount(t *testing.T) {
	s, _ := withLedger(t, func(env *admission.PluginContext) {
		withoutCounts(env)
		env.Accounting = damaged{env.Accounting}
	})
	bound(t, s.Objects(), 2)
	_, err := s.Objects().Create(t.Context(), configMaps, object("a"))
	require.NoError(t, err)
	assert.Equal(t, "2", used(t, s, "q"))
	_, err = s.Objects().Create(t.Context(), configMaps, object("b"))
	assert.ErrorContains(t, err, "exceeded quota")
}

// TestUsageOfAFailedCommit checks that the usage of a write is kept as long as the store may still commit the write,
// and given back if the store has refused it.
func TestUsageOfAFailedCommit(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"the store refused the commit": {meta.Forbidden(configMaps, "a", "no"), "0"},
		"the result is unknown":        {errors.New("the connection was lost"), "1"},
	} {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s, _ := withLedger(t, withoutCounts, func(b *server.Builder) { b.Storage = store })
		bound(t, s.Objects(), 5)
		store.SetPlan(func(call faultinject.Call) (f faultinject.Fault) {
			if call.Op == faultinject.OpCommit && strings.HasPrefix(call.Key, "configmaps/") {
				f.Err = c.err
			}
			return f
		})
		_, err := s.Objects().Create(t.Context(), configMaps, object("a"))
		require.Error(t, err, name)
		assert.Equal(t, c.want, used(t, s, "q"), name)
	}
}
