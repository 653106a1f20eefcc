package kubeconfig

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"orch.io/controlplane/client/internal/execcredential"
)

// Remote is a server with the credentials for it.
type Remote struct {
	URL *url.URL
	TLS *tls.Config

	// Dial opens the connections of Transport. address is the host and port of the request's
	// URL. nil means a net.Dialer with a timeout of 10 seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	authority     []byte
	authorization string                 // header value
	tokenFile     string                 // read on each request; replaces authorization
	plugin        *execcredential.Source // replaces authorization and tokenFile
}

// Authority returns the PEM bundle of the server's certificate authorities; nil means the
// system's.
func (r *Remote) Authority() []byte { return r.authority }

// Transport returns a new transport that sends the credentials with each request to the
// scheme and host of URL, and with no other request, so that a redirect does not leak them. A
// request that has an Authorization header keeps it. To close idle connections, call
// CloseIdleConnections of an http.Client that uses the transport.
func (r *Remote) Transport() http.RoundTripper {
	dial := r.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	base := &http.Transport{
		DialContext: dial, TLSClientConfig: r.TLS.Clone(), TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
	t := &transport{remote: r, base: base}
	if r.plugin != nil {
		t.plugin = r.plugin.Transport(base)
	}
	return t
}

type transport struct {
	remote *Remote
	base   *http.Transport
	plugin http.RoundTripper // wraps base with the plugin's credentials; nil without a plugin
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if own := t.remote.URL; own != nil && (req.URL.Scheme != own.Scheme || !strings.EqualFold(req.URL.Host, own.Host)) {
		return t.base.RoundTrip(req)
	}
	if t.plugin != nil {
		return t.plugin.RoundTrip(req)
	}
	value := t.remote.authorization
	if t.remote.tokenFile != "" {
		token, err := os.ReadFile(t.remote.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		value = "Bearer " + strings.TrimSpace(string(token))
	}
	if value != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", value)
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections closes idle connections.
func (t *transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
	if c, ok := t.plugin.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
