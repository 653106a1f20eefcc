// Package clientcert authenticates callers by the client certificate of their
// TLS connection: the subject's common name is the user, every organization a
// group.
//
// The server must ask for certificates without verifying them
// (tls.RequestClientCert), because each method has authorities of its own.
package clientcert

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"orch.io/controlplane/auth"
)

// Authenticator accepts the client certificates of some authorities.
type Authenticator struct {
	roots *x509.CertPool
	now   func() time.Time
}

// New returns a method that accepts certificates for client authentication
// that lead to one of roots.
func New(roots *x509.CertPool) *Authenticator { return &Authenticator{roots, time.Now} }

// ParseBundle returns the authorities of a PEM bundle; one at least.
func ParseBundle(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("clientcert: no certificate in the bundle")
	}
	return pool, nil
}

// Authenticate implements auth.Authenticator. A connection without a
// certificate, or a valid one without a common name, is none of its business.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	leaf, err := Verify(r, a.roots, a.now())
	if leaf == nil || err != nil || leaf.Subject.CommonName == "" {
		return nil, err
	}
	return &auth.User{Name: leaf.Subject.CommonName, Groups: slices.Clone(leaf.Subject.Organization)}, nil
}

// Verify returns the client certificate of a request if it leads to one of
// roots and may be used for client authentication, nil if there is none.
func Verify(r *http.Request, roots *x509.CertPool, now time.Time) (*x509.Certificate, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	between := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("clientcert: certificate %q: %w", leaf.Subject.CommonName, err)
	}
	return leaf, nil
}
