package webhookclient_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/webhookclient"
)

func TestPostLimitsTimeAndSize(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-release // r.Context() would end before the client gives up reading
		case "/big":
			w.Write(make([]byte, 2<<20))
		case "/redirect":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/fail":
			w.WriteHeader(503)
		}
	}))
	defer s.Close()
	defer close(release)
	for path, check := range map[string]func(error){
		"/ok":       func(err error) { assert.NoError(t, err) },
		"/slow":     func(err error) { assert.ErrorIs(t, err, context.DeadlineExceeded) },
		"/big":      func(err error) { assert.ErrorContains(t, err, "more than") },
		"/redirect": func(err error) { assert.Equal(t, &webhookclient.CodeError{Code: 307}, err) },
		"/fail":     func(err error) { assert.EqualError(t, err, "the remote server answered 503") },
	} {
		c, err := kubeconfig.Parse([]byte(`clusters: [{name: c, cluster: {insecure-skip-tls-verify: true, server: "`+s.URL+path+`"}}]`), "")
		require.NoError(t, err)
		r, err := c.Current()
		require.NoError(t, err)
		caller := webhookclient.NewCaller(r)
		if path == "/slow" {
			caller.Timeout = 20 * time.Millisecond
		}
		_, err = caller.Post(context.Background(), nil)
		check(err)
		caller.Close()
	}
}
