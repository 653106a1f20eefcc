package execcredential

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net/http"
	"sync"
)

// Transport returns a transport like base that adds the program's credentials to requests. It uses
// a clone of base. A request that has an Authorization header keeps it. After a 401 the next
// request runs the program again. When the program prints another certificate, new connections are
// made.
func (s *Source) Transport(base *http.Transport) http.RoundTripper {
	return &transport{source: s, base: base.Clone()}
}

type transport struct {
	source *Source
	base   *http.Transport // for requests without a client certificate

	mu       sync.Mutex // guards the fields below
	cert     *tls.Certificate
	certBase *http.Transport // clone of base that presents cert
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return t.base.RoundTrip(r)
	}
	c, err := t.source.credentials(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if c.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := t.transportFor(c).RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.source.reject(r.Context(), c)
	}
	return resp, err
}

// transportFor returns the transport that presents the certificate of c.
func (t *transport) transportFor(c *credential) *http.Transport {
	if c.cert == nil {
		return t.base
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cert == c.cert {
		return t.certBase
	}
	if t.certBase != nil {
		t.certBase.CloseIdleConnections()
	}
	t.cert, t.certBase = c.cert, t.base.Clone()
	if t.certBase.TLSClientConfig == nil {
		t.certBase.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.certBase.TLSClientConfig.Certificates = []tls.Certificate{*c.cert}
	return t.certBase
}

// CloseIdleConnections closes idle connections.
func (t *transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.certBase != nil {
		t.certBase.CloseIdleConnections()
	}
}

// isMissing reports whether the program does not exist at a path.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
