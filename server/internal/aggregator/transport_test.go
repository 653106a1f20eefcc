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

// listen serves a handler over TLS as the service b in the namespace a, and requests client certificates. It returns
// the address.
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

// get sends a request and returns the body of the response.
func get(t *testing.T, w *transport, upgrade bool) string {
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
	assert.Equal(t, "b.a.svc:443", r.URL.Host, "the request must not be modified")
	return string(text)
}

// TestTransportFollowsServiceAndCertificate: after the service resolves to another address, or the client certificate
// is replaced, the next request uses the new one, even if older connections are open.
func TestTransportFollowsServiceAndCertificate(t *testing.T) {
	ca := testcerts.New(t, "ca", nil)
	document := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "b.a.svc:443", r.Host)
			_, _ = io.WriteString(w, name+" "+r.TLS.PeerCertificates[0].Subject.CommonName)
		}
	}
	for name, how := range map[string]struct{ http2, upgrade bool }{"http2": {true, false}, "http1": {false, false}, "upgrades": {true, true}} {
		t.Run(name, func(t *testing.T) {
			one, two := listen(t, ca, how.http2, document("one")), listen(t, ca, how.http2, document("two"))
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
			w := a.newTransport(target{
				services.Service{Namespace: "a", Name: "b", Port: 443}, trust{bundle: base64.StdEncoding.EncodeToString(ca.PEM())},
			})
			defer w.closeIdle()
			at.Store(&one)
			show("first")
			assert.Equal(t, "one first", get(t, w, how.upgrade))
			connections := w.connections
			assert.Equal(t, "one first", get(t, w, how.upgrade))
			assert.Same(t, connections, w.connections, "connections are reused")
			at.Store(&two)
			assert.Equal(t, "two first", get(t, w, how.upgrade))
			show("second")
			assert.Equal(t, "two second", get(t, w, how.upgrade))
			at.Store(&one)
			assert.Equal(t, "one second", get(t, w, how.upgrade))
		})
	}
}

// TestTransportWithoutCertificateFails: if no client certificate is available, requests fail, over the network and in
// process.
func TestTransportWithoutCertificateFails(t *testing.T) {
	for name, at := range map[string]services.Endpoint{"outside": {Address: "127.0.0.1:1"}, "in process": {Handler: http.NotFoundHandler()}} {
		a := newTest(&objects{})
		a.o.Services = func(context.Context, services.Service) (services.Endpoint, error) { return at, nil }
		a.o.Certificate = func() (*tls.Certificate, error) { return nil, nil }
		w := a.newTransport(target{services.Service{Namespace: "a", Name: "b", Port: 443}, trust{}})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://b.a.svc:443/x", nil)
		require.NoError(t, err)
		assert.NotPanics(t, func() { _, err = w.RoundTrip(r) }, name)
		assert.EqualError(t, err, "no client certificate", name)
	}
}
