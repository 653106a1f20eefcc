package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNamesOfPaths: namespaces and objects may be named as what else stands in paths.
func TestNamesOfPaths(t *testing.T) {
	c := newCluster(t)
	for _, word := range []string{"proxy", "log", "exec", "status", "scale", "finalize", "watch", "namespaces", "pods"} {
		c.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"`+word+`"}}`)
		c.must(201, "POST", "/api/v1/namespaces/"+word+"/pods", `{"metadata":{"name":"`+word+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		inside := "/api/v1/namespaces/" + word + "/pods"
		for _, path := range []string{inside + "/" + word, inside + "/" + word + "/status"} {
			got := c.must(200, "GET", path, nil).body
			assert.Equal(t, "Pod "+word, text(got, "kind")+" "+text(got, "metadata", "name"), path)
		}
		assert.Equal(t, "Namespace", c.must(200, "GET", "/api/v1/namespaces/"+word+"/status", nil).body["kind"])
		for _, path := range []string{"/namespaces/" + word + "/pods", "/namespaces/" + word + "/pods/" + word} {
			event := c.watch("/api/v1/watch" + path).next()
			assert.Equal(t, "ADDED Pod "+word, event.Type+" "+text(event.Object, "kind")+" "+event.name(), path)
		}
	}
}
