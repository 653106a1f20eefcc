// Package verifier checks the client certificates of connections.
package verifier

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"orch.io/controlplane/internal/cache"
)

// The bounds of what a Verifier remembers.
const (
	maxKnown  = 4096
	knownTime = 10 * time.Minute
)

// Verifier checks the client certificates of requests. A certificate that it
// found good it checks again after some minutes, not on every request of a
// connection.
type Verifier struct {
	roots *x509.CertPool
	now   func() time.Time
	known *cache.Cache[[32]byte, struct{}]
}

// New returns a Verifier for the authorities in roots; nil has none. now
// is the clock; nil is time.Now.
func New(roots *x509.CertPool, now func() time.Time) *Verifier {
	if roots == nil {
		roots = x509.NewCertPool() // nil would stand for the authorities of the host
	}
	if now == nil {
		now = time.Now
	}
	return &Verifier{roots, now, cache.New[[32]byte, struct{}](maxKnown, now)}
}

// Verify returns the client certificate of a request if it leads to one of the
// roots and may be used for client authentication, nil if there is none.
func (v *Verifier) Verify(r *http.Request) (*x509.Certificate, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	key := digest(r.TLS.PeerCertificates)
	if _, ok := v.known.Get(key); ok {
		return leaf, nil
	}
	between := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		between.AddCert(c)
	}
	now := v.now()
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: v.roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("clientcert: certificate %q: %w", leaf.Subject.CommonName, err)
	}
	keep := knownTime
	for _, c := range chains[0] {
		keep = min(keep, c.NotAfter.Sub(now))
	}
	v.known.Put(key, struct{}{}, keep)
	return leaf, nil
}

// digest is of everything that a verdict depends on.
func digest(certs []*x509.Certificate) [32]byte {
	h := sha256.New()
	for _, c := range certs {
		h.Write(c.Raw) // DER tells its own length
	}
	return [32]byte(h.Sum(nil))
}
