package proxy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
)

// TestNamesMayBePathKeywords: namespaces and objects may have the names of path elements such as watch.
func TestNamesMayBePathKeywords(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, word := range []string{"proxy", "log", "exec", "status", "scale", "finalize", "watch", "namespaces", "pods"} {
		c.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"`+word+`"}}`)
		c.Must(201, "POST", "/api/v1/namespaces/"+word+"/pods", `{"metadata":{"name":"`+word+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		inside := "/api/v1/namespaces/" + word + "/pods"
		for _, path := range []string{inside + "/" + word, inside + "/" + word + "/status"} {
			got := c.Must(200, "GET", path, nil).Body
			assert.Equal(t, "Pod "+word, apitest.NestedString(got, "kind")+" "+apitest.NestedString(got, "metadata", "name"), path)
		}
		assert.Equal(t, "Namespace", c.Must(200, "GET", "/api/v1/namespaces/"+word+"/status", nil).Body["kind"])
		for _, path := range []string{"/namespaces/" + word + "/pods", "/namespaces/" + word + "/pods/" + word} {
			event := c.Watch("/api/v1/watch" + path).Next()
			assert.Equal(t, "ADDED Pod "+word, event.Type+" "+apitest.NestedString(event.Object, "kind")+" "+event.Name(), path)
		}
	}
}
