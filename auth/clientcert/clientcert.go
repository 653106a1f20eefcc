// Package clientcert authenticates requests by the client certificate of their TLS connection.
// An Authenticator takes the user from the subject: the common name is the user name, and each
// organization is a group. A RequestHeader accepts the certificate of an authenticating proxy
// and takes the user from the headers that the proxy sends.
//
// The TLS server must request certificates without verifying them
// (tls.RequestClientCert), because each authenticator has its own authorities.
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

// Authenticator authenticates client certificates. It is safe for concurrent use.
type Authenticator struct {
	verifier *verifier.Verifier
	left     atomic.Pointer[prometheus.HistogramVec] // nil before Measure
}

// New returns an Authenticator that accepts client authentication certificates that
// chain to roots. If roots is nil it accepts none.
func New(roots *x509.CertPool) *Authenticator {
	return &Authenticator{verifier: verifier.New(roots, nil)}
}

// Measure registers the metric of the remaining validity of client certificates. An
// Authenticator that several servers share reports to the last registerer.
func (a *Authenticator) Measure(to prometheus.Registerer) error {
	const hour, day = 3600, 24 * 3600
	set := metrics.For(to)
	a.left.Store(set.Histograms(metrics.Family{
		Name: "apiserver_client_certificate_expiration_seconds", Help: "Remaining validity of the client certificates of authenticated requests, in seconds.",
		Buckets: []float64{0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day, 180 * day, 365 * day},
	}))
	return set.Err()
}

// ParseBundle returns the certificates of a PEM bundle. It fails if there is none.
func ParseBundle(pem []byte) (*x509.CertPool, error) {
	pool, err := pki.ParsePool(pem)
	if err != nil {
		return nil, fmt.Errorf("clientcert: %w", err)
	}
	return pool, nil
}

// Authenticate implements auth.Authenticator. It returns nil, nil for a request without a
// certificate, and for a valid certificate without a common name.
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
