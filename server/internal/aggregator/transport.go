package aggregator

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/extras"
	"orch.io/controlplane/internal/inprocess"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/services"
)

// Limits of the connections to an extension server.
const (
	dialTime     = 10 * time.Second
	headBytes    = 1 << 20
	idleConns    = 16
	idleTime     = 90 * time.Second
	pingAfter    = 30 * time.Second // without traffic on a shared connection
	pingTime     = 15 * time.Second
	maxCalls     = 600 // concurrent requests, without watches and upgraded connections
	certificates = 16  // maximum length of the client's chain
)

// trust determines how the certificate of a server is verified.
type trust struct {
	insecure bool
	bundle   string // CA bundle, PEM in base64 as in the APIService; "": the authorities of the system
}

// target identifies an extension server. All versions with the same target share probes, documents and connections.
type target struct {
	service services.Service
	trust   trust
}

// key returns the key of the target for the controller. It is never the name of an APIService.
func (t target) key() string {
	sum := sha256.Sum256([]byte(strconv.FormatBool(t.trust.insecure) + t.trust.bundle))
	return fmt.Sprintf("%s/%s:%d#%x", t.service.Namespace, t.service.Name, t.service.Port, sum[:4])
}

// transport sends requests to an extension server. It is safe for concurrent use.
type transport struct {
	target
	key         string
	resolve     services.Resolver
	certificate func() (*tls.Certificate, error)
	config      *tls.Config
	configErr   error        // set if the configuration is invalid; all requests fail with it
	calls       atomic.Int64 // see Version.Enter
	probe       probe
	reading     reading

	mu          sync.Mutex // guards connections
	connections *connections
}

// connections are the connections that use the same client certificate.
type connections struct {
	leaf     []byte          // DER of the client certificate; nil: none
	shared   *http.Transport // HTTP/2, if the server speaks it
	upgrades *http.Transport // for upgraded connections, HTTP/1.1
}

func (a *Aggregator) newTransport(t target) *transport {
	w := &transport{target: t, key: t.key(), resolve: a.o.Services, certificate: a.o.Certificate}
	w.config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.service.Host(), InsecureSkipVerify: t.trust.insecure}
	if t.trust.bundle == "" {
		return w
	}
	text, err := base64.StdEncoding.DecodeString(t.trust.bundle)
	if err == nil {
		w.config.RootCAs, err = pki.ParsePool(text)
	}
	if err != nil {
		w.configErr = fmt.Errorf("spec.caBundle: %w", err)
	}
	return w
}

func (w *transport) newConnections(c *tls.Certificate, leaf []byte) *connections {
	config := w.config.Clone()
	if c != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	transport := func(config *tls.Config) *http.Transport {
		return &http.Transport{
			DialContext:     (&net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig: config, TLSHandshakeTimeout: dialTime, DisableCompression: true,
			MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: headBytes,
		}
	}
	l := &connections{leaf: leaf, shared: transport(config), upgrades: transport(config.Clone())}
	l.shared.ForceAttemptHTTP2 = true
	l.shared.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime}
	return l
}

// close closes the idle connections.
func (l *connections) close() {
	l.shared.CloseIdleConnections()
	l.upgrades.CloseIdleConnections()
}

// clientCertificate returns the client certificate of this server, or nil if none is configured.
func (w *transport) clientCertificate() (*tls.Certificate, error) {
	if w.certificate == nil {
		return nil, nil
	}
	c, err := w.certificate()
	if err == nil && c == nil {
		err = errors.New("no client certificate")
	}
	return c, err
}

