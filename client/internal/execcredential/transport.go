package execcredential

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net/http"
	"sync"
)

// Transport returns a transport like base whose requests carry the program's
// credentials; base is not used itself. A request that has an Authorization
// header goes as it is. A 401 makes the next request run the program again, and
// another certificate begins new connections.
func (s *Source) Transport(base *http.Transport) http.RoundTripper {
	return &transport{source: s, base: base.Clone()}
}

type transport struct {
	source *Source
	base   *http.Transport // without a certificate of the program

	mu   sync.Mutex // guards the rest
	cert *tls.Certificate
	with *http.Transport // with cert
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
	resp, err := t.over(c).RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.source.reject(r.Context(), c)
	}
	return resp, err
}

// over returns the connections for a certificate.
func (t *transport) over(c *credential) *http.Transport {
	if c.cert == nil {
		return t.base
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cert == c.cert {
		return t.with
	}
	if t.with != nil {
		t.with.CloseIdleConnections()
	}
	t.cert, t.with = c.cert, t.base.Clone()
	if t.with.TLSClientConfig == nil {
		t.with.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.with.TLSClientConfig.Certificates = []tls.Certificate{*c.cert}
	return t.with
}

// CloseIdleConnections closes connections that nobody uses.
func (t *transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.with != nil {
		t.with.CloseIdleConnections()
	}
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
