package replicas_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// TestQuotaRecordsAreRemovedWithTheirNamespace: the records that count the usage of a quota are
// removed some time after their namespace, and not before.
func TestQuotaRecordsAreRemovedWithTheirNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		s := servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))
		a := apitest.InProcess(t, s)
		for _, name := range []string{"stays", "goes"} {
			a.Must(201, "POST", apitest.NamespacesPath, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
			a.Must(201, "POST", apitest.NamespacesPath+"/"+name+"/resourcequotas", `{"metadata":{"name":"q"},"spec":{"hard":{"count/secrets":"1"}}}`)
			a.Must(201, "POST", apitest.NamespacesPath+"/"+name+"/secrets", `{"metadata":{"name":"a"}}`)
		}
		s.Settle()
		require.Len(t, keysOf(t, store, resource.FencePrefix), 2)
		a.Must(200, "DELETE", apitest.NamespacesPath+"/goes", nil)
		s.Settle()
		time.Sleep(2 * time.Hour)
		s.Settle()
		assert.Equal(t, []string{resource.FencePrefix + "stays"}, keysOf(t, store, resource.FencePrefix))
	})
}
