package server_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/servertest"
)

// TestDeletedTogetherIsWhatIsSelected: what ceases to be selected after the objects to delete
// were listed, such as while a webhook says what they are, is not deleted.
func TestDeletedTogetherIsWhatIsSelected(t *testing.T) {
	t.Parallel()
	s, sites := servertest.New(t), &siteWebhook{}
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, siteDefinition)
	s.Settle()
	var once sync.Once
	var meanwhile func()
	s.InstallWebhooks(fstest.MapFS{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(meanwhile)
		sites.ServeHTTP(w, r)
	}))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		a.site(name, "one:80", "zone", "x")
	}
	meanwhile = func() {
		a.must(200, "PATCH", sitePath("v1", "a"), map[string]any{"address": "two:80"})
		a.must(200, "PATCH", sitePath("v1", "b"), map[string]any{"address": "one:81"})
		a.must(200, "PATCH", sitePath("v1", "c"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"zone": nil}}})
		a.must(200, "DELETE", sitePath("v1", "d"), nil)
		a.site("d", "two:80", "zone", "x")
	}
	a.must(200, "DELETE", sitePath("v2", "")+"?fieldSelector=host%3Done&labelSelector=area%3Dx", nil)
	assert.Equal(t, []string{"a", "c", "d"}, a.must(200, "GET", sitePath("v1", ""), nil).names())
}
