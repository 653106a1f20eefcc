package proxy_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestUncleanPathsAreNotForwarded: a path that the extension server would clean is rejected, because the cleaned path
// was not authorized.
func TestUncleanPathsAreNotForwarded(t *testing.T) {
	t.Parallel()
	h := newHarbor(t, servertest.RBAC)
	var asked atomic.Int64
	h.listen(serveDiscoveryAnd(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path) > len(berths) && r.URL.Path[:len(berths)] == berths {
			asked.Add(1)
		}
		_, _ = w.Write([]byte("{}"))
	}))
	h.register()
	h.Must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"berths"},
		"rules":[{"apiGroups":["harbor.example.com"],"resources":["berths/proxy"],"resourceNames":["east"],"verbs":["get"]}]}`)
	h.Must(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"berths"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"berths"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`)
	jane := apitest.NewClient(t, h.front.Host(), h.front.As("jane").Client())
	jane.Must(200, "GET", berths+"/east/proxy/x", nil)
	asked.Store(0)
	for _, path := range []string{"/../../west", "/%2e%2e/%2e%2e/west", "/..%2f..%2fwest", "/.", "/.."} {
		assert.Equal(t, 400, jane.Do("GET", berths+"/east/proxy"+path, nil).Code, path)
	}
	assert.Zero(t, asked.Load())
}
