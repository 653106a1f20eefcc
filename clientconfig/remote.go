package clientconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"orch.io/controlplane/clientconfig/exec"
)

// Remote is a server with the credentials for it.
type Remote struct {
	URL *url.URL
	TLS *tls.Config

	// Endpoint finds what is behind the host of URL: a service. nil: the host itself.
	Endpoint func(context.Context) (Endpoint, error)

	authority     []byte
	authorization string // header value
	tokenFile     string // instead: read on every request
	program       *exec.Source
}

// Authority returns the PEM bundle of the server's authorities, nil for the
// host's.
func (r *Remote) Authority() []byte { return r.authority }

// Transport returns a new transport that sends the credentials, to the address
// of the Remote alone if it has one: a redirect does not carry them elsewhere.
// Close its idle connections with CloseIdleConnections of an http.Client around
// it.
func (r *Remote) Transport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	base := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return r.dial(ctx, dialer, network, address)
		},
		TLSClientConfig: r.TLS.Clone(), TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
	t := &transport{remote: r, base: base}
	if r.program != nil {
		t.program = r.program.Transport(base)
	}
	return t
}

type transport struct {
	remote  *Remote
	base    *http.Transport
	program http.RoundTripper // around base, with credentials of a program; or nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if own := t.remote.URL; own != nil && (req.URL.Scheme != own.Scheme || !strings.EqualFold(req.URL.Host, own.Host)) {
		return t.base.RoundTrip(req)
	}
	if answer, err := t.remote.inProcess(req); answer != nil || err != nil {
		return answer, err
	}
	if t.program != nil {
		return t.program.RoundTrip(req)
	}
	value := t.remote.authorization
	if t.remote.tokenFile != "" {
		token, err := os.ReadFile(t.remote.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("clientconfig: %w", err)
		}
		value = "Bearer " + strings.TrimSpace(string(token))
	}
	if value != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", value)
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections closes connections that nobody uses.
func (t *transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
	if c, ok := t.program.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Caller posts JSON to a Remote.
type Caller struct {
	// Timeout is for one call as a whole; zero is 10 seconds.
	Timeout time.Duration
	// MaxAnswer bounds the answer in bytes; zero is 1 MiB.
	MaxAnswer int64
	// UserAgent says who calls; empty is what net/http says.
	UserAgent string

	address string
	client  *http.Client
}

// Caller returns a Caller with connections of its own.
func (r *Remote) Caller() *Caller {
	return &Caller{address: r.URL.String(), client: &http.Client{
		Transport: r.Transport(),
		// An answer elsewhere is none: credentials stay with their server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// CodeError says that a remote server answered with another code than 2xx.
type CodeError struct{ Code int }

// Error implements error.
func (e *CodeError) Error() string { return fmt.Sprintf("the remote server answered %d", e.Code) }

// Post sends body and returns the answer of a 2xx; any other is a *CodeError.
func (c *Caller) Post(ctx context.Context, body []byte) ([]byte, error) {
	timeout, most := c.Timeout, c.MaxAnswer
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	if most <= 0 {
		most = 1 << 20
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("clientconfig: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("clientconfig: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("clientconfig: %w", err)
	case int64(len(answer)) > most:
		return nil, fmt.Errorf("clientconfig: an answer of more than %d bytes", most)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, &CodeError{resp.StatusCode}
	}
	return answer, nil
}

// Close closes the connections that are idle.
func (c *Caller) Close() { c.client.CloseIdleConnections() }
