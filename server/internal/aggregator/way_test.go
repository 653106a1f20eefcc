package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/testcerts"
)

// listen serves a handler by TLS as the service b in the namespace a, and asks callers for
// certificates.
func listen(t *testing.T, ca *testcerts.Authority, http2 bool, h http.HandlerFunc) string {
	t.Helper()
	web := httptest.NewUnstartedServer(h)
	web.EnableHTTP2 = http2
	web.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{ca.Issue(t, pkix.Name{CommonName: "b"}, x509.ExtKeyUsageServerAuth, time.Hour, "b.a.svc")}}
	web.StartTLS()
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return web.Listener.Addr().String()
}

// ask sends a request by a way and returns the answer.
func ask(t *testing.T, w *way, upgrade bool) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://b.a.svc:443/x", nil)
	require.NoError(t, err)
	if upgrade {
		r.Header.Set("Upgrade", "websocket")
	}
	res, err := w.RoundTrip(r)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, "b.a.svc:443", r.URL.Host, "the request is the caller's")
	return string(text)
}

// TestWayFollows: the next request after the service moved, or the certificate was replaced,
// goes to the new place under the new certificate, though the connections of before live.
func TestWayFollows(t *testing.T) {
	ca := testcerts.New(t, "ca", nil)
	answer := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "b.a.svc:443", r.Host)
			_, _ = io.WriteString(w, name+" "+r.TLS.PeerCertificates[0].Subject.CommonName)
		}
	}
	for name, how := range map[string]struct{ http2, upgrade bool }{"http2": {true, false}, "http1": {false, false}, "upgrades": {true, true}} {
		t.Run(name, func(t *testing.T) {
			one, two := listen(t, ca, how.http2, answer("one")), listen(t, ca, how.http2, answer("two"))
			var at atomic.Pointer[string]
			var shown atomic.Pointer[tls.Certificate]
			show := func(name string) {
				c := ca.Issue(t, pkix.Name{CommonName: name}, x509.ExtKeyUsageClientAuth, time.Hour)
				shown.Store(&c)
			}
			a := newTest(&objects{})
			a.o.Services = func(context.Context, services.Service) (services.Endpoint, error) {
				return services.Endpoint{Address: *at.Load()}, nil
			}
			a.o.Certificate = func() (*tls.Certificate, error) { return shown.Load(), nil }
			w := a.newWay(target{
				services.Service{Namespace: "a", Name: "b", Port: 443}, trust{bundle: base64.StdEncoding.EncodeToString(ca.PEM())},
			})
			defer w.end()
			at.Store(&one)
			show("first")
			assert.Equal(t, "one first", ask(t, w, how.upgrade))
			lines := w.lines
			assert.Equal(t, "one first", ask(t, w, how.upgrade))
			assert.Same(t, lines, w.lines, "connections are kept while nothing changes")
			at.Store(&two)
			assert.Equal(t, "two first", ask(t, w, how.upgrade))
			show("second")
			assert.Equal(t, "two second", ask(t, w, how.upgrade))
			at.Store(&one)
			assert.Equal(t, "one second", ask(t, w, how.upgrade))
		})
	}
}

// TestWayWithoutCertificate: a program that has no certificate to show gets an error, however
// the service is reached.
func TestWayWithoutCertificate(t *testing.T) {
	for name, at := range map[string]services.Endpoint{"outside": {Address: "127.0.0.1:1"}, "in process": {Handler: http.NotFoundHandler()}} {
		a := newTest(&objects{})
		a.o.Services = func(context.Context, services.Service) (services.Endpoint, error) { return at, nil }
		a.o.Certificate = func() (*tls.Certificate, error) { return nil, nil }
		w := a.newWay(target{services.Service{Namespace: "a", Name: "b", Port: 443}, trust{}})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://b.a.svc:443/x", nil)
		require.NoError(t, err)
		assert.NotPanics(t, func() { _, err = w.RoundTrip(r) }, name)
		assert.EqualError(t, err, "there is no client certificate", name)
	}
}
