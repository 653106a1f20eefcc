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
	bundle   string // PEM in base64, as the APIService has it; empty: by the authorities of the system
}

// target is another server. It is looked at, and asked for documents, once for all the
// versions that it serves.
type target struct {
	service services.Service
	trust   trust
}

// key is how the controller calls the target. No APIService has such a name.
func (t target) key() string {
	sum := sha256.Sum256([]byte(strconv.FormatBool(t.trust.insecure) + t.trust.bundle))
	return fmt.Sprintf("%s/%s:%d#%x", t.service.Namespace, t.service.Name, t.service.Port, sum[:4])
}

// way is the way to another server: it carries requests to what the service leads to.
type way struct {
	target
	key         string
	find        services.Resolver
	certificate func() (*tls.Certificate, error)
	config      *tls.Config
	fault       error // why it cannot be gone
	calls       atomic.Int64
	look        look
	reading     reading

	mu    sync.Mutex // guards lines
	lines *lines
}

// lines are the connections to a server that knows this one by one certificate.
type lines struct {
	leaf   []byte
	many   *http.Transport // HTTP/2, if the server speaks it
	single *http.Transport // for upgrades
}

func (a *Aggregator) newWay(t target) *way {
	w := &way{target: t, key: t.key(), find: a.o.Services, certificate: a.o.Certificate}
	w.config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.service.Host(), InsecureSkipVerify: t.trust.insecure}
	if t.trust.bundle == "" {
		return w
	}
	text, err := base64.StdEncoding.DecodeString(t.trust.bundle)
	if err == nil {
		w.config.RootCAs, err = pki.ParsePool(text)
	}
	if err != nil {
		w.fault = fmt.Errorf("spec.caBundle: %w", err)
	}
	return w
}

func (w *way) newLines(c *tls.Certificate, leaf []byte) *lines {
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
	l := &lines{leaf: leaf, many: transport(config), single: transport(config.Clone())}
	l.many.ForceAttemptHTTP2 = true
	l.many.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime}
	return l
}

// close lets the connections go that nobody uses.
func (l *lines) close() {
	l.many.CloseIdleConnections()
	l.single.CloseIdleConnections()
}

// shown returns the certificate that the other server knows this one by; nil: it does not.
func (w *way) shown() (*tls.Certificate, error) {
	if w.certificate == nil {
		return nil, nil
	}
	c, err := w.certificate()
	if err == nil && c == nil {
		err = errors.New("there is no client certificate")
	}
	return c, err
}

// current returns the connections under the certificate of now. Those under the one before
// take no more requests.
func (w *way) current() (*lines, error) {
	c, err := w.shown()
	if err != nil {
		return nil, err
	}
	var leaf []byte
	if c != nil && len(c.Certificate) > 0 {
		leaf = c.Certificate[0]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines != nil && bytes.Equal(w.lines.leaf, leaf) {
		return w.lines, nil
	}
	if w.lines != nil {
		w.lines.close()
	}
	w.lines = w.newLines(c, leaf)
	return w.lines, nil
}

// RoundTrip implements http.RoundTripper. Connections are kept by where the service leads,
// which is asked for each request, so that none goes where it led before.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.fault != nil {
		return nil, w.fault
	}
	e, err := w.find(r.Context(), w.service)
	switch {
	case err != nil:
		return nil, fmt.Errorf("where the service leads: %v", err) // a Status of it would be taken for an answer
	case e.Handler != nil:
		return w.inProcess(r, e.Handler)
	case e.Address == "":
		return nil, errors.New("the service leads nowhere")
	}
	l, err := w.current()
	if err != nil {
		return nil, err
	}
	out, at := r.WithContext(r.Context()), *r.URL
	out.Host, at.Host = cmp.Or(r.Host, r.URL.Host), e.Address
	out.URL = &at
	if r.Header.Get("Upgrade") != "" {
		return l.single.RoundTrip(out)
	}
	return l.many.RoundTrip(out)
}

// inProcess carries a request to a handler in this process, which sees the client's
// certificate as behind a connection.
func (w *way) inProcess(r *http.Request, h http.Handler) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: w.service.Host()}
	c, err := w.shown()
	if err != nil {
		return nil, err
	}
	if c != nil {
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines != nil {
		w.lines.close()
	}
}

// Transport carries requests to the other server.
func (v *Version) Transport() http.RoundTripper { return v.way }

// URL returns where a path is on the other server.
func (v *Version) URL(path, query string) *url.URL {
	return &url.URL{Scheme: "https", Host: v.way.service.Address(), Path: path, RawQuery: query}
}

// Enter counts in a request that is no watch and no connection; leave counts it out. One
// server that is slow must not hold all requests that there may be, however many versions it
// serves.
func (v *Version) Enter() (leave func(), ok bool) {
	if v.way.calls.Add(1) > maxCalls {
		v.way.calls.Add(-1)
		return nil, false
	}
	return func() { v.way.calls.Add(-1) }, true
}

// viaHeader names the servers that a request came by.
const viaHeader = "Via"

// Identify makes the headers of a request tell who calls, and nobody else.
func (a *Aggregator) Identify(h http.Header, u *auth.User) {
	for name := range h { // some servers take one for the other
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
func (a *Aggregator) Failed(v *Version) { a.ask(v.way.key) }
