// Package clientcert authenticates callers by the client certificate of their
// TLS connection: the subject's common name is the user, every organization a
// group.
//
// The server must ask for certificates without verifying them
// (tls.RequestClientCert), because each method has authorities of its own.
package clientcert

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/verifier"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/pki"
)

// Authenticator accepts the client certificates of some authorities.
type Authenticator struct {
	verifier *verifier.Verifier
	left     atomic.Pointer[prometheus.HistogramVec] // nil: nobody asks
}

// New returns a method that accepts certificates for client authentication
// that lead to one of roots; nil accepts none.
func New(roots *x509.CertPool) *Authenticator {
	return &Authenticator{verifier: verifier.New(roots, nil)}
}

// Measure registers the metric that tells how long the certificates that callers show are
// still valid. What two servers share counts for the last one.
func (a *Authenticator) Measure(to prometheus.Registerer) error {
	const hour, day = 3600, 24 * 3600
	set := metrics.For(to)
	a.left.Store(set.Histograms(metrics.Family{
		Name: "apiserver_client_certificate_expiration_seconds", Help: "Time that the client certificates by which callers were known are still valid, in seconds.",
		Buckets: []float64{0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day, 180 * day, 365 * day},
	}))
	return set.Err()
}

// ParseBundle returns the authorities of a PEM bundle; one at least.
func ParseBundle(pem []byte) (*x509.CertPool, error) {
	pool, err := pki.ParsePool(pem)
	if err != nil {
		return nil, fmt.Errorf("clientcert: %w", err)
	}
	return pool, nil
}

// Authenticate implements auth.Authenticator. A connection without a
// certificate, or a valid one without a common name, is none of its business.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	leaf, err := a.verifier.Verify(r)
	if leaf == nil || err != nil || leaf.Subject.CommonName == "" {
		return nil, err
	}
	if left := a.left.Load(); left != nil {
		left.WithLabelValues().Observe(time.Until(leaf.NotAfter).Seconds())
	}
	return &auth.User{Name: leaf.Subject.CommonName, Groups: slices.Clone(leaf.Subject.Organization)}, nil
}
