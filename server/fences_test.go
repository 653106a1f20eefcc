package server_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// TestFencesGoWithTheirNamespaces: what counting a quota leaves in the store goes some time
// after the namespace has, and only then.
func TestFencesGoWithTheirNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		s := servertest.New(t, over(shared{store}))
		a := inProcess(t, s)
		for _, name := range []string{"stays", "goes"} {
			a.must(201, "POST", namespacePath, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
			a.must(201, "POST", namespacePath+"/"+name+"/resourcequotas", `{"metadata":{"name":"q"},"spec":{"hard":{"count/secrets":"1"}}}`)
			a.must(201, "POST", namespacePath+"/"+name+"/secrets", `{"metadata":{"name":"a"}}`)
		}
		s.Settle()
		require.Len(t, keysOf(t, store, resource.FencePrefix), 2)
		a.must(200, "DELETE", namespacePath+"/goes", nil)
		s.Settle()
		time.Sleep(2 * time.Hour)
		s.Settle()
		assert.Equal(t, []string{resource.FencePrefix + "stays"}, keysOf(t, store, resource.FencePrefix))
	})
}
