package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/clientconfig"
	"orch.io/controlplane/internal/inprocess"
	"orch.io/controlplane/internal/pki"
)

// Bounds of the connections to one server.
const (
	dialTime     = 10 * time.Second
	headBytes    = 1 << 20
	idleConns    = 16
	idleTime     = 90 * time.Second
	pingAfter    = 30 * time.Second // of silence, where many requests share a connection
	pingTime     = 15 * time.Second
	maxCalls     = 600 // requests at a time that are no watches and no connections
	certificates = 16  // of the client's chain
)

// trust is how a server proves itself.
type trust struct {
	insecure bool
	bundle   string // PEM; empty: by the authorities of the system
}

// way is the way to another server: it carries requests to what the service leads to.
type way struct {
	service     clientconfig.Service
	trust       trust
	find        clientconfig.Services
	certificate func() (*tls.Certificate, error)
	many        *http.Transport // HTTP/2, if the server speaks it
	single      *http.Transport // for upgrades
	fault       error           // why it cannot be gone
	calls       atomic.Int64

	mu      sync.Mutex // guards the rest
	checked time.Time  // when it was last asked whether it is there
	told    time.Time  // when another text was told of the same state
	read    time.Time  // when its OpenAPI documents were last read
	tags    map[string]string
}

func (a *Aggregator) newWay(service clientconfig.Service, t trust, fault error) *way {
	w := &way{service: service, trust: t, find: a.o.Services, certificate: a.o.Certificate, fault: fault, tags: map[string]string{}}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: service.Host(), InsecureSkipVerify: t.insecure}
	if t.bundle != "" {
		if config.RootCAs, fault = pki.ParsePool([]byte(t.bundle)); fault != nil {
			w.fault = fmt.Errorf("spec.caBundle: %w", fault)
		}
	}
	if w.certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return w.certificate() }
	}
	w.many, w.single = w.transport(config), w.transport(config.Clone())
	w.many.ForceAttemptHTTP2 = true
	w.many.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime}
	return w
}

func (w *way) transport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			e, err := w.find(ctx, w.service)
			if err != nil {
				return nil, err
			}
			if e.Address == "" {
				return nil, errors.New("the service leads nowhere")
			}
			return dialer.DialContext(ctx, network, e.Address)
		},
		TLSClientConfig: config, TLSHandshakeTimeout: dialTime, DisableCompression: true,
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: headBytes,
	}
}

// RoundTrip implements http.RoundTripper.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.fault != nil {
		return nil, w.fault
	}
	e, err := w.find(r.Context(), w.service)
	switch {
	case err != nil:
		return nil, err
	case e.Handler != nil:
		return w.inProcess(r, e.Handler)
	case r.Header.Get("Upgrade") != "":
		return w.single.RoundTrip(r)
	}
	return w.many.RoundTrip(r)
}

// inProcess carries a request to a handler in this process, which sees the client's
// certificate as behind a connection.
func (w *way) inProcess(r *http.Request, h http.Handler) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: w.service.Host()}
	if w.certificate != nil {
		c, err := w.certificate()
		if err != nil {
			return nil, err
		}
		for _, der := range c.Certificate[:min(len(c.Certificate), certificates)] {
			one, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, err
			}
			r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, one)
		}
	}
	return inprocess.Transport(h).RoundTrip(r)
}

// end lets the connections go that nobody uses. Requests that are under way come to their
// end.
func (w *way) end() {
	w.many.CloseIdleConnections()
	w.single.CloseIdleConnections()
}

// Transport carries requests to the other server.
func (v *Version) Transport() http.RoundTripper { return v.way }

// URL returns where a path is on the other server.
func (v *Version) URL(path, query string) *url.URL {
	return &url.URL{Scheme: "https", Host: v.way.service.Address(), Path: path, RawQuery: query}
}

// Enter counts in a request that is no watch and no connection; leave counts it out. One
// server that is slow must not hold all requests that there may be.
func (v *Version) Enter() (leave func(), ok bool) {
	if v.way.calls.Add(1) > maxCalls {
		v.way.calls.Add(-1)
		return nil, false
	}
	return func() { v.way.calls.Add(-1) }, true
}

// Headers that tell another server who calls.
const (
	userHeader  = "X-Remote-User"
	uidHeader   = "X-Remote-Uid"
	groupHeader = "X-Remote-Group"
	extraPrefix = "X-Remote-Extra-"
	viaHeader   = "Via"
)

// Identify makes the headers of a request tell who calls, and nobody else.
func (a *Aggregator) Identify(h http.Header, u *auth.User) {
	for name := range h { // some servers take one for the other
		if strings.HasPrefix(http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")), "X-Remote-") {
			delete(h, name)
		}
	}
	h.Set(userHeader, u.Name)
	if u.UID != "" {
		h.Set(uidHeader, u.UID)
	}
	for _, g := range u.Groups {
		h.Add(groupHeader, g)
	}
	for key, values := range u.Extra {
		for _, v := range values {
			h.Add(extraPrefix+escapeKey(key), v)
		}
	}
	h.Add(viaHeader, a.word)
}

// Tellable reports whether headers can tell who calls: they have no room for line ends, and
// spaces around a value are lost, so that it would be another one.
func Tellable(u *auth.User) error {
	words := append([]string{u.Name, u.UID}, u.Groups...)
	for _, values := range u.Extra {
		words = append(words, values...)
	}
	for _, word := range words {
		if word != strings.TrimSpace(word) || strings.ContainsFunc(word, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return meta.Failure(http.StatusForbidden, meta.ReasonForbidden, "the server of this API cannot be told who calls: %q does not fit into a header", word)
		}
	}
	if u.Name == "" {
		return meta.Failure(http.StatusForbidden, meta.ReasonForbidden, "the server of this API cannot be told who calls: the user has no name")
	}
	return nil
}

// escapeKey writes the key of an extra so that the name of a header can end with it,
// without regard to case.
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

// Passed reports whether a request was at this server before: an APIService leads here.
func (a *Aggregator) Passed(h http.Header) bool {
	for _, line := range h.Values(viaHeader) {
		for word := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(word) == a.word {
				return true
			}
		}
	}
	return false
}

// Failed has a server looked at that did not answer a request.
func (a *Aggregator) Failed(v *Version) { a.ask(v.Name) }