// currentConnections returns the connections for the present client certificate. If the certificate has changed, the
// previous connections get no new requests.
func (w *transport) currentConnections() (*connections, error) {
	c, err := w.clientCertificate()
	if err != nil {
		return nil, err
	}
	var leaf []byte
	if c != nil && len(c.Certificate) > 0 {
		leaf = c.Certificate[0]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connections != nil && bytes.Equal(w.connections.leaf, leaf) {
		return w.connections, nil
	}
	if w.connections != nil {
		w.connections.close()
	}
	w.connections = w.newConnections(c, leaf)
	return w.connections, nil
}

// RoundTrip implements http.RoundTripper. It resolves the service for each request, and keeps connections by address,
// so that no request goes to an address to which the service resolved earlier.
func (w *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.configErr != nil {
		return nil, w.configErr
	}
	e, err := w.resolve(r.Context(), w.service)
	switch {
	case err != nil:
		return nil, fmt.Errorf("resolving the service: %v", err) // %v, because a wrapped Status would be taken for a response
	case e.Handler != nil:
		return w.inProcess(r, e.Handler)
	case e.Address == "":
		return nil, errors.New("the service has no endpoint")
	}
	l, err := w.currentConnections()
	if err != nil {
		return nil, err
	}
	out, at := r.WithContext(r.Context()), *r.URL
	out.Host, at.Host = cmp.Or(r.Host, r.URL.Host), e.Address
	out.URL = &at
	if r.Header.Get("Upgrade") != "" {
		return l.upgrades.RoundTrip(out)
	}
	return l.shared.RoundTrip(out)
}

// inProcess sends a request to a handler in this process. The handler sees the client certificate as on a TLS
// connection.
func (w *transport) inProcess(r *http.Request, h http.Handler) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: w.service.Host()}
	c, err := w.clientCertificate()
	if err != nil {
		return nil, err
	}
	if c != nil {
		for _, der := range c.Certificate[:min(len(c.Certificate), certificates)] {
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, err
			}
			r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, cert)
		}
	}
	return inprocess.Transport(h).RoundTrip(r)
}

// closeIdle closes the idle connections. Requests under way continue.
func (w *transport) closeIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connections != nil {
		w.connections.close()
	}
}

// Transport returns the transport to the extension server.
func (v *Version) Transport() http.RoundTripper { return v.transport }

// URL returns the URL of a path on the extension server.
func (v *Version) URL(path, query string) *url.URL {
	return &url.URL{Scheme: "https", Host: v.transport.service.Address(), Path: path, RawQuery: query}
}

// Enter counts a request that is neither a watch nor an upgraded connection. If ok is false, the server has too many
// requests; otherwise the caller must call leave after the request. The limit keeps a slow server, however many
// versions it serves, from taking all request slots of this server.
func (v *Version) Enter() (leave func(), ok bool) {
	if v.transport.calls.Add(1) > maxCalls {
		v.transport.calls.Add(-1)
		return nil, false
	}
	return func() { v.transport.calls.Add(-1) }, true
}

// viaHeader is the header with the servers that a request has passed.
const viaHeader = "Via"

// Identify sets the headers that identify the user to an extension server, and removes all headers that could
// identify another user.
func (a *Aggregator) Identify(h http.Header, u *auth.User) {
	for name := range h { // some servers treat _ as -
		if strings.HasPrefix(http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")), "X-Remote-") {
			delete(h, name)
		}
	}
	h.Set(extras.UserHeader, u.Name)
	if u.UID != "" {
		h.Set(extras.UIDHeader, u.UID)
	}
	for _, g := range u.Groups {
		h.Add(extras.GroupHeader, g)
	}
	for key, values := range u.Extra {
		for _, v := range values {
			h.Add(extras.Prefix+escapeKey(key), v)
		}
	}
	h.Add(viaHeader, a.via)
}

// CheckIdentity returns an error if headers cannot represent a user. Headers cannot contain line breaks, and lose the
// spaces around a value, which could turn the name into that of another user.
func CheckIdentity(u *auth.User) error {
	words := append([]string{u.Name, u.UID}, u.Groups...)
	for _, values := range u.Extra {
		words = append(words, values...)
	}
	for _, word := range words {
		if word != strings.TrimSpace(word) || strings.ContainsFunc(word, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return meta.Failure(http.StatusForbidden, meta.ReasonForbidden, "the user cannot be identified to the server of this API: %q cannot be sent in a header", word)
		}
	}
	if u.Name == "" {
		return meta.Failure(http.StatusForbidden, meta.ReasonForbidden, "the user cannot be identified to the server of this API: the user has no name")
	}
	return nil
}

// escapeKey escapes the key of an extra for use at the end of a header name, which is not case-sensitive.
func escapeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// IsLoop reports whether a request has passed this server before, because an APIService refers back to it.
func (a *Aggregator) IsLoop(h http.Header) bool {
	for _, line := range h.Values(viaHeader) {
		for word := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(word) == a.via {
				return true
			}
		}
	}
	return false
}

// Failed triggers a probe of a server that did not respond to a request.
func (a *Aggregator) Failed(v *Version) { a.enqueue(v.transport.key) }
