// Package verifier verifies the client certificates of requests.
package verifier

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"orch.io/controlplane/internal/cache"
)

// The bounds of the cache of verified certificates.
const (
	maxKnown  = 4096
	knownTime = 10 * time.Minute
)

// Verifier verifies client certificates. It caches a successful result for some minutes
// instead of verifying the certificate for every request of a connection.
type Verifier struct {
	roots *x509.CertPool
	now   func() time.Time
	known *cache.Cache[[32]byte, struct{}]
}

// New returns a Verifier for the authorities in roots; if roots is nil every certificate
// fails. now is the clock; nil is time.Now.
func New(roots *x509.CertPool, now func() time.Time) *Verifier {
	if roots == nil {
		roots = x509.NewCertPool() // nil would mean the host's authorities
	}
	if now == nil {
		now = time.Now
	}
	return &Verifier{roots, now, cache.New[[32]byte, struct{}](maxKnown, now)}
}

// Verify returns the client certificate of a request, or nil if there is none. It fails if the
// certificate does not chain to a root or is not valid for client authentication.
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

// digest returns the cache key: a hash of the whole chain, because the result depends on it.
func digest(certs []*x509.Certificate) [32]byte {
	h := sha256.New()
	for _, c := range certs {
		h.Write(c.Raw) // DER is self-delimiting, so different chains have different hashes
	}
	return [32]byte(h.Sum(nil))
}
