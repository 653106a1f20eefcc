package definitions_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestDeleteCollectionChecksTheSelectorAgain: a deletecollection keeps an object that no longer matches the selector
// when it is to be deleted, for example because a webhook took long.
func TestDeleteCollectionChecksTheSelectorAgain(t *testing.T) {
	t.Parallel()
	s, sites := servertest.New(t), &siteWebhook{}
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, siteDefinition)
	s.Settle()
	var once sync.Once
	var meanwhile func()
	s.InstallWebhooks(fstest.MapFS{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(meanwhile)
		sites.ServeHTTP(w, r)
	}))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		createSite(a, name, "one:80", "zone", "x")
	}
	meanwhile = func() {
		a.Must(200, "PATCH", sitePath("v1", "a"), map[string]any{"address": "two:80"})
		a.Must(200, "PATCH", sitePath("v1", "b"), map[string]any{"address": "one:81"})
		a.Must(200, "PATCH", sitePath("v1", "c"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"zone": nil}}})
		a.Must(200, "DELETE", sitePath("v1", "d"), nil)
		createSite(a, "d", "two:80", "zone", "x")
	}
	a.Must(200, "DELETE", sitePath("v2", "")+"?fieldSelector=host%3Done&labelSelector=area%3Dx", nil)
	assert.Equal(t, []string{"a", "c", "d"}, a.Must(200, "GET", sitePath("v1", ""), nil).Names())
}
